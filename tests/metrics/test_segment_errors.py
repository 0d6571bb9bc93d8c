"""Kinds of errors against all possible matchings; scores of SemEval-2013 by hand."""

from itertools import combinations, permutations

import numpy as np
import pytest

from structperc.data import Span
from structperc.errors import InputError
from structperc.metrics import ErrorKinds, segment_f1_score, segment_pairs, semeval_scores
from structperc.metrics.segment_errors import SegmentPair, match_segments

ORDER = ("correct", "type", "boundary", "both")


def all_matchings(gold, predicted):
    """Every one-to-one set of pairs of segments that share a token."""
    for n in range(min(len(gold), len(predicted)) + 1):
        for rows in combinations(gold, n):
            for columns in permutations(predicted, n):
                pairs = list(zip(rows, columns, strict=True))
                if all(min(a.end, b.end) > max(a.start, b.start) for a, b in pairs):
                    yield pairs


def best_counts(gold, predicted):
    """The largest numbers of pairs of each kind, the slightest first, and of shared tokens."""
    found = []
    for pairs in all_matchings(gold, predicted):
        kinds = [SegmentPair(*pair).kind for pair in pairs]
        shared = sum(min(a.end, b.end) - max(a.start, b.start) for a, b in pairs)
        found.append(([*map(kinds.count, ORDER)], shared))
    return max(found)


def test_best_of_all_matchings():
    """Segments may overlap and occur twice; their order has no influence."""
    draw = np.random.default_rng(1)
    for _ in range(60):
        sides = []
        for n in draw.integers(0, 5, 2):
            starts, lengths = draw.integers(0, 5, n).tolist(), draw.integers(1, 4, n).tolist()
            sides.append([Span("AB"[draw.integers(2)], a, a + b) for a, b in zip(starts, lengths, strict=True)])
        pairs = match_segments(*sides)
        kinds = ErrorKinds.from_pairs(pairs)
        both = [pair for pair in pairs if None not in pair]
        shared = sum(min(a.end, b.end) - max(a.start, b.start) for a, b in both)
        assert ([getattr(kinds, kind) for kind in ORDER], shared) == best_counts(*sides)
        for side, spans in enumerate(sides):
            assert sorted(pair[side] for pair in pairs if pair[side]) == sorted(spans)
        assert match_segments(sides[0][::-1], sides[1][::-1]) == pairs


def test_scores_by_hand():
    """Tokens: PER PER . ORG ORG LOC . MISC . ., predicted with each kind of error."""
    gold = [["B-PER", "I-PER", "O", "B-ORG", "I-ORG", "B-LOC", "O", "B-MISC", "O", "O"]]
    predicted = [["B-PER", "I-PER", "O", "B-ORG", "O", "B-PER", "O", "O", "O", "B-LOC"]]
    (pairs,) = segment_pairs(gold, predicted, scheme="IOB2")
    assert [pair.kind for pair in pairs] == ["correct", "boundary", "type", "missed", "spurious"]
    scores = semeval_scores(gold, predicted)
    assert scores["strict"] == (1, 2, 0, 1, 1)
    assert scores["exact"] == (2, 1, 0, 1, 1)
    assert scores["partial"] == (2, 0, 1, 1, 1)
    assert scores["type"] == (2, 1, 0, 1, 1)
    assert [score.f1 for score in scores.values()] == [1 / 4, 2 / 4, 2.5 / 4, 2 / 4]
    assert scores["strict"].f1 == segment_f1_score(gold, predicted)


def test_order_of_gold():
    """Two gold segments that one predicted segment covers: nervaluate's issue 40."""
    gold = [Span("A", 0, 12), Span("B", 14, 17)]
    pairs = match_segments(gold, [Span("A", 0, 17)])
    assert pairs == match_segments(gold[::-1], [Span("A", 0, 17)])
    assert ErrorKinds.from_pairs(pairs) == ErrorKinds(boundary=1, missed=1)


def test_mistakes():
    with pytest.raises(InputError, match="sentence 1"):
        segment_pairs([["B-PER"]], [["X"]])
