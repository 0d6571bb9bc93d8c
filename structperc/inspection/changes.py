"""The segments that two labellings of a document read differently, and what gold says there."""

from collections.abc import Iterator
from itertools import pairwise

from structperc.data.corpus import Corpus
from structperc.data.segments import Span, spans
from structperc.inspection.explanation import Change, ChangedSentence


def changed_sentences(corpus: Corpus, row: int, before: list[str], after: list[str]) -> Iterator[ChangedSentence]:
    """Yield the sentences of sequence `row` of a corpus, with the changes between two labellings of it.

    `before` and `after` are label names, one for each of the T tokens.
    """
    start, end = int(corpus.starts[row]), int(corpus.starts[row + 1])
    boundaries = corpus.sentences[(corpus.sentences >= start) & (corpus.sentences <= end)].tolist()
    gold = corpus.columns.get("label")
    for a, b in pairwise(boundaries):
        old, new = (spans(labels[a - start : b - start]) for labels in (before, after))
        wanted = None if gold is None else spans(gold[a:b])
        words, changes = list(corpus.columns["word"][a:b]), []
        for region in _regions(set(old) ^ set(new)):
            right = None if wanted is None else _within(wanted, *region)
            place = corpus.where(a + region[0])
            changes.append(Change(place, words, _within(old, *region), _within(new, *region), right))
        yield ChangedSentence(words, new, changes)


def _regions(differing: set[Span]) -> Iterator[tuple[int, int]]:
    """Boundaries of the runs of segments that overlap."""
    ordered = sorted(differing, key=lambda span: span.start)
    while ordered:
        first, stop = ordered[0].start, ordered[0].end
        while ordered and ordered[0].start < stop:
            stop = max(stop, ordered.pop(0).end)
        yield first, stop


def _within(known: list[Span], first: int, stop: int) -> list[Span]:
    return [span for span in known if span.start < stop and span.end > first]
