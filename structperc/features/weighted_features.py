r"""Features listed in the data as strings of a column, each with a weight.

Strings have the format of CRFsuite's data files: items separated by tabs, each a name, optionally followed by a colon
and a weight (1 by default): `w:the` with weight 1 and `len` with weight 3 are "w\:the TAB len:3.0". Colons and
backslashes in names are escaped by a backslash; tab and end of line are `\t` and `\n`.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from structperc.data.corpus import Corpus, Factorized
from structperc.errors import InputError
from structperc.features.arrays import NO_FEATURE, IdLists
from structperc.features.exact_index import ExplicitVocabulary
from structperc.features.hashed_index import HashedVocabulary

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
        column = self._column(corpus)
        times = np.bincount(column.numbers, minlength=len(column.distinct)).tolist()
        names = ([name for name, _ in features] for features in self._parse(corpus))
        return WeightedFeatures(self.column, self.vocabulary.count(zip(names, times, strict=True), cutoff))

    def encode(self, corpus: Corpus, first: int = 0) -> IdLists:
        """Return the ids of the features at each token, numbered from `first`, with weights unless all are 1.

        Raises InputError for a missing column and an invalid string.
        """
        found = [[(self.vocabulary.find(name), weight) for name, weight in one] for one in self._parse(corpus)]
        known = [[(i, weight) for i, weight in one if i != NO_FEATURE] for one in found]
        ids = np.array([i for one in known for i, _ in one], np.int32) + np.int32(first)
        weights = np.array([weight for one in known for _, weight in one], np.float32)
        distinct = IdLists.from_counts(ids, np.array([len(one) for one in known], np.int64), weights)
        lists = distinct._replace(weights=None) if (weights == 1).all() else distinct
        return lists.select(self._column(corpus).numbers)

    def subset(self, keep: np.ndarray) -> "WeightedFeatures":
        """Return the features for which keep (F,) bool is true, renumbered in the same order."""
        return WeightedFeatures(self.column, self.vocabulary.subset(keep))

    def to_json(self) -> dict[str, Any]:
        """Return {"column": ..., "names": [...]}; hashed names are not listed."""
        return {"column": self.column, "names": list(self.vocabulary.listed)}

    def _column(self, corpus: Corpus) -> Factorized:
        if self.column not in corpus.columns:
            roles = ", ".join(role for role in corpus.columns if role != "label")
            raise InputError(f"{corpus.name}: no column {self.column!r}, which lists features, among {roles}")
        return corpus.factorize(self.column)

    def _parse(self, corpus: Corpus) -> Iterable[list[WeightedName]]:
        """Yield the features of each distinct string, without those of weight 0; each item is parsed once."""
        known: dict[str, WeightedName] = {}
        for text in self._column(corpus).distinct:
            items = text.split("\t") if text else []
            for item in items:
                if item not in known:
                    known[item] = self._parse_item(item, corpus)
            yield [known[item] for item in items if known[item][1] != 0]

    def _parse_item(self, item: str, corpus: Corpus) -> WeightedName:
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
