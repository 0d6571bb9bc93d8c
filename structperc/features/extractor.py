"""The feature extractor: from a corpus to feature ids."""

import copy
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from structperc.data.corpus import Column, Corpus
from structperc.data.json_data import check_fields
from structperc.data.splits import Extent
from structperc.errors import InputError, errors_at
from structperc.features.attribute_sources import Attributes, Resources, Sources
from structperc.features.attributes import attribute_path
from structperc.features.documents import DocumentAttribute, PartBuilder, restore
from structperc.features.exact_index import ExactIndex, ExactNumbering, ExplicitVocabulary
from structperc.features.hashed_index import HashedIndex, HashedNumbering, HashedVocabulary
from structperc.features.resources import Clusters, Gazetteer
from structperc.features.string_arrays import FeatureIds, View
from structperc.features.templates import Template, parse_templates, read_crfpp, template_name
from structperc.features.weighted_features import WeightedFeatures
from structperc.process_pool import Workers

if TYPE_CHECKING:
    from structperc.features.encoded_features import EncodedFeatures

logger = logging.getLogger("pytorch_lightning.structperc")

Within = Literal["sequence", "sentence"]
Index = ExactIndex | HashedIndex
STATE = {
    "node": list[str],
    "edge": list[str],
    "cutoff": int,
    "vocabularies": dict[str, list[str]],
    "gazetteers": dict[str, dict[str, Any]],
    "clusters": dict[str, dict[str, Any]],
    "documents": dict[str, dict[str, Any]],
    "within": Within,
    "weighted": dict[str, Any] | None,
    "hash": dict[str, int] | None,
    "buckets": dict[str, dict[str, Any]],
    "attributes": dict[str, str],
}
WEIGHTED = {"column": str, "names": list[str]}
HASH = {"bits": int}


class FeatureExtractor:
    """Surface features of nodes (token, label) and edges (token, previous label, label).

    `fit` counts the features of a training corpus and builds their index; `encode` converts a corpus to ids.
    An attribute is a surface attribute (`attributes.py`), a gazetteer, a cluster prefix (c4, c10, ...), a user's
    function, or a column of the corpus, whose strings are its values.

    Features that occur fewer than `cutoff` times in training, or whose values are all absent (""), are not in the
    index. Positions outside a sequence have the values _B-1, _B-2, ... and _B+1, _B+2, ..., as in CRF++.

    Args:
        node: template items, see `templates.py`; None for taggers that read words by an encoder only.
        edge: template items of edges; none by default.
        cutoff: minimal count of the surface part of a feature in training (2 in Kazama & Torisawa 2007).
        gazetteers: phrase lists by the name of the attribute, such as go, gp, gm, gl.
        clusters: word clusters for the attributes c4, c6, ...; or several clusters by the prefix of their attributes:
            {c: ..., news: ...} for c4 and news4.
        documents: attributes that depend on whole documents, by name.
        within: context of a token: its "sequence", or its "sentence" if sequences are documents.
        weighted_column: column whose strings list further node features with weights, see `format_weighted_features`;
            their ids follow those of the templates.
        progress: show a progress bar after two seconds.
        hash_bits: number features by hashes, at most 2**hash_bits, without an index; features with the same hash share
            an id, and `cutoff` applies to hashes.
        attributes: a user's functions of words by name, from a string to a string, "" for no value.

    Raises:
        InputError: an invalid template or option, or a resource that no template uses.

    Example:
        >>> corpus = Corpus.from_sentences([{"word": ["the", "cat"]}, {"word": ["the", "dog"]}])
        >>> features = FeatureExtractor(node=["w[0]", "w[-1]|w[0]"], cutoff=1)
        >>> features.fit(corpus)
        >>> features.feature_names("node")
        ['w[0]=the', 'w[0]=cat', 'w[0]=dog', 'w[-1]=_B-1|w[0]=the', 'w[-1]=the|w[0]=cat', 'w[-1]=the|w[0]=dog']
        >>> features.encode(corpus).nodes.counts.tolist()  # two features at each token
        [2, 2, 2, 2]
    """

    def __init__(
        self,
        node: list | None = None,
        edge: list | None = None,
        cutoff: int = 2,
        gazetteers: dict[str, Gazetteer] | None = None,
        clusters: Clusters | dict[str, Clusters] | None = None,
        documents: dict[str, DocumentAttribute] | None = None,
        within: Within = "sequence",
        progress: bool = True,
        weighted_column: str | None = None,
        hash_bits: int | None = None,
        attributes: dict[str, Callable[[str], str]] | None = None,
    ) -> None:
        if cutoff < 1:
            raise InputError(f"cutoff: {cutoff} is too small; 1 keeps every feature of the training corpus")
        if within not in get_args(Within):
            raise InputError(f"within must be sequence or sentence, got {within!r}")
        self.node, self.edge = parse_templates(node or []), parse_templates(edge or [])
        self.cutoff = cutoff
        self.gazetteers = gazetteers or {}
        self.clusters = {"c": clusters} if isinstance(clusters, Clusters) else clusters or {}
        self.documents, self.attributes = documents or {}, attributes or {}
        self._attribute_paths = {name: attribute_path(name, one) for name, one in self.attributes.items()}
        self.within = within
        self.progress, self.hash_bits = progress, hash_bits
        parts = [part for template in self.node + self.edge for part in template]
        self._max_offset = max((abs(part.offset) for part in parts), default=0)
        self._sources = self._sources_of(list(dict.fromkeys(part.attribute for part in parts)))
        self._numbering: ExactNumbering | HashedNumbering
        self._numbering = ExactNumbering() if hash_bits is None else HashedNumbering(hash_bits, self._max_offset)
        self._indices: dict[str, Index] = {}  # indices of nodes and edges; one object if both are the same
        self.weighted = None if weighted_column is None else WeightedFeatures(weighted_column, self._numbering.names())

    @classmethod
    def from_crfpp(
        cls,
        path: str,
        columns: list[str],
        cutoff: int = 1,
        gazetteers: dict[str, Gazetteer] | None = None,
        clusters: Clusters | None = None,
        progress: bool = True,
        hash_bits: int | None = None,
    ) -> "FeatureExtractor":
        """Create an extractor with the templates of a CRF++ file.

        Args:
            path: the template file.
            columns: roles of the columns 0, 1, ... of its data files.
            cutoff: minimal count of the surface part of a feature in training.
            gazetteers: phrase lists by the name of the attribute.
            clusters: word clusters.
            progress: show a progress bar after two seconds.
            hash_bits: number features by hashes, at most 2**hash_bits.

        Raises:
            InputError: with file and line, for an invalid template.
        """
        node, edge = read_crfpp(path, columns)
        return cls(node, edge, cutoff, gazetteers, clusters, progress=progress, hash_bits=hash_bits)

    def fit(self, corpus: Corpus, workers: Workers = Workers()) -> None:  # noqa: B008  # immutable
        """Fit document attributes, count the features of a training corpus and build the index.

        Args:
            corpus: the training corpus.
            workers: processes that share the counting for a large corpus.

        Raises:
            InputError: a missing column.
        """
        self._fit(corpus, workers)

    def extend(self, corpus: Corpus, cutoff: int) -> tuple["FeatureExtractor", dict[str, np.ndarray]]:
        """Return an extractor with the features of a further training corpus, too.

        Features that occur at least `cutoff` times in this corpus are added; document attributes are not fitted again.

        Args:
            corpus: the further training corpus; it may contain the former one.
            cutoff: minimal count of the surface part of a feature.

        Returns:
            the extractor, and for "node" and "edge" the new ids (F,) int64 of the features of this extractor.

        Raises:
            InputError: a missing column.
        """
        extended, reading = copy.copy(self), self._sources.read(corpus)
        extended.cutoff, extended._numbering = cutoff, self._numbering.extend(reading, cutoff, self._max_offset)
        counted = extended._count(extended._view(corpus, reading), reading, Workers())
        kinds = ["node"] if self.shared else [*self._indices]
        merged = {kind: _merge(self._indices[kind], counted[kind]) for kind in kinds}
        extended._indices = {kind: index for kind, (index, _) in merged.items()}
        ids = {kind: own for kind, (_, own) in merged.items()}
        if self.shared:
            extended._indices["edge"], ids["edge"] = extended._indices["node"], ids["node"]
        if self.weighted is not None:
            vocabulary, own = _merge(self.weighted.vocabulary, self.weighted.fit(corpus, cutoff).vocabulary)
            extended.weighted = WeightedFeatures(self.weighted.column, vocabulary)
            ids["node"] = np.concatenate([ids["node"], len(extended._indices["node"]) + own])
        return extended, ids

    def prepare_resume(self, corpus: Corpus) -> None:
        """Prepare fitted features for further training on a corpus.

        Raises:
            InputError: a document attribute does not support these training data.
        """
        for name, attribute in self.documents.items():
            with errors_at(f"features.documents.{name}"):
                self.documents[name] = attribute.resume_fit(corpus)
        self._sources = self._sources_of(self._sources.names)

    def ids(self, corpus: Corpus) -> FeatureIds:
        """Return the feature ids of a corpus as arrays, without PyTorch.

        Raises:
            InputError: a missing column.
        """
        self._index("node")  # raises an error before the corpus is read
        return self._ids(self._view(corpus, self._sources.read(corpus)), corpus)

    def encode(self, corpus: Corpus) -> "EncodedFeatures":
        """Return the feature ids of a corpus as tensors.

        Raises:
            InputError: a missing column.
        """
        return _encoded(self.ids(corpus), corpus)

    def fit_encode(self, corpus: Corpus) -> "EncodedFeatures":
        """Fit a corpus and return its feature ids; faster than `fit` and `encode`."""
        view = self._fit(corpus, Workers())
        return _encoded(self._ids(view, corpus), corpus)

    def with_documents(self, corpus: Corpus, names: Collection[str]) -> Corpus:
        """Return a corpus with attributes of documents as further columns.

        Args:
            corpus: the corpus.
            names: names of wanted columns; those that are not in `documents` are ignored.

        Raises:
            InputError: a missing column.
        """
        found = {name: self._sources.values(name, corpus) for name in self.documents if name in names}
        for name, values in found.items():
            corpus = corpus.replace_column(name, Column.from_codes(*values))
        return corpus

    @property
    def columns(self) -> list[str]:
        """Roles of the corpus columns that are read, the word first."""
        return [*self._sources.columns, *([] if self.weighted is None else [self.weighted.column])]

    def columns_with(self, further: Iterable[str]) -> list[str]:
        """Return the columns that new text needs if further ones, or attributes of documents, are read."""
        return list(dict.fromkeys([*self.columns, *(name for name in further if name not in self.documents)]))

    @property
    def user_objects(self) -> list[object]:
        """Objects and functions that may be from a user's modules."""
        return [*self.documents.values(), *self.attributes.values()]

    @property
    def extent(self) -> Extent:
        """Extent of the text on which the features of a token depend."""
        if not self.documents:
            return "sequence"
        return "corpus" if any(one.within == "corpus" for one in self.documents.values()) else "document"

    @property
    def n_node_features(self) -> int:
        """Number of node features, available after `fit`."""
        return len(self._index("node")) + self._n_weighted("node")

    @property
    def n_edge_features(self) -> int:
        """Number of edge features, 0 without edge templates."""
        return len(self._index("edge")) if self.edge else 0

    @property
    def shared(self) -> bool:
        """True if edges have the features of the nodes' templates, with the same ids."""
        return "edge" in self._indices and self._indices["edge"] is self._indices["node"]

    def templates(self, kind: str) -> Sequence[Template]:
        """Return the templates of a kind, "node" or "edge"."""
        return {"node": self.node, "edge": self.edge}[kind]

    def feature_names(self, kind: str, rows: np.ndarray | None = None) -> list[str]:
        """Return the names of features, such as "wl[-1]=the|wl[0]=cat".

        A hashed feature may have no name or several in a sample of the training data: "bucket 1234", "wl[0]=cat and 2
        more".

        Args:
            kind: "node" or "edge".
            rows: ascending ids (n,); None for all.
        """
        index = self._index(kind)
        n = len(index)
        wanted = np.arange(n + self._n_weighted(kind)) if rows is None else rows
        own, listed = wanted[wanted < n], wanted[wanted >= n] - n
        return [
            *index.names(own),
            *(self.weighted.vocabulary.names(listed) if self.weighted is not None and len(listed) else []),
        ]

    def template_sizes(self, kind: str) -> list[tuple[str, int]]:
        """Return the templates of a kind with the numbers of their features, whose ids are consecutive.

        Features listed in the data count as a template. Empty for hashed features.
        """
        index = self._index(kind)
        sizes = [*zip(map(template_name, index.templates), index.sizes(), strict=False)]
        if len(sizes) < len(index.templates):
            return []
        return [
            *sizes,
            *([(self.weighted.column, len(self.weighted))] if self.weighted is not None and kind == "node" else []),
        ]

    def summary(self) -> list[str]:
        """Return a line about shared ids for each kind of hashed features; no lines for features with an index."""
        lines = {name: part.summary() for name, part in self._parts().items()}
        return [f"{name} features: {line}" for name, line in lines.items() if line]

    def subset(self, kind: str, keep: np.ndarray) -> "FeatureExtractor":
        """Return an extractor with some of the features, renumbered.

        Args:
            kind: "node" or "edge".
            keep: (F,) bool, True for features to keep.

        Raises:
            ValueError: another shape of `keep`.
        """
        index, listed = self._index(kind), self._n_weighted(kind)
        n = len(index)
        if keep.shape != (n + listed,):
            raise ValueError(f"keep has shape {keep.shape}; there are {n + listed} {kind} features")
        pruned = copy.copy(self)
        pruned._indices = self._indices | {kind: index.subset(keep[:n])}
        if "edge" in self._indices and pruned._indices["edge"].same(pruned._indices["node"]):
            pruned._indices["edge"] = pruned._indices["node"]  # one lookup for both
        if self.weighted is not None and kind == "node":
            pruned.weighted = self.weighted.subset(keep[n:])
        return pruned

    def state_dict_json(self) -> dict[str, Any]:
        """Return all strings of the state as plain JSON types: templates, vocabularies, lists, clusters."""
        return {
            "node": [template_name(template) for template in self.node],
            "edge": [template_name(template) for template in self.edge],
            "cutoff": self.cutoff,
            **self._numbering.to_json(),
            "gazetteers": {name: gazetteer.to_json() for name, gazetteer in self.gazetteers.items()},
            "clusters": {name: clusters.to_json() for name, clusters in self.clusters.items()},
            "documents": {name: attribute.to_json() for name, attribute in self.documents.items()},
            "within": self.within,
            "weighted": None if self.weighted is None else self.weighted.to_json(),
            "buckets": {name: strings for name, part in self._parts().items() if (strings := part.strings())},
            "attributes": self._attribute_paths,
        }

    def state_arrays(self) -> dict[str, np.ndarray]:
        """Return "node_keys" and "node_sizes" (int64: keys, their number by template), likewise for edges.

        Hashed features have "node_buckets" and "node_named" (int32) instead, and listed features "weighted_buckets" and
        "weighted_named". Edges with the features of the nodes have no arrays. Arrays of document attributes are named
        documents.ATTRIBUTE.NAME.
        """
        documents = {
            f"documents.{name}.{part}": array
            for name, attribute in self.documents.items()
            for part, array in attribute.arrays().items()
        }
        parts = self._parts().items()
        return documents | {f"{name}_{key}": array for name, part in parts for key, array in part.arrays().items()}

    @classmethod
    def from_state(
        cls, strings: Mapping[str, Any], arrays: Mapping[str, np.ndarray], build: PartBuilder
    ) -> "FeatureExtractor":
        """Rebuild a fitted extractor from `state_dict_json` and `state_arrays`.

        No file is read.

        Args:
            strings: result of `state_dict_json`.
            arrays: result of `state_arrays`.
            build: builds the document attributes and finds the user's functions.

        Raises:
            InputError: an invalid or inconsistent state.
        """
        check_fields(strings, STATE, "features")
        gazetteers = {
            name: Gazetteer.from_json(options, f"features.gazetteers.{name}")
            for name, options in strings["gazetteers"].items()
        }
        clusters = {
            name: Clusters.from_json(words, f"features.clusters.{name}") for name, words in strings["clusters"].items()
        }
        documents = {
            name: restore(described, _within(arrays, f"documents.{name}."), build, f"features.documents.{name}")
            for name, described in strings["documents"].items()
        }
        attributes = {
            name: build.function(path, f"features.attributes.{name}") for name, path in strings["attributes"].items()
        }
        plain = strings["node"], strings["edge"], strings["cutoff"], gazetteers, clusters, documents, strings["within"]
        weighted, hashed = strings["weighted"] or {}, strings["hash"] or {}
        check_fields(weighted, WEIGHTED if weighted else {}, "features.weighted")
        check_fields(hashed, HASH if hashed else {}, "features.hash")
        extractor = cls(
            *plain, weighted_column=weighted.get("column"), hash_bits=hashed.get("bits"), attributes=attributes
        )
        extractor._restore(strings, arrays)
        return extractor

    def _restore(self, strings: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        numbering = self._numbering.restore(strings, self._sources.names, self._max_offset)
        self._numbering, buckets = numbering, strings["buckets"]
        for kind, templates in (("node", self.node), ("edge", self.edge)):
            if own := _within(arrays, f"{kind}_"):
                place = f"features.{kind}"
                self._indices[kind] = numbering.restore_index(templates, buckets.get(kind, {}), own, place)
        if self.edge:
            self._indices.setdefault("edge", self._indices["node"])
        if self.weighted is not None:
            state = strings["weighted"]["names"], buckets.get("weighted", {}), _within(arrays, "weighted_")
            self.weighted.vocabulary = self.weighted.vocabulary.restore(*state, "features.weighted")

    def _index(self, kind: str) -> Index:
        """Return the index of a kind. Raises ValueError for an unknown kind, RuntimeError before `fit`."""
        if not self._indices:
            raise RuntimeError("the feature extractor has no index yet; call fit with the training corpus first")
        if kind not in self._indices:
            raise ValueError(f"there are no {kind!r} features; kinds are {', '.join(self._indices)}")
        return self._indices[kind]

    def _n_weighted(self, kind: str) -> int:
        return len(self.weighted) if self.weighted is not None and kind == "node" else 0

    def _parts(self) -> dict[str, Index | ExplicitVocabulary | HashedVocabulary]:
        """Return the saved indices and vocabulary by name, without edges that share the nodes' index."""
        parts: dict[str, Any] = {"node": self._indices["node"]} if self.shared else {**self._indices}
        return parts if self.weighted is None else {**parts, "weighted": self.weighted.vocabulary}

    def _ids(self, view: View, corpus: Corpus) -> FeatureIds:
        """Return the ids at each token of a corpus, given its view."""
        node, edge = self._index("node"), self._indices.get("edge")
        found = node.encode(view, self.progress)
        nodes = found if self.weighted is None else found.concatenate(self.weighted.encode(corpus, len(node)))
        if edge is None:
            return FeatureIds(nodes, None)
        return FeatureIds(nodes, found if edge is node else edge.encode(view, self.progress))

    def _sources_of(self, names: Sequence[str]) -> Sources:
        resources = Resources(self.gazetteers, self.clusters, self.documents, self.attributes)
        return Sources(names, resources, self._max_offset)

    def _fit(self, corpus: Corpus, workers: Workers) -> View:
        self.documents = {name: attribute.fit(corpus) for name, attribute in self.documents.items()}
        self._sources = self._sources_of(self._sources.names)
        reading = self._sources.read(corpus)
        self._numbering = self._numbering.fit(reading, self.cutoff, self._max_offset)
        view = self._view(corpus, reading)
        if self.weighted is not None:
            self.weighted = self.weighted.fit(corpus, self.cutoff)
        self._indices = self._count(view, reading, workers)
        for line in self.summary():
            logger.info("%s", line)
        return view

    def _count(self, view: View, reading: Attributes, workers: Workers) -> dict[str, Index]:
        """Return the indices of the frequent features of nodes and edges; one object if both are the same."""
        options = self.cutoff, self.progress, workers
        found: dict[str, Index] = {"node": self._numbering.count(view, reading, self.node, *options)}
        if self.edge:
            same = self.edge == self.node
            found["edge"] = found["node"] if same else self._numbering.count(view, reading, self.edge, *options)
        return found

    def _view(self, corpus: Corpus, reading: Attributes) -> View:
        codes = {name: self._numbering.codes(name, values) for name, values in reading.values.items()}
        starts = corpus.starts if self.within == "sequence" else corpus.sentences
        return View(reading.columns, reading.numbers, codes, starts, self._max_offset)


def _merge(one: Any, other: Any) -> tuple[Any, np.ndarray]:
    """Merge two indices or vocabularies of the same class."""
    return one.merge(other)


def _encoded(ids: FeatureIds, corpus: Corpus) -> "EncodedFeatures":
    from structperc.features.encoded_features import EncodedFeatures  # needs PyTorch

    return EncodedFeatures.from_ids(ids, corpus.starts)


def _within(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin with a prefix, without the prefix."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
