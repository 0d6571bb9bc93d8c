"""Majority labels of a first model as features: of a word, of an entity, and of longer entities that contain it.

The features of two-stage models (Krishnan & Manning 2006, "An effective two-stage model for exploiting non-local
dependencies in named entity recognition", section 4.1): a first model labels a document, and a second one has its
majority labels as features of every token. Majorities within candidates are in `nonlocal_features/consistency.py`.
"""

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, get_args

import numpy as np

from structperc.data.corpus import Corpus, Factorized, factorize
from structperc.data.tag_schemes import label_type, spans
from structperc.errors import InputError
from structperc.features.documents.base import DocumentAttribute, Extent, Lookup
from structperc.features.documents.mentions import mention_groups

OUTSIDE = "O"
Name = tuple[int, tuple[str, ...]]  # the document (0: the corpus), and words


class Entity(NamedTuple):
    """An entity of a first model."""

    name: Name
    type: str
    start: int  # tokens of the corpus
    end: int


class Majority(DocumentAttribute):
    """Base of attributes that count the labels of a first model.

    Among values that are as frequent, that which is first in the text wins. What is not abstract is final.

    Args:
        of: the attribute that the labels are: one of a first model, or a column; in any scheme of segments.
        within: whether mentions are counted in the "document", or in all of the "corpus" that is read at once.

    Raises:
        InputError: unknown extent.
    """

    def __init__(self, of: str, within: Extent = "document") -> None:
        if within not in get_args(Extent):
            name = type(self).__name__
            raise InputError(f"{name}: within must be one of {', '.join(get_args(Extent))}, got {within!r}")
        self.of, self.within, self.attributes = of, within, (of,)

    def read(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the value at each token."""
        return self.most(corpus, lookup(self.of))

    @abstractmethod
    def most(self, corpus: Corpus, labels: Factorized) -> Factorized:
        """Return the value at each token, of the labels of the first model."""

    def entities(self, corpus: Corpus, labels: Factorized) -> Iterator[Entity]:
        """Yield the entities in the order of the text; their words are compared whatever their case."""
        words = [word.casefold() for word in corpus.columns["word"]]
        names = [labels.distinct[number] for number in labels.numbers.tolist()]
        for document, (a, b) in zip(self._documents(corpus), pairwise(corpus.sentences.tolist()), strict=True):
            for kind, start, end in spans(names[a:b]):
                yield Entity((document, tuple(words[a + start : a + end])), kind, a + start, a + end)

    def _documents(self, corpus: Corpus) -> list[int]:
        """The document of each sentence."""
        count = len(corpus.sentences) - 1
        if self.within == "corpus":
            return [0] * count
        which = np.searchsorted(corpus.starts, corpus.sentences[:-1], side="right") - 1
        return corpus.documents[np.minimum(which, len(corpus) - 1)].tolist() if count else []


class TokenMajority(Majority):
    """The type of entity that most tokens with the same word have, "O" where most are in none.

    The token itself counts. Words are compared whatever their case.
    """

    def most(self, corpus: Corpus, labels: Factorized) -> Factorized:
        """Return the most frequent type of the word of each token."""
        types = [label_type(label) or OUTSIDE for label in labels.distinct]
        groups = mention_groups(corpus) if self.within == "document" else _words(corpus)
        votes: defaultdict[int, Counter[str]] = defaultdict(Counter)
        for group, number in zip(groups.tolist(), labels.numbers.tolist(), strict=True):
            votes[group][types[number]] += 1
        most = {group: _first_of(counts) for group, counts in votes.items()}
        return factorize([most[group] for group in groups.tolist()])


class EntityMajority(Majority):
    """The type that most entities with the same words have, at each token of an entity; elsewhere there is no value.

    The entity itself counts.
    """

    def most(self, corpus: Corpus, labels: Factorized) -> Factorized:
        """Return the most frequent type of the entity that each token is in."""
        found = list(self.entities(corpus, labels))
        votes: defaultdict[Name, Counter[str]] = defaultdict(Counter)
        for entity in found:
            votes[entity.name][entity.type] += 1
        return _at_entities(found, {name: _first_of(counts) for name, counts in votes.items()}, corpus.tokens)


class SuperentityMajority(Majority):
    """The type that most of the longer entities have in which the words of an entity stand side by side.

    At each token of an entity; where no longer one holds it there is no value.
    """

    def most(self, corpus: Corpus, labels: Factorized) -> Factorized:
        """Return the most frequent type of the longer entities around the words of that which each token is in."""
        found = list(self.entities(corpus, labels))
        asked = {entity.name for entity in found}
        votes: defaultdict[Name, Counter[str]] = defaultdict(Counter)
        for entity in found:
            for part in _proper_parts(entity.name) & asked:
                votes[part][entity.type] += 1
        return _at_entities(found, {name: _first_of(counts) for name, counts in votes.items()}, corpus.tokens)


def _words(corpus: Corpus) -> np.ndarray:
    """The number of the word of each token, whatever its case, (N,)."""
    words = corpus.factorize("word")
    return factorize(list(map(str.casefold, words.distinct))).numbers[words.numbers]


def _proper_parts(name: Name) -> set[Name]:
    """The shorter names whose words stand side by side in a name."""
    document, words = name
    n = len(words)
    return {(document, words[a:b]) for a in range(n) for b in range(a + 1, n + 1) if b - a < n}


def _first_of(counts: Counter[str]) -> str:
    """The most frequent value, the first that was counted among several."""
    return counts.most_common(1)[0][0]


def _at_entities(entities: list[Entity], types: dict[Name, str], tokens: int) -> Factorized:
    """The type of the name of each entity at its tokens, "" elsewhere and for names without a type."""
    values = [""] * tokens
    for entity in entities:
        values[entity.start : entity.end] = [types.get(entity.name, "")] * (entity.end - entity.start)
    return factorize(values)
