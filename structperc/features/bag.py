r"""Features that data bring along, each with a weight, as strings of a column.

A string lists them as CRFsuite's data files do: items between tabs, each a name, or a name, a colon and a weight, which
is 1 where none is given: `w:the` with weight 1 and `len` with weight 3 are the string "w\:the TAB len:3.0". In names a
backslash stands before each colon and backslash; tab and end of line are `\t` and `\n`.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.features.id_lists import IdLists
from structperc.features.keys import NO_FEATURE
from structperc.features.listed_names import FeatureNames

WeightedName = tuple[str, float]  # name and weight
_ESCAPES = str.maketrans({"\\": "\\\\", ":": "\\:", "\t": "\\t", "\n": "\\n"})
_ITEM = re.compile(r"((?:[^\\:]|\\.)*)(?::(.*))?")
LARGEST = float(np.finfo(np.float32).max)
_LETTERS = {"t": "\t", "n": "\n"}


def format_weighted_features(features: Iterable[WeightedName]) -> str:
    """Return names and weights as one string, which a column of a corpus can hold; weights of 0 are left out."""
    return "\t".join(_written(name, weight) for name, weight in features if weight != 0)


@lru_cache(2**18)
def _written(name: str, weight: float) -> str:
    escaped = name.translate(_ESCAPES)
    return escaped if weight == 1 and name else f"{escaped}:{float(weight)!r}"


class WeightedFeatures:
    """The features that strings of a column list, and their ids.

    Args:
        column: the role of the column.
        known: the names that have ids.
    """

    def __init__(self, column: str, known: FeatureNames) -> None:
        self.column, self._known = column, known

    def __len__(self) -> int:
        return len(self._known)

    def count(self, corpus: Corpus, cutoff: int) -> "WeightedFeatures":
        """Return the features that a corpus lists at least `cutoff` times. Raises InputError as `encode` does."""
        held = self._strings(corpus)
        times = np.bincount(held.numbers, minlength=len(held.distinct)).tolist()
        names = ([name for name, _ in features] for features in self._read(corpus))
        return WeightedFeatures(self.column, self._known.count(zip(names, times, strict=True), cutoff))

    def encode(self, corpus: Corpus, first: int = 0) -> IdLists:
        """Return the ids of the features at each token, counted from `first` on, with weights unless all are 1.

        Raises InputError for a corpus without the column, and for a string that lists no features.
        """
        held = self._strings(corpus)
        found = [[(self._known.find(name), weight) for name, weight in one] for one in self._read(corpus)]
        known = [[(i, weight) for i, weight in one if i != NO_FEATURE] for one in found]
        ids = np.array([i for one in known for i, _ in one], np.int32) + np.int32(first)
        weights = np.array([weight for one in known for _, weight in one], np.float32)
        distinct = IdLists.of_counts(ids, np.array([len(one) for one in known], np.int64), weights)
        return (distinct._replace(weights=None) if (weights == 1).all() else distinct).select(held.numbers)

    def names(self, rows: np.ndarray) -> list[str]:
        """Return the features with these ids (n,)."""
        return self._known.names(rows)

    def subset(self, keep: np.ndarray) -> "WeightedFeatures":
        """Return the features for which keep (F,) bool is true, renumbered in the same order."""
        return WeightedFeatures(self.column, self._known.subset(keep))

    def summary(self) -> str:
        """Return what is to be known about the ids, as one line; nothing where each feature has its own."""
        return self._known.summary()

    def to_json(self) -> dict[str, Any]:
        """Return the bag as {"column": ..., "names": [...]}."""
        return {"column": self.column, "names": self._known.listed}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the numbers of the state by name."""
        return self._known.arrays()

    def strings(self) -> dict[str, Any]:
        """Return the strings of the state that are not in `to_json`."""
        return self._known.strings()

    def restore(
        self, state: Mapping[str, Any], strings: Mapping[str, Any], arrays: Mapping[str, np.ndarray], place: str
    ) -> "WeightedFeatures":
        """Return the bag that told this state. Raises InputError, naming the place, for any other."""
        return WeightedFeatures(self.column, self._known.restore(state["names"], strings, arrays, place))

    def _strings(self, corpus: Corpus) -> Any:
        if self.column not in corpus.columns:
            roles = ", ".join(role for role in corpus.columns if role != "label")
            raise InputError(f"{corpus.name}: no column {self.column!r}, which lists features, among {roles}")
        return corpus.factorize(self.column)

    def _read(self, corpus: Corpus) -> Iterable[list[WeightedName]]:
        """The features of each distinct string, without those of weight 0; an item is looked at once."""
        known: dict[str, WeightedName] = {}
        for text in self._strings(corpus).distinct:
            items = text.split("\t") if text else []
            for item in items:
                if item not in known:
                    known[item] = self._item(item, corpus)
            yield [known[item] for item in items if known[item][1] != 0]

    def _item(self, item: str, corpus: Corpus) -> WeightedName:
        found = _ITEM.fullmatch(item)
        try:
            weight = 1.0 if found is None or found[2] is None else float(found[2])
        except ValueError:
            weight = np.nan
        if found is None or not abs(weight) <= LARGEST:
            raise InputError(
                f"{corpus.name}: column {self.column!r} lists {item!r:.60}; give a name, or name:weight with a finite "
                "number and \\: for colons in the name"
            )
        return re.sub(r"\\(.)", lambda match: _LETTERS.get(match[1], match[1]), found[1]), weight
