"""A training step of a BiLSTM-CRF against pytorch-crf on the same encoder and the same mini-batches.

A step is scores, loss, gradients and an update by Adam; batches are cut beforehand. Both sides have their own weights,
which are equal at the start, and dropout is off, so that both do the same work.
"""

import copy
from collections.abc import Callable

import torch
from torch import nn
from torchcrf import CRF

from benchmarks.timing import interleaved
from structperc.chain import KBest
from structperc.criteria import CRFLoss
from structperc.data import Conll, Synthetic
from structperc.datamodules import LengthBatchSampler, SequenceDataModule
from structperc.encoders import BiLSTM, CharCNN, WordEmbedding
from structperc.scorers import Neural
from structperc.structures import Batch
from structperc.taggers import Tagger


def run(smoke: bool) -> list[dict]:
    """Return milliseconds of a step of both sides, after a check that their losses are equal."""
    rows = []
    for batch_size in (8,) if smoke else (8, 32):
        data, name = _data(smoke, batch_size)
        torch.manual_seed(1)
        tagger = Tagger(None, Neural(_encoder(smoke)), CRFLoss(), KBest(1), torch.optim.Adam)
        tagger.build_vocabulary(data)
        batch = _batch(tagger, data)
        ours, theirs = Ours(tagger), Theirs(tagger)
        torch.testing.assert_close(ours.loss(batch), theirs.loss(batch), rtol=1e-4, atol=1e-3)
        mine, peer = interleaved(3 if smoke else 30, _step(ours, batch), _step(theirs, batch))
        rows.append(
            {
                "what": "training step of a BiLSTM-CRF; pytorch-crf",
                "size": f"{batch_size} sentences of {name} in {batch.sentences.shape[1]} steps",
                "ours": mine,
                "peer": peer,
                "ratio": mine / peer,
                "unit": "ms",
                "target": "≤ 1",
            }
        )
    return rows


class Ours:
    """The library's scorer and criterion."""

    def __init__(self, tagger: Tagger) -> None:
        self.tagger = tagger
        self.optimizer = torch.optim.Adam(tagger.parameters())

    def loss(self, batch: Batch) -> torch.Tensor:
        return self.tagger.criterion(self.tagger.score_batch(batch)).sum()


class Theirs:
    """The same encoder, with pytorch-crf on top."""

    def __init__(self, tagger: Tagger) -> None:
        self.encoder, self.head = copy.deepcopy((tagger.scorer.encoder, tagger.scorer.head))
        self.crf = CRF(len(tagger.labels), batch_first=True)
        with torch.no_grad():
            for scores in (self.crf.start_transitions, self.crf.end_transitions):
                scores.zero_()
            self.crf.transitions.copy_(tagger.scorer.transition)
        self.optimizer = torch.optim.Adam(nn.ModuleList([self.encoder, self.head, self.crf]).parameters())

    def loss(self, batch: Batch) -> torch.Tensor:
        emissions = self.head(self.encoder(batch))
        mask = torch.arange(emissions.shape[1]) < batch.lengths[:, None]
        return -self.crf(emissions, batch.gold, mask, reduction="sum")


def _step(side: Ours | Theirs, batch: Batch) -> Callable[[], None]:
    """A step on one batch, again and again: so the least time is a fair figure."""

    def step() -> None:
        loss = side.loss(batch)
        side.optimizer.zero_grad()
        loss.backward()
        side.optimizer.step()

    return step


def _batch(tagger: Tagger, data: SequenceDataModule) -> Batch:
    """Sentences of middling length."""
    rows = tagger.encode(data.corpus("train"))
    order = list(LengthBatchSampler(rows.corpus.lengths, data.batch_size, shuffle=False))
    return rows[order[len(order) // 2]]


def _encoder(smoke: bool) -> BiLSTM:
    inputs = [WordEmbedding(50 if smoke else 100), CharCNN()]
    return BiLSTM(inputs, hidden=16 if smoke else 100, dropout=0.0)


def _data(smoke: bool, batch_size: int) -> tuple[SequenceDataModule, str]:
    if smoke:
        return Synthetic(train=10, dev=0, test=0, scheme="none", batch_size=batch_size), "the embedded corpus"
    path, files = "${STRUCTPERC_DATA}/conll2000", {"train": "train.txt"}
    options = {"columns": ["word", "pos", "label"], "scheme": "none", "batch_size": batch_size}
    return Conll(path, files, **options), "CoNLL-2000"
