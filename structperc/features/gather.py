"""The feature ids at each token of a corpus, compiled: all templates are looked up in one pass."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from structperc.kernels.jit import kernel, subkernel_no_alloc


class Places(NamedTuple):
    """P places, and where the entries of a place begin in an array that has one for each string of its column."""

    column: np.ndarray  # (P,) int64, row of `Strings.numbers`
    offset: np.ndarray  # (P,) int64, distance from the token
    first: np.ndarray  # (P,) int64


class Alone(NamedTuple):
    """Templates that see one place: each string has a list of ids."""

    places: Places
    ids: np.ndarray  # (M,) int32
    ends: np.ndarray  # (lists + 1,) int64, list i is ids[ends[i]:ends[i + 1]]


class Joined(NamedTuple):
    """J templates that join what stands at several places: each string has a code, all codes together are a key."""

    places: Places  # those of template j are ends[j] to ends[j + 1]
    ends: np.ndarray  # (J + 1,) int64
    codes: np.ndarray  # (strings of all places,)
    table: Any  # where keys are looked up, a NamedTuple of arrays


@kernel
def count_alone(strings, alone):  # type: ignore[no-untyped-def]
    """Return how many ids templates that see one place give at all tokens."""
    n = 0
    for s in range(len(strings.starts) - 1):
        for t in range(strings.starts[s], strings.starts[s + 1]):
            for p in range(len(alone.places.first)):
                row = entry(t, s, p, strings, alone.places)
                n += alone.ends[row + 1] - alone.ends[row]
    return n


@cache
def gathering(look_up: Callable[..., int]) -> Any:
    """Return the compiled loop that gathers ids.

    look_up(t, s, n, strings, joined, ids), an inner kernel, fills ids, from n on, with those that templates have at
    token t of sequence s -> where they end.
    """

    @kernel
    def gather(first, stop, n, strings, alone, joined, ids, ends):  # type: ignore[no-untyped-def]
        """Fill ids, from n on, with those of the tokens first, ..., stop - 1, and ends[t + 1] with their end.

        -> where the ids end. There is room for what `count_alone` counts and, at each token, for all that are joined.
        """
        s = np.searchsorted(strings.starts, first, side="right") - 1
        for t in range(first, stop):
            while t >= strings.starts[s + 1]:
                s += 1
            for p in range(len(alone.places.first)):
                row = entry(t, s, p, strings, alone.places)
                for i in range(alone.ends[row], alone.ends[row + 1]):
                    ids[n] = alone.ids[i]
                    n += 1
            n = look_up(t, s, n, strings, joined, ids)
            ends[t + 1] = n
        return n

    return gather


@subkernel_no_alloc
def entry(t, s, p, strings, places):  # type: ignore[no-untyped-def]
    """Return the entry of what stands at place p, seen from token t of sequence s."""
    at, start, stop = t + places.offset[p], strings.starts[s], strings.starts[s + 1]
    if at < start:
        number = start - at - 1
    elif at >= stop:
        number = strings.reach + at - stop
    else:
        number = np.int64(strings.numbers[places.column[p], at])
    return places.first[p] + number
