"""One evaluation of a CRF's objective and gradient over a whole corpus against one iteration of CRFsuite's L-BFGS.

Both see the features of Suzuki et al. 2006 for chunking and plain transitions, and all sentences of CoNLL-2000. An
iteration of CRFsuite is one evaluation and the step of its L-BFGS, so ours counts a step, too. By default CRFsuite has
weights only for the pairs of feature and label, and of labels, that it has seen; the second row gives it all of
them, as ours has. Each side is measured by its fastest iteration.
"""

import os
import tempfile
import time
from pathlib import Path

import pycrfsuite
import torch

from structperc.chain import KBest
from structperc.criteria import CRFLoss, Prior
from structperc.data import Conll, LabelSet, Synthetic
from structperc.datamodules import LengthBatchSampler, SequenceDataModule
from structperc.datamodules.encoded import PrecomputedBatches
from structperc.features import FeatureExtractor
from structperc.optim import LBFGS
from structperc.scorers import SparseLinear
from structperc.structures import Batch
from structperc.taggers import Tagger
from structperc.taggers.full_batch_likelihood import add_gradients, likelihood

TEMPLATES = ["suzuki2006_chunking"]
C = 1.0
WEIGHTS = {"seen pairs": {}, "all pairs": {"feature.possible_states": True, "feature.possible_transitions": True}}


def run(smoke: bool) -> list[dict]:
    """Return seconds of an iteration of both sides."""
    data, name = _data(smoke)
    corpus = data.corpus("train")
    features = FeatureExtractor(TEMPLATES, progress=False)
    features.fit(corpus)
    labels = LabelSet.from_corpus(corpus.columns["label"], "none")
    ours = Ours(features, labels, data)
    mine = ours.seconds(3 if smoke else 5)
    size = f"{len(corpus)} sentences of {name}, {features.n_node_features} x {len(labels)} weights"
    return [
        {
            "what": f"evaluation of a CRF's gradient and step of L-BFGS; CRFsuite: {pairs}",
            "size": size,
            "ours": min(mine),
            "peer": (theirs := min(CRFsuite(features, data, ours, options).seconds(3 if smoke else 5))),
            "ratio": min(mine) / theirs,
            "unit": "s/iteration",
            "target": "≤ 0.45",
        }
        for pairs, options in WEIGHTS.items()
    ]


class Ours:
    """Evaluations as full-batch training makes them."""

    def __init__(self, features: FeatureExtractor, labels: LabelSet, data: SequenceDataModule) -> None:
        self.tagger = Tagger(features, SparseLinear(sparse_grad=False), CRFLoss(), KBest(1), LBFGS, prior=Prior(C))
        self.tagger.allocate(labels)
        self.rows = self.tagger.encode(data.corpus("train"))
        order = LengthBatchSampler(self.rows.lengths, data.batch_size, shuffle=False)
        self.batches: list[Batch] = PrecomputedBatches(self.rows, order).batches

    def seconds(self, n: int) -> list[float]:
        """Of n evaluations and steps."""
        optimizer = self.tagger.configure_optimizers()
        found = []
        for _ in range(n):
            start = time.perf_counter()
            optimizer.step(self.evaluate)
            found.append(time.perf_counter() - start)
        return found

    def evaluate(self) -> float:
        """The objective; its gradient is left in the parameters."""
        for p in self.tagger.parameters():
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad.zero_()
        total = 0.0
        for batch in self.batches:
            losses, gradients = likelihood(self.tagger.scorer, self.tagger.labels, batch)
            add_gradients(self.tagger.scorer, batch, gradients)
            total += float(losses.sum())
        penalty = self.tagger.prior(self.tagger.parameters())  # type: ignore[misc]
        penalty.backward()
        return total + float(penalty.detach())


class CRFsuite(pycrfsuite.Trainer):
    """The peer: python-crfsuite's L-BFGS with the same prior."""

    def __init__(self, features: FeatureExtractor, data: SequenceDataModule, ours: Ours, options: dict) -> None:
        super().__init__("lbfgs", {"c2": 1 / (2 * C), "period": 1000, **options})
        names = features.index.names("node")
        nodes = ours.rows.arrays.nodes
        strings = [[names[i] for i in ids.tolist()] for ids in nodes.ids.split(nodes.counts.tolist())]
        corpus = data.corpus("train")
        for one, gold in zip(corpus.sentences_of(strings), corpus.sentences_of(corpus.columns["label"]), strict=True):
            self.append(one, gold)
        self.found: list[float] = []

    def seconds(self, n: int) -> list[float]:
        """Of n iterations."""
        self.set("max_iterations", n)
        with tempfile.TemporaryDirectory() as folder:
            self.train(str(Path(folder) / "model"))
        return self.found

    def message(self, message: str) -> None:
        if message.startswith("Seconds required for this iteration"):
            self.found.append(float(message.split(":")[1]))


def _data(smoke: bool) -> tuple[SequenceDataModule, str]:
    """CoNLL-2000 where there is a folder of corpora, else the embedded corpus."""
    if smoke or "STRUCTPERC_DATA" not in os.environ:
        data: SequenceDataModule = Synthetic(
            train=60 if smoke else 1500, dev=1, test=1, unit="sentence", batch_size=2000
        )
        return data, "the embedded corpus"
    folder = str(Path(os.environ["STRUCTPERC_DATA"]) / "conll2000")
    files = {"train": "train.txt", "test": "test.txt"}
    return Conll(folder, files, ["word", "pos", "label"], batch_size=2000), "CoNLL-2000"
