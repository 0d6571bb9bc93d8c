"""Windows over pieces against loops over words."""

import random

import numpy as np
import pytest

from structperc.encoders.piece_windows import PieceWindows


def naive_spans(counts, room, overlap):
    """(first, stop) of each window over words with so many pieces, word by word."""
    spans, first = [], 0
    while sum(counts[first:]) > room:
        stop = first
        while sum(counts[first : stop + 1]) <= room:
            stop += 1
        spans.append((first, stop))
        first = next(
            word
            for word in range(first, stop + 1)
            if sum(counts[word:stop]) <= overlap and sum(counts[word : stop + 1]) <= room
        )
    last = next(word for word in range(len(counts)) if sum(counts[word:]) <= room)
    return [*spans, (last, len(counts))]


def naive_seat(counts, spans, word):
    """(window, pieces before the word in it) farthest from whose nearer boundary the word is; the first of equals."""
    seats = []
    for number, (first, stop) in enumerate(spans):
        if first <= word < stop:
            before, after = sum(counts[first:word]), sum(counts[word + 1 : stop])
            seats.append((-min(before, after), number, before))
    return min(seats)[1:]


def offsets_of(counts):
    return np.cumsum([0, *counts], dtype=np.int64)


def spans_of(windows):
    return list(zip(windows.first.tolist(), windows.stop.tolist(), strict=True))


def test_by_hand():
    """Words of 2, 1, 3, 1, 1, 2 pieces, five to a window, at most two shared."""
    offsets = offsets_of([2, 1, 3, 1, 1, 2])
    windows = PieceWindows.over(offsets, np.array([6]), 5, 2)
    assert spans_of(windows) == [(0, 2), (1, 4), (3, 6)]  # a third piece of overlap would leave word 2 no room
    window, before = windows.seats(offsets)
    assert window.tolist() == [0, 0, 1, 1, 2, 2]  # words 1 and 3 are at the boundaries of two windows
    assert before.tolist() == [0, 2, 1, 4, 1, 2]
    layout = windows.layout(offsets, 1, 1)
    assert layout.counts.tolist() == [5, 7, 6]
    assert layout.ids.tolist() == [*[10, 0, 1, 2, 11], *[10, 2, 3, 4, 5, 6, 11], *[10, 6, 7, 8, 9, 11]]


def test_layout_with_context():
    """Two sentences of 1 and 2 words; 5 pieces, one special token on each side, then 2 pieces before and 1 after."""
    offsets = offsets_of([2, 1, 2])
    windows = PieceWindows.over(offsets, np.array([1, 2]), 5, 2)
    layout = windows.layout(offsets, 1, 1, offsets_of([0, 2, 0]), offsets_of([1, 0, 0]))
    assert layout.counts.tolist() == [5, 7]
    assert layout.ids.tolist() == [*[5, 0, 1, 9, 6], *[5, 7, 8, 2, 3, 4, 6]]


@pytest.mark.parametrize(("room", "overlap"), [(5, 0), (5, 4), (8, 2), (8, 5), (40, 10), (5, 2)])
def test_against_loops(room, overlap):
    draw = random.Random(room * 10 + overlap)
    lengths = [draw.randint(0, 12) for _ in range(40)]
    counts = [[draw.choice([1, 1, 1, 2, 3, 5]) for _ in range(n)] for n in lengths]
    offsets = offsets_of([count for one in counts for count in one])
    windows = PieceWindows.over(offsets, np.array(lengths), room, overlap)
    window, before = windows.seats(offsets)
    spans, seats, start = [], [], 0
    for one in counts:
        own = naive_spans(one, room, overlap) if one else []
        found = [naive_seat(one, own, word) for word in range(len(one))]
        seats += [(number + len(spans), pieces) for number, pieces in found]
        spans += [(first + start, stop + start) for first, stop in own]
        start += len(one)
    assert spans_of(windows) == spans
    assert list(zip(window.tolist(), before.tolist(), strict=True)) == seats


def test_windows_cover_all_pieces():
    draw = random.Random(5)
    counts = [draw.randint(1, 7) for _ in range(300)]
    offsets = offsets_of(counts)
    windows = PieceWindows.over(offsets, np.array([300]), 7, 6)
    assert (offsets[windows.stop] - offsets[windows.first] <= 7).all()
    assert (np.diff(windows.first) > 0).all()
    assert (np.diff(windows.stop) > 0).all()
    assert (windows.first[1:] <= windows.stop[:-1]).all()
    assert (windows.first[0], windows.stop[-1]) == (0, 300)


def test_no_words():
    windows = PieceWindows.over(np.zeros(1, np.int64), np.array([0, 0]), 4, 1)
    assert spans_of(windows) == []
    assert [one.shape for one in windows.seats(np.zeros(1, np.int64))] == [(0,), (0,)]
