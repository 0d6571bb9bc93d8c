"""The frozen feature index: which conjunctions of values are features, and their ids.

Ids are given template by template and by ascending key within one.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from structperc.errors import InputError
from structperc.features.id_lists import IdLists
from structperc.features.keys import ValueCodes, frequent_keys, radices, split_keys, template_keys
from structperc.features.numbering import Index
from structperc.features.templates import Template, TemplatePart, template_name
from structperc.features.windows import MIN_CHUNKS, View
from structperc.process_pool import Workers
from structperc.progress import bar

if TYPE_CHECKING:
    from structperc.features.lookup import TemplateLookup


class ExactIndex(Index):
    """The features of a list of templates.

    Args:
        templates: which conjunctions are features.
        vocabularies: of all attributes that the templates name.
        keys: for each template the sorted keys (int64) that are features.
    """

    def __init__(
        self,
        templates: Sequence[Template],
        vocabularies: Mapping[str, ValueCodes],
        keys: Sequence[np.ndarray],
    ) -> None:
        self.templates = tuple(templates)
        self.keys = tuple(keys)
        self._sizes = [radices(template, vocabularies) for template in templates]
        self._vocabularies = vocabularies
        self._first = np.cumsum([0, *map(len, keys)]).tolist()

    @classmethod
    def count(
        cls,
        view: View,
        templates: Sequence[Template],
        vocabularies: Mapping[str, ValueCodes],
        cutoff: int,
        progress: bool = False,
        workers: Workers = Workers(),  # noqa: B008  # immutable
    ) -> "ExactIndex":
        """Index what occurs at least `cutoff` times in a view. Workers count the features of a template each."""
        workers = workers.at_most(len(view.chunks()) // MIN_CHUNKS)
        asked = ((template, radices(template, vocabularies)) for template in templates)
        with closing(workers.each(partial(partial, _frequent, view, cutoff), asked)) as each:
            keys = [*bar(each, "counting features", len(templates), progress)]
        return cls(templates, vocabularies, keys)

    @classmethod
    def from_arrays(
        cls,
        templates: Sequence[Template],
        vocabularies: Mapping[str, ValueCodes],
        keys: np.ndarray,
        sizes: np.ndarray,
    ) -> "ExactIndex":
        """Rebuild an index from `arrays`; raises InputError for arrays that are not of these templates."""
        if keys.dtype != np.int64 or sizes.dtype != np.int64 or keys.ndim != 1 or sizes.shape != (len(templates),):
            raise InputError(f"features: keys and their numbers of {len(templates)} templates are due, as int64")
        if (sizes < 0).any() or sizes.sum() != len(keys):
            raise InputError(f"features: there are {len(keys)} keys, not {sizes.sum()}")
        parts = np.split(keys, np.cumsum(sizes))[: len(sizes)]
        for template, own in zip(templates, parts, strict=True):
            space = prod(radices(template, vocabularies))
            if len(own) and not (own[0] >= 0 and own[-1] < space and (np.diff(own) > 0).all()):
                raise InputError(f"features: keys of template {template_name(template)!r} are out of range or order")
        return cls(templates, vocabularies, parts)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return "keys", all of them template by template (F,), and "sizes", how many each has; int64."""
        keys = np.concatenate([np.empty(0, np.int64), *self.keys])
        return {"keys": keys, "sizes": np.diff(self._first).astype(np.int64)}

    def strings(self) -> dict[str, Any]:
        """Return nothing: the values that keys are made of are not kept here."""
        return {}

    def sizes(self) -> list[int]:
        """Return how many features each template has; their ids are neighbours."""
        return list(map(len, self.keys))

    def summary(self) -> str:
        """Return nothing: each feature has an id of its own."""
        return ""

    def same(self, other: Index) -> bool:
        """Tell whether both give the same ids to the same features."""
        if not isinstance(other, ExactIndex) or self.templates != other.templates:
            return False
        return all(map(np.array_equal, self.keys, other.keys))

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactIndex, (self.templates, self._vocabularies, self.keys)  # copies and pickles are without lookups

    def __len__(self) -> int:
        return self._first[-1]

    def encode(self, view: View, progress: bool = False) -> IdLists:
        """Return the ids of the features at each token of a view."""
        return self._lookup.encode(view, progress)

    def names(self, rows: np.ndarray) -> list[str]:
        """Return the features with these ids, ascending (n,), as "wl[-1]=the|wl[0]=cat"; the bias is "bias"."""
        own = np.split(rows, np.searchsorted(rows, self._first[1:-1]))
        parts = zip(range(len(self.templates)), own, self._first, strict=False)  # without templates there is one, too
        return [name for number, mine, first in parts for name in self._names(number, mine - first)]

    def subset(self, keep: np.ndarray) -> "ExactIndex":
        """Return the index of the features for which keep (F,) bool is true, renumbered in the same order."""
        masks = np.split(keep, self._first[1:-1])[: len(self.keys)]  # without templates there is one, too
        kept = [keys[mask] for keys, mask in zip(self.keys, masks, strict=True)]
        return ExactIndex(self.templates, self._vocabularies, kept)

    @cached_property
    def _lookup(self) -> "TemplateLookup":
        from structperc.features.lookup import (
            ExactLookup,
            TemplateLookup,  # compiled: imported when it is first needed
        )

        return TemplateLookup(self.templates, ExactLookup(self._sizes, self.keys))

    def _names(self, number: int, ranks: np.ndarray) -> Iterable[str]:
        """The features of a template with these ranks (n,) among its own."""
        template = self.templates[number]
        if not template:
            return [template_name(template)] * len(ranks)
        codes = split_keys(self.keys[number][ranks], self._sizes[number])
        return map("|".join, zip(*map(self._part_names, template, codes), strict=True))

    def _part_names(self, part: TemplatePart, codes: np.ndarray) -> list[str]:
        name = self._vocabularies[part.attribute].name
        return [f"{part}={name(code)}" for code in codes.tolist()]


def _frequent(view: View, cutoff: int, asked: tuple[Template, tuple[int, ...]]) -> np.ndarray:
    """The keys of a template, whose parts have so many codes, that are features of a view."""
    template, sizes = asked
    return frequent_keys((template_keys(chunk, template, sizes) for chunk in view.chunks()), sizes, cutoff)
