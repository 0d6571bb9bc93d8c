"""Names of features by their buckets, as far as a sample of the training data has them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from structperc.data.json_data import check_fields
from structperc.errors import InputError
from structperc.features.hashing import Buckets, bucket_numbers, hashed_keys
from structperc.features.keys import NO_FEATURE
from structperc.features.sources import Attributes
from structperc.features.templates import Template, TemplatePart, template_name
from structperc.features.windows import View, boundary_names

TOKENS = 2**14  # at most so many tokens are looked at for names, evenly spread over the corpus
NAMES = 2**15  # and so many names are kept, of the features that these tokens have most often


class BucketNames(NamedTuple):
    """The names that are known of features, and what is known of the others."""

    buckets: np.ndarray  # (n,) int32, of each name, those of more frequent features first
    names: list[str]  # n
    distinct: int  # about how many features there were in the training data
    occupied: int  # in how many buckets they were

    def of(self, numbers: np.ndarray) -> list[str]:
        """Return what is known of the features in each of these buckets (m,), as one string each."""
        wanted: dict[int, list[str]] = {number: [] for number in numbers.tolist()}
        for bucket, name in zip(self.buckets.tolist(), self.names, strict=True):
            if bucket in wanted:
                wanted[bucket].append(name)
        return [_together(number, wanted[number]) for number in numbers.tolist()]

    def within(self, buckets: Buckets) -> "BucketNames":
        """Return the names of features in some buckets alone."""
        kept = np.isin(self.buckets, buckets.numbers)
        names = [name for name, wanted in zip(self.names, kept.tolist(), strict=True) if wanted]
        return self._replace(buckets=self.buckets[kept], names=names)

    def summary(self, buckets: Buckets) -> str:
        """Return how many features share how many buckets, as one line."""
        shared = 100 * (self.distinct - self.occupied) / max(self.distinct, 1)
        return (
            f"about {self.distinct:,} different ones in {self.occupied:,} of {2**buckets.bits:,} buckets "
            f"(hash_bits: {buckets.bits}), {shared:.1f}% came to one that had one already; {len(buckets):,} are kept; "
            f"a sample of the training data has names of {len(self.names):,} features"
        )

    def to_json(self) -> dict[str, Any]:
        """Return all but the buckets as plain JSON types."""
        return {"names": self.names, "distinct": self.distinct, "occupied": self.occupied}

    @classmethod
    def from_json(cls, state: Mapping[str, Any], buckets: np.ndarray, place: str) -> "BucketNames":
        """Rebuild names from `to_json`. Raises InputError, naming the place, for what does not fit together."""
        check_fields(state, {"names": list[str], "distinct": int, "occupied": int}, place)
        if buckets.dtype != np.int32 or buckets.shape != (len(state["names"]),):
            raise InputError(f"{place}: {len(state['names'])} names have no bucket each")
        return cls(buckets, state["names"], state["distinct"], state["occupied"])


class _Met(NamedTuple):
    """Features of a template among some tokens, each once."""

    counts: np.ndarray  # (n,) int64
    buckets: np.ndarray  # (n,) int64
    tokens: np.ndarray  # (n,) int64, one that has it


_NONE = _Met(*[np.empty(0, np.int64)] * 3)


def sampled_names(view: View, reading: Attributes, templates: Sequence[Template], buckets: Buckets) -> BucketNames:
    """Return names of the most frequent features of a view, as far as they have ids; it says nothing of all others."""
    tokens = np.unique(np.linspace(0, view.tokens - 1, min(view.tokens, TOKENS)).astype(np.int64))
    met = [_met(view, template, tokens, buckets) for template in templates]
    counts, numbers, places = map(np.concatenate, zip(_NONE, *met, strict=True))
    chosen = np.sort((-counts).argsort(kind="stable")[:NAMES])  # template by template
    own = np.split(chosen, chosen.searchsorted(np.cumsum([len(one.counts) for one in met])))
    named = (
        _template_names(view, reading, template, places[one]) for template, one in zip(templates, own, strict=False)
    )
    by_count = (-counts[chosen]).argsort(kind="stable")
    names = np.array([name for of_template in named for name in of_template], object)[by_count]
    return BucketNames(numbers[chosen][by_count].astype(np.int32), names.tolist(), 0, 0)


def _at(tokens: np.ndarray, view: View, values: Callable[[View], np.ndarray]) -> np.ndarray:
    """What a view shows at some tokens (n,), looked at piece by piece; (n,)."""
    chunks, order = view.chunks() or [view], tokens.argsort(kind="stable")
    ends = np.cumsum([chunk.tokens for chunk in chunks])
    own = np.split(tokens[order], tokens[order].searchsorted(ends[:-1]))
    parts = [values(chunk)[mine - end + chunk.tokens] for chunk, mine, end in zip(chunks, own, ends, strict=True)]
    found = np.concatenate(parts)
    shown = np.empty_like(found)
    shown[order] = found
    return shown


def _met(view: View, template: Template, tokens: np.ndarray, buckets: Buckets) -> _Met:
    sampled = _at(tokens, view, lambda chunk: hashed_keys(chunk, template))
    keys, first, counts = np.unique(sampled, return_index=True, return_counts=True)
    kept = buckets.find(keys) != NO_FEATURE
    return _Met(counts[kept].astype(np.int64), bucket_numbers(keys[kept], buckets.bits), tokens[first[kept]])


def _template_names(view: View, reading: Attributes, template: Template, tokens: np.ndarray) -> Iterable[str]:
    """The names of the features of a template at some tokens (n,)."""
    if not template:
        return [template_name(template)] * len(tokens)
    return map("|".join, zip(*(_part_names(view, reading, part, tokens) for part in template), strict=True))


def _part_names(view: View, reading: Attributes, part: TemplatePart, tokens: np.ndarray) -> list[str]:
    beyond, values = boundary_names(view.max_offset), reading.values[part.attribute]
    numbers = _at(tokens, view, lambda chunk: chunk.numbers(part)).tolist()
    return [f"{part}={beyond[n] if n < len(beyond) else values[n - len(beyond)]}" for n in numbers]


def _together(number: int, names: list[str]) -> str:
    """The names that share a bucket as one."""
    if not names:
        return f"bucket {number}"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
