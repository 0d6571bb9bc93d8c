"""What one system got right in a text that other systems label, too."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.metrics.segments import SegmentF1, SegmentScores
from structperc.metrics.sentences import right_sentences, sentence_boundaries
from structperc.metrics.significance import McNemar, mcnemar
from structperc.spelling import counted

Labels = Sequence[Sequence[str]]  # sentences of label names


class System(NamedTuple):
    """What a system got right: N tokens in R sentences, in the order of the text; empty sentences are not counted."""

    name: str
    segments: SegmentScores | None  # None when the labels are no segments
    tokens: Tensor  # (N,) bool, is the label right
    sentences: Tensor  # (R,) bool, are all labels of the sentence right

    @property
    def accuracies(self) -> tuple[float, float]:
        """The shares of tokens and of sentences that are right."""
        return float(self.tokens.double().mean()), float(self.sentences.double().mean())

    def against(self, other: "System") -> tuple[McNemar, McNemar]:
        """Return McNemar's tests against another system, over tokens and over sentences."""
        return mcnemar(self.tokens, other.tokens), mcnemar(self.sentences, other.sentences)


def judged(gold: Labels, predictions: Sequence[Labels], scheme: str, names: Sequence[str]) -> Iterator[System]:
    """Yield a System for each of several predictions of one text; labels are given sentence by sentence.

    Scheme "none" leaves segments out. Raises InputError for labels that are not of the scheme, and for texts whose
    sentences differ in number or length.
    """
    for name, predicted in zip(names, predictions, strict=True):
        _check_same(gold, predicted, name)
    if not any(gold):
        raise InputError("gold holds no label; give a file of labelled sentences")
    labels = LabelSet(tuple(sorted({*chain(*gold), *chain(*chain(*predictions))})), scheme)
    # one sequence, the whole text: `sentences` tells its sentences apart and nothing is padded
    wanted, *others = (torch.from_numpy(labels.encode([*chain(*text)]))[None] for text in (gold, *predictions))
    lengths = torch.tensor([wanted.shape[1]])
    sentences = torch.arange(len(gold)).repeat_interleave(torch.tensor([len(s) for s in gold]))[None]
    boundaries = sentence_boundaries(lengths, wanted.shape[1], sentences)
    for name, ids in zip(names, others, strict=True):
        right = ids == wanted
        segments = None if scheme == "none" else _segments(ids, wanted, lengths, sentences, labels)
        yield System(name, segments, right[0], right_sentences(right, boundaries))


def _segments(predicted: Tensor, gold: Tensor, lengths: Tensor, sentences: Tensor, labels: LabelSet) -> SegmentScores:
    metric = SegmentF1(labels)
    metric.update(predicted, gold, lengths, sentences)
    return metric.compute()


def _check_same(gold: Labels, predicted: Labels, name: str) -> None:
    wanted, given = [len(s) for s in gold], [len(s) for s in predicted]
    advice = "give predictions for the same text"
    if len(given) != len(wanted):
        raise InputError(f"{name} has {counted(len(given), 'sentence')}, gold {len(wanted)}; {advice}")
    for number, (n, m) in enumerate(zip(given, wanted, strict=True), 1):
        if n != m:
            raise InputError(f"{name}: sentence {number} has {counted(n, 'label')}, gold {m}; {advice}")
