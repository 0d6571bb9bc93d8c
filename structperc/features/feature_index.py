"""The index of an extractor: the numbers and names of its features."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structperc.data.corpus import Corpus
from structperc.features.exact_index import ExactIndex, ExactNumbering, ExplicitVocabulary
from structperc.features.hashed_index import HashedIndex, HashedNumbering, HashedVocabulary
from structperc.features.string_arrays import FeatureIds, View
from structperc.features.templates import Template, template_name
from structperc.features.weighted_features import WeightedFeatures

Index = ExactIndex | HashedIndex
Numbering = ExactNumbering | HashedNumbering


class FeatureIndex:
    """Numbers and names of features of two kinds, "node" and "edge".

    Args:
        numbering: numbers of the values of attributes.
        indices: the indices by kind, one object if both are the same; none before the extractor is fitted.
        weighted: further node features, which the data list with weights; their numbers follow those of the index.

    Example:
        >>> from structperc import Corpus, FeatureExtractor
        >>> corpus = Corpus.from_sentences([{"word": ["the", "cat"]}])
        >>> features = FeatureExtractor(node=["w[0]", "wl[-1]"], cutoff=1)
        >>> features.fit(corpus)
        >>> features.index.names("node")
        ['w[0]=the', 'w[0]=cat', 'wl[-1]=_B-1', 'wl[-1]=the']
        >>> features.index.template_sizes("node")
        [('w[0]', 2), ('wl[-1]', 2)]
    """

    def __init__(self, numbering: Numbering, indices: Mapping[str, Index], weighted: WeightedFeatures | None) -> None:
        self.numbering, self.indices, self.weighted = numbering, dict(indices), weighted

    def of(self, kind: str) -> Index:
        """Return the index of a kind. Raises ValueError for an unknown kind, RuntimeError before `fit`."""
        if not self.indices:
            raise RuntimeError("the feature extractor has no index yet; call fit with the training corpus first")
        if kind not in self.indices:
            raise ValueError(f"there are no {kind!r} features; kinds are {', '.join(self.indices)}")
        return self.indices[kind]

    def size(self, kind: str) -> int:
        """Return the number of features of a kind."""
        return len(self.of(kind)) + self._n_weighted(kind)

    @property
    def shared(self) -> bool:
        """True if edges have the features of the nodes' templates, with the same ids."""
        return "edge" in self.indices and self.indices["edge"] is self.indices["node"]

    def names(self, kind: str, rows: np.ndarray | None = None) -> list[str]:
        """Return the names of features, such as "wl[-1]=the|wl[0]=cat".

        A hashed feature may have no name or several in a sample of the training data: "bucket 1234", "wl[0]=cat and 2
        more".

        Args:
            kind: "node" or "edge".
            rows: ascending ids (n,); None for all.
        """
        index = self.of(kind)
        n = len(index)
        wanted = np.arange(n + self._n_weighted(kind)) if rows is None else rows
        indexed, listed = wanted[wanted < n], wanted[wanted >= n] - n
        names = index.names(indexed)
        return [*names, *self.weighted.vocabulary.names(listed)] if self.weighted is not None and len(listed) else names

    def template_sizes(self, kind: str) -> list[tuple[str, int]]:
        """Return the templates of a kind with the numbers of their features, whose ids are consecutive.

        Features listed in the data count as a template. Empty for hashed features.
        """
        index = self.of(kind)
        sizes = [*zip(map(template_name, index.templates), index.sizes(), strict=False)]
        if len(sizes) < len(index.templates):
            return []
        listed = self.weighted if kind == "node" else None
        return sizes if listed is None else [*sizes, (listed.column, len(listed))]

    def summary(self) -> list[str]:
        """Return a line about shared ids for each kind of hashed features; no lines for features with an index."""
        lines = {name: part.summary() for name, part in self._parts().items()}
        return [f"{name} features: {line}" for name, line in lines.items() if line]

    def subset(self, kind: str, keep: np.ndarray) -> "FeatureIndex":
        """Return an index with some of the features of a kind, renumbered.

        Args:
            kind: "node" or "edge".
            keep: (F,) bool, True for features to keep.

        Raises:
            ValueError: another shape of `keep`.
        """
        n = len(self.of(kind))
        if keep.shape != (self.size(kind),):
            raise ValueError(f"keep has shape {keep.shape}; there are {self.size(kind)} {kind} features")
        indices = self.indices | {kind: self.indices[kind].subset(keep[:n])}
        if "edge" in indices and indices["edge"].same(indices["node"]):
            indices["edge"] = indices["node"]  # one lookup for both
        weighted = self.weighted.subset(keep[n:]) if self.weighted is not None and kind == "node" else self.weighted
        return FeatureIndex(self.numbering, indices, weighted)

    def merge(self, other: "FeatureIndex") -> tuple["FeatureIndex", dict[str, np.ndarray]]:
        """Return an index with the features of another one, too, and the new ids (F,) int64 of the own ones by kind.

        `other`: the index of the same templates, whose numbering extends the own one.
        """
        kinds = ["node"] if self.shared else [*self.indices]
        indices, ids = {}, {}
        for kind in kinds:
            indices[kind], ids[kind] = _merge(self.indices[kind], other.indices[kind])
        if self.shared:
            indices["edge"], ids["edge"] = indices["node"], ids["node"]
        weighted = self.weighted
        if weighted is not None and other.weighted is not None:
            vocabulary, weighted_ids = _merge(weighted.vocabulary, other.weighted.vocabulary)
            weighted = WeightedFeatures(weighted.column, vocabulary)
            ids["node"] = np.concatenate([ids["node"], len(indices["node"]) + weighted_ids])
        return FeatureIndex(other.numbering, indices, weighted), ids

    def encode(self, view: View, corpus: Corpus, progress: bool) -> FeatureIds:
        """Return the ids at each token of a corpus, given its view."""
        node, edge = self.of("node"), self.indices.get("edge")
        lists = node.encode(view, progress)
        nodes = lists if self.weighted is None else lists.concatenate(self.weighted.encode(corpus, len(node)))
        if edge is None:
            return FeatureIds(nodes, None)
        return FeatureIds(nodes, lists if edge is node else edge.encode(view, progress))

    def strings(self) -> dict[str, dict[str, Any]]:
        """Return the names of hashed features by name of the part, as plain JSON types."""
        return {name: strings for name, part in self._parts().items() if (strings := part.strings())}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the indices by name, see `FeatureExtractor.state_arrays`."""
        parts = self._parts().items()
        return {f"{name}_{key}": array for name, part in parts for key, array in part.arrays().items()}

    def restore(
        self, strings: Mapping[str, Any], arrays: Mapping[str, np.ndarray], templates: Mapping[str, Sequence[Template]]
    ) -> "FeatureIndex":
        """Return the index of a saved state, given one with its numbering.

        Args:
            strings: state of the extractor.
            arrays: arrays of the extractor.
            templates: templates by kind.

        Raises:
            InputError: an invalid or inconsistent state.
        """
        indices, buckets, weighted = {}, strings["buckets"], self.weighted
        for kind in templates:
            if kind_arrays := arrays_within(arrays, f"{kind}_"):
                named = buckets.get(kind, {})
                indices[kind] = self.numbering.restore_index(templates[kind], named, kind_arrays, f"features.{kind}")
        if templates["edge"]:
            indices.setdefault("edge", indices["node"])
        if weighted is not None:
            state = strings["weighted"]["names"], buckets.get("weighted", {}), arrays_within(arrays, "weighted_")
            weighted = WeightedFeatures(weighted.column, weighted.vocabulary.restore(*state, "features.weighted"))
        return FeatureIndex(self.numbering, indices, weighted)

    def _n_weighted(self, kind: str) -> int:
        return len(self.weighted) if self.weighted is not None and kind == "node" else 0

    def _parts(self) -> dict[str, Index | ExplicitVocabulary | HashedVocabulary]:
        """Return the saved indices and vocabulary by name, without edges that share the nodes' index."""
        parts: dict[str, Any] = {"node": self.indices["node"]} if self.shared else {**self.indices}
        return parts if self.weighted is None else {**parts, "weighted": self.weighted.vocabulary}


def _merge(one: Any, other: Any) -> tuple[Any, np.ndarray]:
    """Merge two indices or vocabularies of the same class."""
    return one.merge(other)


def arrays_within(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with a prefix, without the prefix."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
