"""Guided learning (Shen et al. 2007), without a peer: what a token costs in texts of any length, and an epoch.

Random weights on random features, as many of each kind as set E of the paper's Table 2 has; then, where there is a
folder of corpora, an epoch of learning on the treebank's sentences, one after the other, and tagging with the averaged
weights. Compiling is not timed. The paper gives no times; it says that they are linear in the length.
"""

import os
import time
from itertools import pairwise
from pathlib import Path

import torch

from structperc.data import Conll, Synthetic
from structperc.datamodules import EncodedCorpus, LengthBatchSampler, SequenceDataModule
from structperc.features import FeatureExtractor
from structperc.guided import ContextFeatures, GuidedModel
from structperc.guided.model import GuidedOptimizer
from structperc.ragged import Ragged
from structperc.scorers import SparseLinear
from structperc.structures import Batch, Words

S, LABELS, FEATURES, PER_TOKEN = 256, 50, 150_000, 36
LENGTHS = (10, 100, 1000)
TAGGED, LEARNED = 256, 128  # sentences of a mini-batch
REPEATS = 10  # of which the least time counts


def run(smoke: bool) -> list[dict]:
    """Return microseconds per token by length, seconds of an epoch, and tokens tagged per second."""
    return [*_lengths(8 if smoke else S, LENGTHS[:2] if smoke else LENGTHS), *_corpus(smoke)]


def _lengths(sentences: int, lengths: tuple[int, ...]) -> list[dict]:
    model = _model(FEATURES, LABELS)
    torch.manual_seed(0)
    for p in model.parameters():
        torch.nn.init.normal_(p)
    costs = [_microseconds(model, _random_batch(sentences, T)) for T in lengths]
    size = f"{sentences} at a time, {LABELS} labels, beam {model.beam}"
    return [
        _row(f"guided tagging, sentences of {T} tokens (ratio: to the row before)", size, cost, "us/token", ratio)
        for T, cost, ratio in zip(lengths, costs, [None, *(b / a for a, b in pairwise(costs))], strict=True)
    ]


def _microseconds(model: GuidedModel, batch: Batch) -> float:
    return 1e6 * min(_seconds(model.decode, batch) for _ in range(REPEATS)) / int(batch.lengths.sum())


def _corpus(smoke: bool) -> list[dict]:
    data, name = _data(smoke)
    features = FeatureExtractor(["shen2007"], progress=False)
    features.fit(data.corpus("train"))
    labels = data.label_set()
    train, dev = (EncodedCorpus(data.corpus(split), features, labels) for split in ("train", "dev"))
    model = _model(features.n_node_features, len(labels))
    model.learn(train.flat([0]), GuidedOptimizer(model.parameters()))  # compiled from here on
    model.allocate(features.n_node_features, len(labels))
    updates = GuidedOptimizer(model.parameters())
    learned = _seconds(_epoch, model, updates, train)
    with updates.evaluation_weights():
        tagged = min(_seconds(_tag, model, dev) for _ in range(REPEATS))
    speed = dev.corpus.tokens / tagged
    size = f"tokens of {name}, {features.n_node_features} features, {len(labels)} labels, beam {model.beam}"
    return [
        _row("guided learning, first epoch", f"{train.corpus.tokens} {size}", learned, "s", target="≤ 8 s"),
        _row("guided tagging", f"{dev.corpus.tokens} {size}", speed, "tokens/s", target="150000 tokens/s"),
    ]


def _epoch(model: GuidedModel, updates: GuidedOptimizer, rows: EncodedCorpus) -> None:
    for batch in LengthBatchSampler(rows.corpus.lengths, LEARNED, shuffle=True, by_length=False):
        model.learn(rows.flat(batch), updates)


def _tag(model: GuidedModel, rows: EncodedCorpus) -> None:
    for batch in LengthBatchSampler(rows.corpus.lengths, TAGGED, shuffle=False):
        model.decode(rows[batch])


def _model(features: int, labels: int) -> GuidedModel:
    model = GuidedModel(SparseLinear(transitions=False), ContextFeatures(["shen2007_e"]))
    model.allocate(features, labels)
    return model


def _random_batch(sentences: int, T: int) -> Batch:
    n = sentences * T
    nodes = Ragged(
        torch.randint(FEATURES, (n * PER_TOKEN,), dtype=torch.int32),
        torch.arange(0, n * PER_TOKEN + 1, PER_TOKEN, dtype=torch.int32),
    )
    words, none = torch.randint(1, 10_000, (sentences, T)), torch.zeros(sentences, T, dtype=torch.int64)
    lengths, rows = torch.full((sentences,), T), torch.arange(sentences)
    return Batch(nodes, None, lengths, None, none, none.bool(), none.bool(), rows, Words(words, words, none, none))


def _data(smoke: bool) -> tuple[SequenceDataModule, str]:
    """UD English EWT where there is a folder of corpora, else the embedded corpus."""
    if smoke or "STRUCTPERC_DATA" not in os.environ:
        return Synthetic(train=60 if smoke else 1500, dev=20, test=1, unit="sentence"), "the embedded corpus"
    folder = Path(os.environ["STRUCTPERC_DATA"]) / "ud_ewt"
    files = {"train": "train.txt", "dev": "dev.txt"}
    return Conll(str(folder), files, ["word", "_", "label"], scheme="none", unit="sentence"), "UD English EWT"


def _seconds(function, *arguments) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def _row(what: str, size: str, ours: float, unit: str, ratio: float | None = None, target: str | None = None) -> dict:
    return {"what": what, "size": size, "ours": ours, "peer": None, "ratio": ratio, "unit": unit, "target": target}
