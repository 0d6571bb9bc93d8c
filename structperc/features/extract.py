"""From a corpus to feature ids. Strings are touched once per distinct token; the rest is integer arrays."""

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.typed import check_fields
from structperc.errors import InputError
from structperc.features.bag import Bag
from structperc.features.clusters import Clusters
from structperc.features.crfpp import read_crfpp
from structperc.features.documents import DocumentAttribute, PartBuilder, restored
from structperc.features.former import present_state
from structperc.features.gazetteers import Gazetteer
from structperc.features.id_lists import FeatureIds
from structperc.features.index import FeatureIndex
from structperc.features.sources import Attributes, Resources, Sources
from structperc.features.templates import Template, parse_templates, template_name
from structperc.features.value_codes import ValueCodes
from structperc.features.windows import View

if TYPE_CHECKING:
    from structperc.features.encoded import EncodedFeatures

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
    "bag": dict[str, Any] | None,
}


class FeatureExtractor:
    """Surface features of nodes (token, label) and edges (token, previous label, label).

    `fit` counts the features of a training corpus and freezes their index; `encode` turns a corpus into ids.
    An attribute is a surface attribute (`attributes.py`), a gazetteer, a cluster prefix (c4, c10, ...) or a
    column of the corpus, whose strings are its values.

    A feature is missing at a token when it is not in the index: when it occurred fewer than `cutoff` times in
    training, or all its values are absent (""). Beyond the boundaries of a sequence stand the values _B-1, _B-2,
    ... and _B+1, _B+2, ..., as in CRF++.

    Args:
        node: template items, see `templates.py`; none for taggers that read words through an encoder alone.
        edge: the same for edges; none by default.
        cutoff: how often the surface part of a feature must occur in training (2 in Kazama & Torisawa 2007).
        gazetteers: phrase lists by the name of the attribute, such as go, gp, gm, gl.
        clusters: word clusters for the attributes c4, c6, ...; or several by what stands before the number of bits:
            {c: ..., news: ...} for c4 and news4.
        documents: attributes that read whole documents, by their names.
        within: where neighbours of a token are looked for: in its "sequence", or in its "sentence", where sequences are
            documents.
        bag: a column whose strings list node features of their own, with weights, see `bag_string`; they have the ids
            after those of the templates.
        progress: show a bar when it takes longer than two seconds.
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
        bag: str | None = None,
    ) -> None:
        if cutoff < 1:
            raise InputError(f"cutoff: {cutoff} is too small; 1 keeps every feature of the training corpus")
        if within not in get_args(Within):
            raise InputError(f"within must be sequence or sentence, got {within!r}")
        self.node, self.edge = parse_templates(node or []), parse_templates(edge or [])
        self.cutoff = cutoff
        self.gazetteers = gazetteers or {}
        self.clusters = {"c": clusters} if isinstance(clusters, Clusters) else clusters or {}
        self.documents = documents or {}
        self.within = within
        self.progress = progress
        self.bag = None if bag is None else Bag(bag)
        parts = [part for template in self.node + self.edge for part in template]
        self._reach = max((abs(part.offset) for part in parts), default=0)
        self._sources = self._sources_of(list(dict.fromkeys(part.attribute for part in parts)))
        self._vocabularies: dict[str, ValueCodes] = {}
        self._indices: dict[str, FeatureIndex] = {}

    @classmethod
    def from_crfpp(
        cls,
        path: str,
        columns: list[str],
        cutoff: int = 1,
        gazetteers: dict[str, Gazetteer] | None = None,
        clusters: Clusters | None = None,
        progress: bool = True,
    ) -> "FeatureExtractor":
        """Take the templates from a CRF++ file, whose column numbers count `columns` (roles) from 0."""
        node, edge = read_crfpp(path, columns)
        return cls(node, edge, cutoff, gazetteers, clusters, progress=progress)

    def fit(self, corpus: Corpus) -> None:
        """Count the features of a training corpus and freeze the index; attributes of documents learn before that.

        Raises InputError for a missing column.
        """
        self._fit(corpus)

    def ids(self, corpus: Corpus) -> FeatureIds:
        """Return the feature ids of a corpus as arrays, without PyTorch. Raises InputError for a missing column."""
        self._index("node")  # before anything is read
        return self._ids(self._view(corpus, self._sources.read(corpus)), corpus)

    def encode(self, corpus: Corpus) -> "EncodedFeatures":
        """Return the feature ids of a corpus. Raises InputError for a missing column."""
        return _encoded(self.ids(corpus), corpus)

    def fit_encode(self, corpus: Corpus) -> "EncodedFeatures":
        """Return what `encode` gives after `fit`, looking at the strings only once."""
        return _encoded(self._ids(self._fit(corpus), corpus), corpus)

    @property
    def columns(self) -> list[str]:
        """The roles of the corpus columns that features are read from, the word first."""
        return [*self._sources.columns, *([] if self.bag is None else [self.bag.column])]

    @property
    def extent(self) -> Literal["sequence", "document", "corpus"]:
        """How much of a text decides the features of a token: its sequence, its document or all that is read."""
        if not self.documents:
            return "sequence"
        return "corpus" if any(one.within == "corpus" for one in self.documents.values()) else "document"

    @property
    def n_node_features(self) -> int:
        """The number of node features, known after `fit`."""
        return len(self._index("node")) + self._listed

    @property
    def n_edge_features(self) -> int:
        """Number of edge features, 0 without edge templates."""
        return len(self._index("edge")) if self.edge else 0

    def templates(self, kind: str) -> Sequence[Template]:
        """Return the templates of a kind, "node" or "edge"."""
        return {"node": self.node, "edge": self.edge}[kind]

    def feature_names(self, kind: str) -> list[str]:
        """Return the features of a kind, "node" or "edge", by id: "wl[-1]=the|wl[0]=cat"."""
        listed = self.bag.names if self.bag is not None and kind == "node" else []
        return [*self._index(kind).names(), *listed]

    def subset(self, kind: str, keep: np.ndarray) -> "FeatureExtractor":
        """Return an extractor with only those features of a kind where keep (F,) bool is true, renumbered."""
        index = self._index(kind)
        total = self.n_node_features if kind == "node" else len(index)
        if keep.shape != (total,):
            raise ValueError(f"keep has shape {keep.shape}; there are {total} {kind} features")
        pruned = copy.copy(self)
        pruned._indices = _shared(self._indices | {kind: index.subset(keep[: len(index)])})
        if self.bag is not None and kind == "node":
            pruned.bag = self.bag.subset(keep[len(index) :])
        return pruned

    def state_dict_json(self) -> dict[str, Any]:
        """Return all strings of the state as plain JSON types: templates, vocabularies, lists, clusters."""
        return {
            "node": [template_name(template) for template in self.node],
            "edge": [template_name(template) for template in self.edge],
            "cutoff": self.cutoff,
            "vocabularies": {name: vocabulary.values for name, vocabulary in self._vocabularies.items()},
            "gazetteers": {name: gazetteer.to_json() for name, gazetteer in self.gazetteers.items()},
            "clusters": {name: clusters.to_json() for name, clusters in self.clusters.items()},
            "documents": {name: attribute.to_json() for name, attribute in self.documents.items()},
            "within": self.within,
            "bag": None if self.bag is None else self.bag.to_json(),
        }

    def state_arrays(self) -> dict[str, np.ndarray]:
        """Return "node_keys" and "node_sizes" (int64: all keys, their number by template), and for edges.

        Edges have no arrays where they are the same features as the nodes. Arrays of document attributes are called
        documents.ATTRIBUTE.NAME.
        """
        arrays = {
            f"documents.{name}.{part}": array
            for name, attribute in self.documents.items()
            for part, array in attribute.arrays().items()
        }
        for kind, index in self._indices.items():
            if kind == "node" or index is not self._indices["node"]:
                arrays[f"{kind}_keys"], arrays[f"{kind}_sizes"] = index.to_arrays()
        return arrays

    @classmethod
    def from_state(
        cls, strings: Mapping[str, Any], arrays: Mapping[str, np.ndarray], build: PartBuilder
    ) -> "FeatureExtractor":
        """Rebuild a fitted extractor from `state_dict_json` and `state_arrays`.

        build: makes the document attributes. Raises InputError for a state that is none of these, and for what does not
        fit together; no file is read.
        """
        strings = present_state(strings)
        check_fields(strings, STATE, "features")
        gazetteers = {
            name: Gazetteer.from_json(options, f"features.gazetteers.{name}")
            for name, options in strings["gazetteers"].items()
        }
        clusters = {
            name: Clusters.from_json(words, f"features.clusters.{name}") for name, words in strings["clusters"].items()
        }
        documents = {
            name: restored(described, _within(arrays, f"documents.{name}."), build, f"features.documents.{name}")
            for name, described in strings["documents"].items()
        }
        plain = strings["node"], strings["edge"], strings["cutoff"]
        extractor = cls(*plain, gazetteers, clusters, documents, strings["within"])
        extractor._vocabularies = {
            name: ValueCodes.from_json(values, extractor._reach, f"features.vocabularies.{name}")
            for name, values in strings["vocabularies"].items()
        }
        if missing := [name for name in extractor._sources.names if name not in extractor._vocabularies]:
            raise InputError(f"features.vocabularies: there is no {missing[0]!r}, which a template reads")
        extractor.bag = None if strings["bag"] is None else Bag.from_json(strings["bag"], "features.bag")
        extractor._indices = {
            kind: FeatureIndex.from_arrays(
                templates, extractor._vocabularies, arrays[f"{kind}_keys"], arrays[f"{kind}_sizes"]
            )
            for kind, templates in (("node", extractor.node), ("edge", extractor.edge))
            if f"{kind}_keys" in arrays
        }
        if extractor.edge:
            extractor._indices.setdefault("edge", extractor._indices["node"])
        return extractor

    def _sources_of(self, names: Sequence[str]) -> Sources:
        return Sources(names, Resources(self.gazetteers, self.clusters, self.documents), self._reach)

    def _fit(self, corpus: Corpus) -> View:
        self.documents = {name: attribute.learn(corpus) for name, attribute in self.documents.items()}
        self._sources = self._sources_of(self._sources.names)
        reading = self._sources.read(corpus)
        self._vocabularies = {name: self._vocabulary(name, reading) for name in reading.values}
        view = self._view(corpus, reading)
        self.bag = None if self.bag is None else self.bag.counted(corpus, self.cutoff)
        self._indices = {"node": self._count(view, self.node)}
        if self.edge:
            shared = self.edge == self.node
            self._indices["edge"] = self._indices["node"] if shared else self._count(view, self.edge)
        return view

    def _ids(self, view: View, corpus: Corpus) -> FeatureIds:
        node = self._index("node")
        found = node.encode(view, self.progress)
        nodes = found if self.bag is None else found.beside(self.bag.encode(corpus, len(node)))
        if not self.edge:
            return FeatureIds(nodes, None)
        edge = self._index("edge")
        return FeatureIds(nodes, found if edge is node else edge.encode(view, self.progress))

    @property
    def _listed(self) -> int:
        """How many features are listed in the bag."""
        return 0 if self.bag is None else len(self.bag)

    def _vocabulary(self, name: str, reading: Attributes) -> ValueCodes:
        values, numbers = reading.values[name], reading.numbers[reading.columns[name]]
        counts = np.bincount(numbers, minlength=2 * self._reach + len(values))[2 * self._reach :]
        return ValueCodes.frequent(values, counts, self.cutoff, self._reach)

    def _view(self, corpus: Corpus, reading: Attributes) -> View:
        codes = {name: self._vocabularies[name].encode(values) for name, values in reading.values.items()}
        starts = corpus.starts if self.within == "sequence" else corpus.sentences
        return View(reading.columns, reading.numbers, codes, starts, self._reach)

    def _count(self, view: View, templates: Sequence[Template]) -> FeatureIndex:
        return FeatureIndex.count(view, templates, self._vocabularies, self.cutoff, self.progress)

    def _index(self, kind: str) -> FeatureIndex:
        if not self._indices:
            raise RuntimeError("the feature extractor has no index yet; call fit with the training corpus first")
        if kind not in self._indices:
            raise ValueError(f"there are no {kind!r} features; kinds are {', '.join(self._indices)}")
        return self._indices[kind]


def _encoded(ids: FeatureIds, corpus: Corpus) -> "EncodedFeatures":
    from structperc.features.encoded import EncodedFeatures  # which needs PyTorch

    return EncodedFeatures.of(ids, corpus.starts)


def _within(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Return the arrays whose names begin so, by the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _shared(indices: dict[str, FeatureIndex]) -> dict[str, FeatureIndex]:
    """Make edges use the index of the nodes where both are the same, so that nothing is looked up twice."""
    same = "edge" in indices and indices["edge"].same(indices["node"])
    return dict.fromkeys(indices, indices["node"]) if same else indices
