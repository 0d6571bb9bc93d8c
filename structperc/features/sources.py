"""The sources of attributes: the word, a gazetteer, word clusters, or a column of the corpus."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.distinct import DistinctStrings
from structperc.errors import InputError
from structperc.features.attributes import Attribute, surface_attribute
from structperc.features.attributes import word as as_it_stands
from structperc.features.clusters import Clusters
from structperc.features.gazetteers import TAGS, Gazetteer


class Source(NamedTuple):
    """An attribute as a function of the strings of one column."""

    column: str
    value: Attribute


class Attributes(NamedTuple):
    """The attributes of a corpus: each string of a column has been looked at once."""

    columns: dict[str, str]  # attribute -> the column it is read from
    numbers: dict[str, np.ndarray]  # column -> (N,) int32, 2 * reach + which of its distinct strings
    values: dict[str, list[str]]  # attribute -> its value for each distinct string of the column


class Sources:
    """Finds the values of attributes.

    A name is looked for among the surface attributes, the gazetteers, the clusters (c4, c10, ...) and the
    columns of a corpus, in this order. Raises InputError for a list that no template uses or whose name is taken.
    """

    def __init__(
        self, names: Sequence[str], gazetteers: Mapping[str, Gazetteer], clusters: Clusters | None, reach: int
    ) -> None:
        self._gazetteers, self._clusters, self._reach = gazetteers, clusters, reach
        self._sources = {name: self._source(name) for name in names}
        _check_use(names, gazetteers, clusters)

    @property
    def names(self) -> list[str]:
        """The names of the attributes that the templates look at."""
        return list(self._sources)

    @property
    def columns(self) -> list[str]:
        """The roles of the columns that `read` needs, the word first."""
        roles = ["word", *(source.column for source in self._sources.values())]
        return [role for role in dict.fromkeys(roles) if role not in self._gazetteers]

    def read(self, corpus: Corpus) -> Attributes:
        """Return the values of all attributes; raises InputError when the corpus lacks a column."""
        roles = dict.fromkeys(["word", *(role for role, _ in self._sources.values())])
        columns = {role: self._column(role, corpus) for role in roles}
        return Attributes(
            {name: source.column for name, source in self._sources.items()},
            {role: column.numbers + np.int32(2 * self._reach) for role, column in columns.items()},
            {name: list(map(value, columns[role].distinct)) for name, (role, value) in self._sources.items()},
        )

    def _source(self, name: str) -> Source:
        surface = surface_attribute(name)
        if surface is None and name not in self._gazetteers and self._clusters is not None:
            surface = self._clusters.attribute(name)
        return Source("word", surface) if surface else Source(name, as_it_stands)

    def _column(self, role: str, corpus: Corpus) -> DistinctStrings:
        if role in self._gazetteers:
            tags = self._gazetteers[role].tag(*corpus.numbered("word"), corpus.sentences)
            return DistinctStrings(list(TAGS), tags.astype(np.int32))
        if role == "label" or role not in corpus.columns:
            roles = ", ".join(role for role in corpus.columns if role != "label")
            raise InputError(
                f"{corpus.name}: templates ask for {role!r}, which is neither a surface attribute, nor a "
                f"given gazetteer or cluster prefix (c4, ...), nor an input column ({roles})"
            )
        return corpus.numbered(role)


def _check_use(names: Sequence[str], gazetteers: Mapping[str, Gazetteer], clusters: Clusters | None) -> None:
    for name in gazetteers:
        if surface_attribute(name):
            raise InputError(f"gazetteers: {name!r} is the name of a surface attribute; choose another one")
        if name not in names:
            raise InputError(f"gazetteers: no template asks for {name!r}; add one or leave the list out")
    if clusters and not any(clusters.attribute(name) for name in names):
        raise InputError("clusters: no template asks for a prefix (c4, c10, ...); add one or leave the file out")
