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
from structperc.features.exact_index import ExactNumbering
from structperc.features.feature_index import FeatureIndex, Index, Numbering, arrays_within
from structperc.features.hashed_index import HashedNumbering
from structperc.features.resources import Clusters, Gazetteer
from structperc.features.string_arrays import FeatureIds, View
from structperc.features.templates import Template, parse_templates, read_crfpp, template_name
from structperc.features.weighted_features import WeightedFeatures
from structperc.process_pool import Workers

if TYPE_CHECKING:
    from structperc.features.encoded_features import EncodedFeatures

logger = logging.getLogger("pytorch_lightning.structperc")

Within = Literal["sequence", "sentence"]
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
        >>> features.index.names("node")
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
        self._attribute_paths = {name: attribute_path(name, attribute) for name, attribute in self.attributes.items()}
        self.within = within
        self.progress, self.hash_bits = progress, hash_bits
        parts = [part for template in self.node + self.edge for part in template]
        self._max_offset = max((abs(part.offset) for part in parts), default=0)
        self._sources = self._sources_of(list(dict.fromkeys(part.attribute for part in parts)))
        numbering = ExactNumbering() if hash_bits is None else HashedNumbering(hash_bits, self._max_offset)
        weighted = None if weighted_column is None else WeightedFeatures(weighted_column, numbering.names())
        self.index = FeatureIndex(numbering, {}, weighted)

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
        extended.cutoff = cutoff
        numbering = self.index.numbering.extend(reading, cutoff, self._max_offset)
        counted, _ = extended._count(corpus, reading, numbering, Workers())
        extended.index, ids = self.index.merge(counted)
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
        self.index.of("node")  # raises an error before the corpus is read
        view = self._view(corpus, self._sources.read(corpus), self.index.numbering)
        return self.index.encode(view, corpus, self.progress)

    def encode(self, corpus: Corpus) -> "EncodedFeatures":
        """Return the feature ids of a corpus as tensors.

        Raises:
            InputError: a missing column.
        """
        return _encoded(self.ids(corpus), corpus)

    def fit_encode(self, corpus: Corpus) -> "EncodedFeatures":
        """Fit a corpus and return its feature ids; faster than `fit` and `encode`."""
        view = self._fit(corpus, Workers())
        return _encoded(self.index.encode(view, corpus, self.progress), corpus)

    def with_documents(self, corpus: Corpus, names: Collection[str]) -> Corpus:
        """Return a corpus with attributes of documents as further columns.

        Args:
            corpus: the corpus.
            names: names of wanted columns; those that are not in `documents` are ignored.

        Raises:
            InputError: a missing column.
        """
        added = {name: self._sources.values(name, corpus) for name in self.documents if name in names}
        for name, values in added.items():
            corpus = corpus.replace_column(name, Column.from_codes(*values))
        return corpus

    @property
    def columns(self) -> list[str]:
        """Roles of the corpus columns that are read, the word first."""
        return [*self._sources.columns, *([] if self.index.weighted is None else [self.index.weighted.column])]

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
        return "corpus" if any(attribute.within == "corpus" for attribute in self.documents.values()) else "document"

    @property
    def n_node_features(self) -> int:
        """Number of node features, available after `fit`."""
        return self.index.size("node")

    @property
    def n_edge_features(self) -> int:
        """Number of edge features, 0 without edge templates."""
        return self.index.size("edge") if self.edge else 0

    def templates(self, kind: str) -> Sequence[Template]:
        """Return the templates of a kind, "node" or "edge"."""
        return {"node": self.node, "edge": self.edge}[kind]

    def subset(self, kind: str, keep: np.ndarray) -> "FeatureExtractor":
        """Return an extractor with some of the features, renumbered; see `FeatureIndex.subset`."""
        pruned = copy.copy(self)
        pruned.index = self.index.subset(kind, keep)
        return pruned

    def state_dict_json(self) -> dict[str, Any]:
        """Return all strings of the state as plain JSON types: templates, vocabularies, lists, clusters."""
        return {
            "node": [template_name(template) for template in self.node],
            "edge": [template_name(template) for template in self.edge],
            "cutoff": self.cutoff,
            **self.index.numbering.to_json(),
            "gazetteers": {name: gazetteer.to_json() for name, gazetteer in self.gazetteers.items()},
            "clusters": {name: clusters.to_json() for name, clusters in self.clusters.items()},
            "documents": {name: attribute.to_json() for name, attribute in self.documents.items()},
            "within": self.within,
            "weighted": None if self.index.weighted is None else self.index.weighted.to_json(),
            "buckets": self.index.strings(),
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
        return documents | self.index.arrays()

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
            name: restore(described, arrays_within(arrays, f"documents.{name}."), build, f"features.documents.{name}")
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
        templates = {"node": extractor.node, "edge": extractor.edge}
        index = extractor.index
        numbering = index.numbering.restore(strings, extractor._sources.names, extractor._max_offset)
        extractor.index = FeatureIndex(numbering, {}, index.weighted).restore(strings, arrays, templates)
        return extractor

    def _sources_of(self, names: Sequence[str]) -> Sources:
        resources = Resources(self.gazetteers, self.clusters, self.documents, self.attributes)
        return Sources(names, resources, self._max_offset)

    def _fit(self, corpus: Corpus, workers: Workers) -> View:
        self.documents = {name: attribute.fit(corpus) for name, attribute in self.documents.items()}
        self._sources = self._sources_of(self._sources.names)
        reading = self._sources.read(corpus)
        numbering = self.index.numbering.fit(reading, self.cutoff, self._max_offset)
        self.index, view = self._count(corpus, reading, numbering, workers)
        for line in self.index.summary():
            logger.info("%s", line)
        return view

    def _count(
        self, corpus: Corpus, reading: Attributes, numbering: Numbering, workers: Workers
    ) -> tuple[FeatureIndex, View]:
        """Return the index of the frequent features of a corpus, and its view."""
        view, options = self._view(corpus, reading, numbering), (self.cutoff, self.progress, workers)
        indices: dict[str, Index] = {"node": numbering.count(view, reading, self.node, *options)}
        if self.edge:
            same = self.edge == self.node
            indices["edge"] = indices["node"] if same else numbering.count(view, reading, self.edge, *options)
        listed = self.index.weighted
        return FeatureIndex(numbering, indices, None if listed is None else listed.fit(corpus, self.cutoff)), view

    def _view(self, corpus: Corpus, reading: Attributes, numbering: Numbering) -> View:
        codes = {name: numbering.codes(name, values) for name, values in reading.values.items()}
        starts = corpus.starts if self.within == "sequence" else corpus.sentences
        return View(reading.columns, reading.numbers, codes, starts, self._max_offset)


def _encoded(ids: FeatureIds, corpus: Corpus) -> "EncodedFeatures":
    from structperc.features.encoded_features import EncodedFeatures  # needs PyTorch

    return EncodedFeatures.from_ids(ids, corpus.starts)
