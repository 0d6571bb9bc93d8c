"""The features of templates in buckets."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from structperc.features.bucket_names import BucketNames, sampled_names
from structperc.features.hashing import BucketCounter, Buckets, hashed_keys
from structperc.features.id_lists import IdLists
from structperc.features.numbering import Arrays, Index
from structperc.features.sources import Attributes
from structperc.features.templates import Template
from structperc.features.windows import MIN_CHUNKS, View
from structperc.process_pool import Workers
from structperc.progress import bar

if TYPE_CHECKING:
    from structperc.features.lookup import TemplateLookup


class HashedIndex(Index):
    """Features of all templates in the same buckets, of which those that training data fall into have ids.

    Args:
        templates: which conjunctions are features.
        buckets: those with features.
        known: what is known of the features in them.
    """

    def __init__(self, templates: Sequence[Template], buckets: Buckets, known: BucketNames) -> None:
        self.templates = tuple(templates)
        self._buckets, self._known = buckets, known

    @classmethod
    def count(
        cls,
        view: View,
        reading: Attributes,
        templates: Sequence[Template],
        bits: int,
        cutoff: int,
        progress: bool = False,
        workers: Workers = Workers(),  # noqa: B008  # immutable
    ) -> "HashedIndex":
        """Take the buckets that features of a view fall into at least `cutoff` times.

        Each of several workers counts those of as many templates, in a table of its own.
        """
        workers = workers.at_most(min(len(view.chunks()) // MIN_CHUNKS, len(templates)))
        shares = [templates[i :: workers.number] for i in range(workers.number)]
        several = workers.number > 1
        tallying = partial(partial, _tallied, view, bits, progress and not several)
        with closing(workers.each(tallying, shares)) as each:
            tally = next(each)
            for other in bar(each, "hashing features", len(shares) - 1, progress and several):
                tally.merge(other)
        buckets = tally.met(cutoff)
        named = sampled_names(view, reading, templates, buckets)
        return cls(templates, buckets, named._replace(distinct=tally.distinct, occupied=tally.occupied))

    @classmethod
    def restore(
        cls, templates: Sequence[Template], bits: int, strings: Mapping[str, Any], arrays: Arrays, place: str
    ) -> "HashedIndex":
        """Rebuild an index from `strings` and `arrays`. Raises InputError, naming the place, for any others."""
        buckets = Buckets.restore(bits, arrays["buckets"], place)
        return cls(templates, buckets, BucketNames.from_json(strings, arrays["named"], place))

    def __reduce__(self) -> tuple[Any, ...]:
        return HashedIndex, (self.templates, self._buckets, self._known)  # copies and pickles are without lookups

    def __len__(self) -> int:
        return len(self._buckets)

    def encode(self, view: View, progress: bool = False) -> IdLists:
        """Return the ids of the features at each token of a view."""
        return self._lookup.encode(view, progress)

    def names(self, rows: np.ndarray) -> list[str]:
        """Return what is known of the features with these ids (n,)."""
        return self._known.of(self._buckets.numbers[rows])

    def subset(self, keep: np.ndarray) -> "HashedIndex":
        """Return the index of the buckets for which keep (F,) bool is true, renumbered in the same order."""
        buckets = self._buckets.subset(keep)
        return HashedIndex(self.templates, buckets, self._known.within(buckets))

    def same(self, other: Index) -> bool:
        """Tell whether both give the same ids to the same features."""
        return (
            isinstance(other, HashedIndex)
            and self.templates == other.templates
            and np.array_equal(self._buckets.numbers, other._buckets.numbers)
        )

    def sizes(self) -> list[int]:
        """Return nothing: templates share their buckets."""
        return []

    def summary(self) -> str:
        """Return how many features share how many buckets."""
        return self._known.summary(self._buckets)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return "buckets" and "named": the buckets with features, and those of the sample of names, both int32."""
        return {"buckets": self._buckets.numbers, "named": self._known.buckets}

    def strings(self) -> dict[str, Any]:
        """Return the sample of names, and how many features there were in how many buckets."""
        return self._known.to_json()

    @cached_property
    def _lookup(self) -> "TemplateLookup":
        from structperc.features.lookup import (
            HashedLookup,  # compiled: imported when it is first needed
            TemplateLookup,
        )

        return TemplateLookup(self.templates, HashedLookup(self.templates, self._buckets))


def _tallied(view: View, bits: int, progress: bool, templates: Sequence[Template]) -> BucketCounter:
    """What the features of some templates fall into at the tokens of a view."""
    tally = BucketCounter(bits)
    for template in bar(templates, "hashing features", show=progress):
        for chunk in view.chunks():
            tally.add(hashed_keys(chunk, template))
    return tally
