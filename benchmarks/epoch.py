"""A training epoch of the averaged perceptron against CRFsuite's: the same sentences, features and labels.

Both see the node features of Table 1 of Kazama & Torisawa 2007 without gazetteers, and plain transitions, and update
after each sentence. CRFsuite gets the names of the features in our index; by default it keeps weights only for the
pairs of feature and label that it has seen, where ours learns all. The epochs take turns: after each of CRFsuite's come
ours, so that a busy machine slows all of them alike.
"""

import logging
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pycrfsuite
import pytorch_lightning as pl

from structperc.chain import KBest
from structperc.criteria import PerceptronLoss
from structperc.data import Conll, LabelSet, Synthetic
from structperc.datamodules import EncodedCorpus, LengthBatchSampler, SequenceDataModule
from structperc.features import FeatureExtractor
from structperc.metrics import compare
from structperc.optim import Perceptron
from structperc.scorers import SparseLinear
from structperc.taggers import Tagger
from structperc.taggers.sequential_learning import sequence_learner
from structperc.training import evaluate

TEMPLATES = ["kazama2007"]
BATCH_SIZE = 256
LOOKS = (4, 10)  # epochs after which development data is labelled
SMOKE = (1, 2)


def run(smoke: bool) -> list[dict]:
    """Return seconds per epoch after a warm-up epoch, and the F1 that 4 and 10 epochs give."""
    data, name = _data(smoke)
    features = FeatureExtractor(TEMPLATES, progress=False)
    features.fit(data.corpus("train"))
    labels = data.label_set()
    taggers = [_tagger(features, labels) for _ in range(2)]
    data.encode(taggers[0].encode, "fit")
    sides = [Loop(taggers[0], data), Lightning(taggers[1], data)]
    looks = SMOKE if smoke else LOOKS
    peers = [CRFsuite(data, features, epochs) for epochs in looks]
    for peer in peers[:-1]:
        peer.run(lambda: None)
    peers[-1].run(lambda: [side.epoch(looks) for side in sides])
    size = f"{len(data.corpus('train'))} sentences of {name}, {features.n_node_features} x {len(labels)} weights"
    scores = [_score(side, look, peer, size) for side in sides for look, peer in zip(looks, peers, strict=True)]
    return [*(_time(side, peers[-1], size) for side in sides), *scores]


def _time(side: "Loop", peer: "CRFsuite", size: str) -> dict:
    ours, theirs = min(side.seconds[1:]), min(peer.seconds[1:])
    return {
        "what": f"averaged-perceptron epoch, {side.name}",
        "size": size,
        "ours": ours,
        "peer": theirs,
        "ratio": ours / theirs,
        "unit": "s/epoch",
        "target": side.target,
    }


def _score(side: "Loop", look: int, peer: "CRFsuite", size: str) -> dict:
    ours, theirs = side.scores[look], peer.score()
    return {
        "what": f"development F1 after {look} epochs, {side.name}",
        "size": size,
        "ours": ours,
        "peer": theirs,
        "ratio": ours / theirs,
        "unit": "F1",
        "target": "≥ 1",
    }


class Loop:
    """Mini-batches learned online in a plain loop."""

    name, target = "a plain loop", "≤ 0.3"

    def __init__(self, tagger: Tagger, data: SequenceDataModule) -> None:
        self.tagger, self.data = tagger, data
        self.optimizer = Perceptron(tagger.parameters())
        self.seconds: list[float] = []
        self.scores: dict[int, float] = {}

    def epoch(self, looks: Sequence[int]) -> None:
        self.seconds.append(self.learn())
        if len(self.seconds) in looks:
            with self.optimizer.evaluation_weights():
                self.scores[len(self.seconds)] = 100 * evaluate(self.tagger, self.data, "dev").compute()["score"]

    def learn(self) -> float:
        learner = sequence_learner(self.tagger, self.optimizer)
        assert learner is not None
        start = time.perf_counter()
        rows = self.data.encoded("train")
        order = LengthBatchSampler(
            rows.corpus.lengths, BATCH_SIZE, shuffle=True, seed=len(self.seconds), by_length=False
        )
        for batch in order:
            learner.learn(rows.flat(batch))
        return time.perf_counter() - start


class Lightning(Loop):
    """The same by Lightning's trainer, its set-up not counted."""

    name, target = "Lightning's Trainer", "≤ 0.4"

    def __init__(self, tagger: Tagger, data: SequenceDataModule) -> None:
        super().__init__(tagger, data)
        tagger.optimizer = lambda _: self.optimizer  # one for all epochs, as its sums belong to all
        logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)

    def learn(self) -> float:
        self.data.batch_size, self.data.seed = BATCH_SIZE, len(self.seconds)
        clock = Clock()
        trainer = pl.Trainer(
            max_epochs=1,
            accelerator="cpu",
            callbacks=[clock],
            limit_val_batches=0,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(self.tagger, datamodule=self.data)
        return clock.seconds


class Clock(pl.Callback):
    """Seconds of an epoch."""

    def on_train_epoch_start(self, *_: object) -> None:
        self.start = time.perf_counter()

    def on_train_epoch_end(self, *_: object) -> None:
        self.seconds = time.perf_counter() - self.start


class CRFsuite(pycrfsuite.Trainer):
    """The peer: python-crfsuite's averaged-perceptron with its own defaults."""

    def __init__(self, data: SequenceDataModule, features: FeatureExtractor, epochs: int) -> None:
        super().__init__("averaged-perceptron", {"max_iterations": epochs})
        self.data, self.names = data, features.index.names("node")
        self.seconds: list[float] = []
        rows = data.encoded("train")
        for strings, labels in zip(self._strings(rows), _gold(rows), strict=True):
            self.append(strings, labels)

    def run(self, between: Callable[[], object]) -> None:
        """Train; `between` is called after each epoch."""
        self.between = between
        self.folder = tempfile.TemporaryDirectory()
        self.start = time.perf_counter()
        self.train(str(Path(self.folder.name) / "model"))

    def message(self, message: str) -> None:
        if message.startswith("Seconds required for this iteration"):
            self.seconds.append(time.perf_counter() - self.start)
            self.between()
            self.start = time.perf_counter()

    def score(self) -> float:
        """F1 on the development sentences, by the same rule as ours."""
        tagger = pycrfsuite.Tagger()
        tagger.open(str(Path(self.folder.name) / "model"))
        rows = self.data.encoded("dev")
        predicted = [tagger.tag(strings) for strings in self._strings(rows)]
        return 100 * compare(_gold(rows), predicted, predicted, self.data.scheme).segments[0].f1

    def _strings(self, rows: EncodedCorpus) -> list[list[list[str]]]:
        nodes = rows.arrays.nodes
        names = [[self.names[i] for i in ids.tolist()] for ids in nodes.ids.split(nodes.counts.tolist())]
        return rows.corpus.sentences_of(names)


def _gold(rows: EncodedCorpus) -> list[list[str]]:
    return rows.corpus.sentences_of(rows.corpus.columns["label"])


def _data(smoke: bool) -> tuple[SequenceDataModule, str]:
    """CoNLL-2003 where there is a folder of corpora, else the embedded corpus; one sentence per sequence."""
    if smoke or "STRUCTPERC_DATA" not in os.environ:
        return Synthetic(train=60 if smoke else 1500, dev=20, test=1, unit="sentence"), "the embedded corpus"
    files = {"train": "eng.train", "dev": "eng.testa"}
    columns = ["word", "pos", "chunk", "label"]
    folder = Path(os.environ["STRUCTPERC_DATA"]) / "conll2003"
    return Conll(str(folder), files, columns, labels="IOB1", scheme="IOB2", unit="sentence"), "CoNLL-2003"


def _tagger(features: FeatureExtractor, labels: LabelSet) -> Tagger:
    tagger = Tagger(features, SparseLinear(), PerceptronLoss(), KBest(1), Perceptron)
    tagger.allocate(labels)
    return tagger
