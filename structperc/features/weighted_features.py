r"""Features listed in the data as strings of a column, each with a weight.

Strings have the format of CRFsuite's data files: items separated by tabs, each a name, optionally followed by a colon
and a weight (1 by default): `w:the` with weight 1 and `len` with weight 3 are "w\:the TAB len:3.0". Colons and
backslashes in names are escaped by a backslash; tab and end of line are `\t` and `\n`.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property, lru_cache
from itertools import chain, pairwise
from typing import Any

import numpy as np

from structperc.data.corpus import Column, Corpus, Factorized, StringEncoder, factorize
from structperc.errors import InputError
from structperc.features.exact_index import ExplicitVocabulary
from structperc.features.hashed_index import HashedVocabulary
from structperc.features.string_arrays import NO_FEATURE, IdLists

WeightedName = tuple[str, float]
_ESCAPES = str.maketrans({"\\": "\\\\", ":": "\\:", "\t": "\\t", "\n": "\\n"})
_ITEM = re.compile(r"((?:[^\\:]|\\.)*)(?::(.*))?")
_LETTERS = {"t": "\t", "n": "\n"}
LARGEST = float(np.finfo(np.float32).max)


def format_weighted_features(features: Iterable[WeightedName]) -> str:
    r"""Format names and weights as one string for a column of a corpus.

    Args:
        features: pairs (name, weight); features of weight 0 are omitted.

    Returns:
        the string, with tabs between features.

    Example:
        >>> format_weighted_features([("w:the", 1), ("len", 3), ("dot", 0)])
        'w\\:the\tlen:3.0'
    """
    return "\t".join(_format(name, weight) for name, weight in features if weight != 0)


@lru_cache(2**18)
def _format(name: str, weight: float) -> str:
    escaped = name.translate(_ESCAPES)
    return escaped if weight == 1 and name else f"{escaped}:{float(weight)!r}"


class FeatureColumn(Column):
    r"""A column of weighted features, whose strings are formatted only when they are read.

    Args:
        names: names of F features.
        weights: (F,) float64; features of weight 0 have no effect.
        lists: the indices of the features at each of N tokens.
    """

    def __init__(self, names: list[str], weights: np.ndarray, lists: IdLists) -> None:
        self.names, self.weights, self.lists = names, weights, lists

    @classmethod
    def from_items(cls, items: Iterable[Iterable[WeightedName]], lists: IdLists) -> "FeatureColumn":
        """Return the features of items.

        Args:
            items: the features of each distinct item.
            lists: the indices of the items at each token.
        """
        names: list[str] = []
        weights: list[float] = []
        ends = [0]
        for item in items:
            for name, weight in item:
                names.append(name)
                weights.append(weight)
            ends.append(len(names))
        selected = IdLists(np.arange(len(names)), np.array(ends)).select(lists.ids)
        return cls(names, np.array(weights, np.float64), IdLists(selected.ids, selected.ends[lists.ends]))

    @cached_property
    def strings(self) -> Factorized:  # type: ignore[override]  # made when first read
        """The strings, see `format_weighted_features`."""
        features = list(zip(self.names, self.weights.tolist(), strict=True))
        parts = ([features[i] for i in self.lists.ids[a:b].tolist()] for a, b in pairwise(self.lists.ends.tolist()))
        return factorize(list(map(format_weighted_features, parts)))

    def __len__(self) -> int:
        return len(self.lists.ends) - 1

    def take(self, places: slice | np.ndarray) -> "FeatureColumn":
        """Return the features at a slice or at (n,) positions as a column."""
        return FeatureColumn(self.names, self.weights, self.lists.select(np.arange(len(self))[places]))


class WeightedFeatures:
    """Features listed in the strings of a column.

    Args:
        column: the role of the column.
        vocabulary: ids of the names.
    """

    def __init__(self, column: str, vocabulary: ExplicitVocabulary | HashedVocabulary) -> None:
        self.column, self.vocabulary = column, vocabulary

    def __len__(self) -> int:
        return len(self.vocabulary)

    def fit(self, corpus: Corpus, cutoff: int) -> "WeightedFeatures":
        """Return the features listed at least `cutoff` times in a corpus. Raises InputError as `encode` does."""
        column, counts = self._read(corpus), Counter[str]()
        occurrences = np.bincount(column.lists.ids, minlength=len(column.names))
        for i in np.flatnonzero(column.weights).tolist():
            counts[column.names[i]] += int(occurrences[i])
        return WeightedFeatures(self.column, self.vocabulary.count(counts, cutoff))

    def encode(self, corpus: Corpus, first: int = 0) -> IdLists:
        """Return the ids of the features at each token, numbered from `first`, with weights unless all are 1.

        Raises InputError for a missing column and an invalid string.
        """
        column = self._read(corpus)
        lists = column.lists
        ids, weights = self.vocabulary.find(column.names)[lists.ids], column.weights.astype(np.float32)[lists.ids]
        kept = (ids != NO_FEATURE) & (weights != 0)
        weights = weights[kept]
        ends = np.concatenate([np.zeros(1, np.int64), kept.cumsum()])[lists.ends]
        return IdLists(ids[kept] + np.int32(first), ends, None if (weights == 1).all() else weights)

    def subset(self, keep: np.ndarray) -> "WeightedFeatures":
        """Return the features for which keep (F,) bool is true, renumbered in the same order."""
        return WeightedFeatures(self.column, self.vocabulary.subset(keep))

    def to_json(self) -> dict[str, Any]:
        """Return {"column": ..., "names": [...]}; hashed names are not listed."""
        return {"column": self.column, "names": list(self.vocabulary.listed)}

    def _read(self, corpus: Corpus) -> FeatureColumn:
        """Return the features at each token; each distinct item of a string is parsed once."""
        if self.column not in corpus.columns:
            roles = ", ".join(role for role in corpus.columns if role != "label")
            raise InputError(f"{corpus.name}: no column {self.column!r}, which lists features, among {roles}")
        column = corpus.columns[self.column]
        if isinstance(column, FeatureColumn):
            return column
        distinct, numbers = corpus.factorize(self.column)
        items, encoder = [text.split("\t") if text else [] for text in distinct], StringEncoder()
        ids = encoder.encode(list(chain.from_iterable(items)))
        lists = IdLists.from_counts(ids, np.array(list(map(len, items)), np.int64))
        parsed = ([self._parse_item(item, corpus)] for item in encoder.distinct)
        return FeatureColumn.from_items(parsed, lists).take(numbers)

    def _parse_item(self, item: str, corpus: Corpus) -> WeightedName:
        parsed = _ITEM.fullmatch(item)
        try:
            weight = 1.0 if parsed is None or parsed[2] is None else float(parsed[2])
        except ValueError:
            weight = np.nan
        if parsed is None or not abs(weight) <= LARGEST:
            raise InputError(
                f"{corpus.name}: column {self.column!r} lists {item!r:.60}; give a name, or name:weight with a finite "
                "number and \\: for colons in the name"
            )
        return re.sub(r"\\(.)", lambda match: _LETTERS.get(match[1], match[1]), parsed[1]), weight
