"""Comparisons of systems on one text: scores, differences and McNemar's tests."""

from collections.abc import Iterator, Sequence
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import spans
from structperc.errors import InputError
from structperc.metrics.counts import right_sentences, sentence_boundaries
from structperc.metrics.f_measure import SegmentScores, check_beta, segment_scores
from structperc.metrics.segment_errors import ERROR_KINDS, ErrorKinds, match_segments
from structperc.metrics.seqeval import LabelLists, check_same_lengths, label_sequences
from structperc.metrics.significance import Bootstrap, McNemar, mcnemar, paired_bootstrap, sum_by_document
from structperc.reports.tables import percent, text_table


class System(NamedTuple):
    """Right and wrong decisions of a system on N tokens in R sentences, in order, without empty sentences."""

    name: str
    segments: SegmentScores | None  # None for labels without segments
    tokens: Tensor  # (N,) bool, True where the label is right
    sentences: Tensor  # (R,) bool, True where all labels of the sentence are right
    kinds: ErrorKinds | None = None  # None for labels without segments
    counts: np.ndarray | None = None  # (D, 3) int64, correct, predicted and gold segments of each document

    @property
    def accuracies(self) -> tuple[float, float]:
        """The shares of tokens and of sentences that are right."""
        return float(self.tokens.double().mean()), float(self.sentences.double().mean())

    def against(self, other: "System", beta: float = 1.0) -> "Comparison":
        """Return the comparison with another system: F_beta of segments and McNemar's tests."""
        both = None if self.segments is None or other.segments is None else (self.segments, other.segments)
        tests = mcnemar(self.tokens, other.tokens), mcnemar(self.sentences, other.sentences)
        kinds = None if self.kinds is None or other.kinds is None else (self.kinds, other.kinds)
        return Comparison((self.name, other.name), both, *tests, beta, kinds)

    def bootstrap(self, other: "System") -> Bootstrap | None:
        """Return the paired bootstrap test of F1 against another system; None for labels without segments."""
        if self.counts is None or other.counts is None:
            return None
        return paired_bootstrap(self.counts[None], other.counts[None])


def evaluate_systems(
    gold: LabelLists,
    predictions: Sequence[LabelLists],
    scheme: str,
    names: Sequence[str],
    documents: Sequence[int] | np.ndarray | None = None,
) -> Iterator[System]:
    """Yield a System for each of several predictions of one text; labels are given sentence by sentence.

    With scheme "none" there are no segments. `documents` are the document numbers of the sentences. Raises InputError:
    labels that do not belong to the scheme, or sentences that differ in number or length.
    """
    if len(predictions) != len(names):
        raise InputError(f"give a name for each prediction: names has {len(names)}, predictions {len(predictions)}")
    texts = [label_sequences(text, name) for name, text in zip(("gold", *names), (gold, *predictions), strict=True)]
    for name, predicted in zip(names, texts[1:], strict=True):
        check_same_lengths(texts[0], predicted, ("gold", name))
    if not any(texts[0]):
        raise InputError("gold has no labels; give a file of labelled sentences")
    if documents is not None and len(documents) != len(texts[0]):
        raise InputError(f"documents has {len(documents)} numbers, gold {len(texts[0])} sentences; give one for each")
    labels = LabelSet(tuple(sorted({*chain(*chain(*texts))})), scheme)
    # the whole text is one sequence, without padding
    wanted, *others = (torch.from_numpy(labels.encode([*chain(*text)]))[None] for text in texts)
    lengths = torch.tensor([wanted.shape[1]])
    sentences = torch.arange(len(texts[0])).repeat_interleave(torch.tensor([len(s) for s in texts[0]]))[None]
    boundaries = sentence_boundaries(lengths, wanted.shape[1], sentences)
    for name, ids, predicted in zip(names, others, texts[1:], strict=True):
        right = ids == wanted
        segments, kinds, counts = None, None, None
        if scheme != "none":
            segments = segment_scores(ids, wanted, lengths, labels, sentences)
            kinds, counts = _segment_counts(texts[0], predicted, scheme, documents)
        yield System(name, segments, right[0], right_sentences(right, boundaries), kinds, counts)


def _segment_counts(
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    scheme: str,
    documents: Sequence[int] | np.ndarray | None,
) -> tuple[ErrorKinds, np.ndarray]:
    """Return the kinds of errors, and correct, predicted and gold segments (D, 3) of each document with tokens."""
    pairs = [match_segments(spans(a, scheme), spans(b, scheme)) for a, b in zip(gold, predicted, strict=True) if a]
    kinds = [ErrorKinds.from_pairs(sentence) for sentence in pairs]
    counts = [[one.correct, sum(one) - one.missed, sum(one) - one.spurious] for one in kinds]
    ids = None if documents is None else np.asarray(documents)[[len(labels) > 0 for labels in gold]]
    return ErrorKinds.from_pairs(chain(*pairs)), sum_by_document(np.array(counts, np.int64), ids)


class Comparison(NamedTuple):
    """Scores of two systems A and B and tests of their difference, which is B minus A.

    Attributes:
        names: names of A and B.
        segments: scores of segments of A and B; None for labels without segments.
        tokens: McNemar's test of the token accuracies.
        sentences: McNemar's test of the sentence accuracies.
        beta: weight of recall in the F measure.
        kinds: kinds of errors of A and B; None for labels without segments.
        bootstrap: paired bootstrap of F1 over documents; None for labels without segments, and in `Comparisons`.
    """

    names: tuple[str, str]
    segments: tuple[SegmentScores, SegmentScores] | None
    tokens: McNemar
    sentences: McNemar
    beta: float = 1.0
    kinds: tuple[ErrorKinds, ErrorKinds] | None = None
    bootstrap: Bootstrap | None = None

    def rows(self) -> list[tuple[str, float, float]]:
        """Return the scores as (name, score of A, score of B), shares in 0..1."""
        rows = [(f"{name} accuracy", m.accuracy_a, m.accuracy_b) for name, m in self._tests()]
        if self.segments is None:
            return rows
        (a, b), beta, f = self.segments, self.beta, f"F{self.beta:g}"
        micro = [(f, a.f(beta), b.f(beta)), ("precision", a.precision, b.precision), ("recall", a.recall, b.recall)]
        seen = sorted({**a.nonempty_types, **b.nonempty_types})
        types = [(f"{f} {name}", a.types[name].f(beta), b.types[name].f(beta)) for name in seen]
        return [*micro, *types, *rows]

    def table(self) -> str:
        """Return a table of scores and differences in per cent, then kinds of errors, then the tests."""
        a, b = self.names
        scores = [["", a, b, "difference"]]
        scores += [[name, percent(x), percent(y), f"{100 * (y - x):+.2f}"] for name, x, y in self.rows()]
        tests = [["McNemar, only right:", a, b, "p"]]
        tests += [[f"{name}s", str(m.only_a), str(m.only_b), f"{m.p:.3g}"] for name, m in self._tests()]
        return "\n".join([*text_table(scores), "", *self._kind_lines(), *text_table(tests), *self._bootstrap_lines()])

    def _kind_lines(self) -> Iterator[str]:
        if self.kinds is not None:
            one, other = (kinds._asdict() for kinds in self.kinds)
            rows = [["errors:", *self.names, "difference"]]
            for kind, text in ERROR_KINDS.items():
                rows.append([text, f"{one[kind]:,}", f"{other[kind]:,}", f"{other[kind] - one[kind]:+,}"])
            yield from (*text_table(rows), "")

    def _bootstrap_lines(self) -> Iterator[str]:
        if (test := self.bootstrap) is not None:
            change, low, high = (f"{100 * value:+.2f}" for value in test[:3])
            yield f"bootstrap over documents: F1 {change} ({low} .. {high}), p {test.p:.3g}"

    def _tests(self) -> list[tuple[str, McNemar]]:
        return [("token", self.tokens), ("sentence", self.sentences)]


class Comparisons(NamedTuple):
    """Scores of several systems and tests of each pair; p-values are not corrected for the number of pairs.

    Attributes:
        systems: systems in their order.
        beta: weight of recall in the F measure.
    """

    systems: list[System]
    beta: float = 1.0

    def pairs(self) -> list[Comparison]:
        """Return the comparisons of each system with all that come after it."""
        return [a.against(b, self.beta) for a, b in combinations(self.systems, 2)]

    def columns(self) -> dict[str, list[float]]:
        """Return the scores of all systems by name, as shares in 0..1, one per system."""
        tokens, sentences = zip(*(system.accuracies for system in self.systems), strict=True)
        accuracies = {"tokens": list(tokens), "sentences": list(sentences)}
        segments = [system.segments for system in self.systems if system.segments is not None]
        if not segments:
            return accuracies
        return {
            f"F{self.beta:g}": [scores.f(self.beta) for scores in segments],
            "precision": [scores.precision for scores in segments],
            "recall": [scores.recall for scores in segments],
            **accuracies,
        }

    def table(self) -> str:
        """Return a table of scores in per cent (tokens and sentences: accuracy), then the tests."""
        columns = self.columns()
        scores = [["", *columns]]
        for system, row in zip(self.systems, zip(*columns.values(), strict=True), strict=True):
            scores.append([system.name, *map(percent, row)])
        tests = [["A", "B", *(head for unit in ("tokens", "sentences") for head in (f"{unit}: A", "B", "p"))]]
        for pair in self.pairs():
            numbers = ((str(m.only_a), str(m.only_b), f"{m.p:.3g}") for m in (pair.tokens, pair.sentences))
            tests.append([*pair.names, *chain(*numbers)])
        return "\n".join([*text_table(scores), "", "McNemar, only right:", *text_table(tests, "<<>")])


def compare_all(
    gold: LabelLists,
    predictions: Sequence[LabelLists],
    names: Sequence[str],
    scheme: str = "IOB2",
    beta: float = 1.0,
    documents: Sequence[int] | np.ndarray | None = None,
) -> Comparisons:
    """Return scores of several systems on one text, and tests of each pair.

    Args:
        gold: gold labels, sentence by sentence.
        predictions: predicted labels of each system, sentence by sentence.
        scheme: tag scheme of the labels; "none" for labels that are not segments.
        beta: weight of recall in the F measure.
        documents: document number of each sentence, for the counts of each document; by default sentences.

    Raises:
        InputError: labels that do not belong to the scheme, sentences that differ in number or length, or beta <= 0.
    """
    check_beta(beta)
    return Comparisons(list(evaluate_systems(gold, predictions, scheme, names, documents)), beta)


def compare(
    gold: LabelLists,
    a: LabelLists,
    b: LabelLists,
    scheme: str = "IOB2",
    names: tuple[str, str] = ("A", "B"),
    beta: float = 1.0,
    documents: Sequence[int] | np.ndarray | None = None,
) -> Comparison:
    """Compare two systems on one text.

    Other arguments are those of `compare_all`. Returns scores of both systems and tests of their difference.

    Args:
        a: labels that system A predicted, sentence by sentence.
        b: labels that system B predicted, sentence by sentence.
        documents: document number of each sentence, for the bootstrap; by default, and for a single document,
            sentences are drawn.

    Raises:
        InputError: labels that do not belong to the scheme, sentences that differ in number or length, or beta <= 0.

    Example:
        >>> from structperc.metrics import compare
        >>> gold, a, b = [["B-PER", "O"], ["O"]], [["O", "O"], ["O"]], [["B-PER", "O"], ["O"]]
        >>> comparison = compare(gold, a, b)
        >>> comparison.segments[0].f1, comparison.segments[1].f1, comparison.tokens.only_b
        (0.0, 1.0, 1)
    """
    one, other = compare_all(gold, [a, b], names, scheme, beta, documents).systems
    return one.against(other, beta)._replace(bootstrap=one.bootstrap(other))
