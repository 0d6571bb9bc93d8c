"""Sources of attributes: the word, gazetteers, clusters, documents, a user's functions, columns of a corpus."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from structperc.data.corpus import Corpus, Factorized, factorize
from structperc.data.forbidden_spans import FORBIDDEN
from structperc.data.label_sets import ALLOWED
from structperc.data.possible_labels import POSSIBLE
from structperc.errors import InputError
from structperc.features.attributes import Attribute, read_attribute, surface_attribute
from structperc.features.documents import DocumentAttribute, attribute_values
from structperc.features.resources import TAGS, Clusters, Gazetteer

_OF_COLUMN = re.compile(r"([^()]+)\(([^()]+)\)")


INTERNAL = ("label", ALLOWED, POSSIBLE, FORBIDDEN)  # roles of columns that are not attributes


class Source(NamedTuple):
    """An attribute as a function of the strings of one column."""

    column: str
    value: Attribute


class Attributes(NamedTuple):
    """Attributes of a corpus, computed once for each distinct string of a column."""

    columns: dict[str, str]  # attribute -> the column it is read from
    numbers: dict[str, np.ndarray]  # column -> (N,) int32, 2 * max_offset + number of the distinct string
    values: dict[str, list[str]]  # attribute -> its value for each distinct string of the column


class Resources(NamedTuple):
    """Sources of attributes besides surface attributes and columns."""

    gazetteers: Mapping[str, Gazetteer]
    clusters: Mapping[str, Clusters]
    documents: Mapping[str, DocumentAttribute]
    attributes: Mapping[str, Attribute]  # a user's functions of words


class Sources:
    """Sources of the values of attributes.

    A name is a surface attribute, a gazetteer or document attribute, a user's function of words, a cluster prefix (c4,
    c10, ...) or a column of a corpus, in this order. `shape(lemma)` is a surface attribute or a cluster prefix of a
    column other than the word, or of a document attribute.

    Raises:
        InputError: a resource that no template uses or whose name is taken, or document attributes that depend on
            themselves.
    """

    def __init__(self, names: Sequence[str], resources: Resources, max_offset: int) -> None:
        self._resources, self._max_offset = resources, max_offset
        self._sources = {name: self._source(name) for name in names}
        _check_use(self._all(names), resources)

    @property
    def names(self) -> list[str]:
        """Names of the attributes in the templates."""
        return list(self._sources)

    @property
    def columns(self) -> list[str]:
        """Roles of the columns that `read` needs, the word first."""
        roles = ["word", *(self._source(name).column for name in self._all(self.names))]
        made = {*self._resources.gazetteers, *self._resources.documents}
        return [role for role in dict.fromkeys(roles) if role not in made]

    def read(self, corpus: Corpus) -> Attributes:
        """Return the values of all attributes; raises InputError when the corpus lacks a column."""
        roles = dict.fromkeys(["word", *(role for role, _ in self._sources.values())])
        columns = {role: self._column(role, corpus) for role in roles}
        return Attributes(
            {name: source.column for name, source in self._sources.items()},
            {role: column.numbers + np.int32(2 * self._max_offset) for role, column in columns.items()},
            {name: _once(self._read(value, columns[role].distinct)) for name, (role, value) in self._sources.items()},
        )

    def values(self, name: str, corpus: Corpus) -> Factorized:
        """Return the value of an attribute at each token; raises InputError when the corpus lacks a column."""
        role, value = self._source(name)
        column = self._column(role, corpus)
        values = factorize(self._read(value, column.distinct))
        return Factorized(values.distinct, values.numbers[column.numbers])

    def _source(self, name: str) -> Source:
        if of_column := _OF_COLUMN.fullmatch(name):
            value = self._surface(of_column[1])
            if value is None:
                raise InputError(
                    f"templates: {name!r}: {of_column[1]!r} is neither a surface attribute nor a cluster prefix"
                )
            return Source(of_column[2], value)
        resources = self._resources
        made = name in resources.gazetteers or name in resources.documents
        surface = surface_attribute(name) if made else self._surface(name)
        return Source("word", surface) if surface else Source(name, str)

    def _surface(self, name: str) -> Attribute | None:
        """Return an attribute of single strings: a surface attribute, a user's function or a cluster prefix."""
        prefixes = (clusters.attribute(name, key) for key, clusters in self._resources.clusters.items())
        user_attribute = self._resources.attributes.get(name)
        return surface_attribute(name) or user_attribute or next(filter(None, prefixes), None)

    def _read(self, attribute: Attribute, strings: Sequence[str]) -> list[str]:
        """Return the values of an attribute for some strings; those of a user's function are checked."""
        of_user = attribute in self._resources.attributes.values()
        return read_attribute(attribute, strings) if of_user else list(map(attribute, strings))

    def _column(self, role: str, corpus: Corpus) -> Factorized:
        resources = self._resources
        if role in resources.gazetteers:
            tags = resources.gazetteers[role].tag(*corpus.factorize("word"), corpus.sentences)
            return Factorized(list(TAGS), tags.astype(np.int32))
        if role in resources.documents:
            return attribute_values(resources.documents[role], corpus, lambda name: self.values(name, corpus))
        if role == "label" or role not in corpus.columns:
            roles = ", ".join(role for role in corpus.columns if role not in INTERNAL)
            raise InputError(
                f"{corpus.name}: unknown attribute {role!r} in templates: it is neither a surface attribute, nor a "
                f"given gazetteer, document attribute or cluster prefix (c4, ...), nor an input column ({roles})"
            )
        return corpus.factorize(role)

    def _all(self, names: Iterable[str], readers: tuple[str, ...] = ()) -> list[str]:
        """Return attributes and those on which document attributes among them depend."""
        needed: list[str] = []
        for name in names:
            role = self._source(name).column
            if role in readers:
                raise InputError(f"documents: {' reads '.join((*readers, role))}: attributes cannot read themselves")
            read = self._resources.documents[role].attributes if role in self._resources.documents else ()
            needed += [name, *self._all(read, (*readers, role))]
        return list(dict.fromkeys(needed))


def _once(values: Iterable[str]) -> list[str]:
    """Return the values with equal strings as one object, since many words share prefixes and shapes."""
    unique: dict[str, str] = {}
    return [unique.setdefault(value, value) for value in values]


def _check_use(names: Sequence[str], resources: Resources) -> None:
    """Raise InputError for an unused resource, or one whose name is taken."""
    used = {*names, *map(_outer, names)}
    for kind in ("gazetteers", "documents", "attributes"):
        for name in getattr(resources, kind):
            if surface_attribute(name):
                raise InputError(f"{kind}: {name!r} is the name of a surface attribute; choose another one")
            if name not in (used if kind == "attributes" else names):
                raise InputError(f"{kind}: no template uses {name!r}; add one or remove it")
    for kind, other in (("documents", "gazetteers"), ("attributes", "gazetteers"), ("attributes", "documents")):
        if both := getattr(resources, kind).keys() & getattr(resources, other).keys():
            raise InputError(f"{kind}: {min(both)!r} is the name of one of the {other}; choose another one")
    for key, clusters in resources.clusters.items():
        if surface_attribute(f"{key}4"):
            raise InputError(f"clusters: {key}4 is the name of a surface attribute; choose another name than {key!r}")
        if not any(clusters.attribute(_outer(name), key) for name in names):
            raise InputError(f"clusters: no template uses a prefix ({key}4, {key}10, ...); add one or remove it")


def _outer(name: str) -> str:
    """Return the attribute of a column: shape of shape(lemma)."""
    of_column = _OF_COLUMN.fullmatch(name)
    return of_column[1] if of_column else name
