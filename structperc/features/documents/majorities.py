"""Majority labels of a first model as attributes, for words, entities and longer entities that contain an entity.

The features of two-stage models (Krishnan & Manning 2006, "An effective two-stage model for exploiting non-local
dependencies in named entity recognition", section 4.1): a first model labels a document, and its majority labels
are features of the next model. Majorities within candidates are in `nonlocal_features/consistency.py`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, get_args

import numpy as np

from structperc.data.corpus import Corpus, Factorized, factorize
from structperc.data.tag_schemes import label_type, spans
from structperc.errors import InputError
from structperc.features.documents.base import DocumentAttribute, DocumentExtent, Lookup
from structperc.features.documents.mentions import mention_groups

OUTSIDE = "O"
Name = tuple[int, tuple[str, ...]]  # number of the document (0 for the corpus), words


class Entity(NamedTuple):
    """An entity predicted by a first model: the tokens start <= t < end of the corpus."""

    name: Name
    type: str
    start: int
    end: int


class Majority(DocumentAttribute):
    """Base class of attributes that count the labels of a first model.

    Of equally frequent values the one that comes first in the text wins. Subclasses implement `transform`.

    Args:
        of: attribute or column with the labels, in any segment scheme.
        within: "document" or "corpus": the text in which mentions are counted.

    Raises:
        InputError: unknown extent.
    """

    def __init__(self, of: str, within: DocumentExtent = "document") -> None:
        if within not in get_args(DocumentExtent):
            name = type(self).__name__
            raise InputError(f"{name}: within must be one of {', '.join(get_args(DocumentExtent))}, got {within!r}")
        self.of, self.within, self.attributes = of, within, (of,)

    def entities(self, corpus: Corpus, labels: Factorized) -> Iterator[Entity]:
        """Yield the entities in the order of the text, with case-folded words."""
        words = [word.casefold() for word in corpus.columns["word"]]
        names = [labels.distinct[number] for number in labels.numbers.tolist()]
        for document, (a, b) in zip(self._documents(corpus), pairwise(corpus.sentences.tolist()), strict=True):
            for kind, start, end in spans(names[a:b]):
                yield Entity((document, tuple(words[a + start : a + end])), kind, a + start, a + end)

    def _documents(self, corpus: Corpus) -> list[int]:
        """Return the number of the document of each sentence."""
        count = len(corpus.sentences) - 1
        if self.within == "corpus":
            return [0] * count
        which = np.searchsorted(corpus.starts, corpus.sentences[:-1], side="right") - 1
        return corpus.documents[np.minimum(which, len(corpus) - 1)].tolist() if count else []


class TokenMajority(Majority):
    """Most frequent entity type of all tokens with the same word, ignoring case; "O" if most are outside entities.

    Args:
        of: attribute or column with the labels, in any segment scheme.
        within: "document" or "corpus": the text in which mentions are counted.

    Example:
        >>> from structperc.features import FeatureExtractor
        >>> sentences = [{"word": ["Ford", "met", "Ford"], "model": ["B-ORG", "O", "B-ORG"]}]
        >>> corpus = Corpus.from_sentences(sentences)
        >>> features = FeatureExtractor(["most[0]"], documents={"most": TokenMajority("model")}, cutoff=1)
        >>> features.fit(corpus)
        >>> sorted(features.index.names("node"))
        ['most[0]=O', 'most[0]=ORG']
    """

    def transform(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the most frequent entity type of the word of each token."""
        labels = lookup(self.of)
        types = [label_type(label) or OUTSIDE for label in labels.distinct]
        groups = mention_groups(corpus) if self.within == "document" else _words(corpus)
        votes: defaultdict[int, Counter[str]] = defaultdict(Counter)
        for group, number in zip(groups.tolist(), labels.numbers.tolist(), strict=True):
            votes[group][types[number]] += 1
        most = {group: counts.most_common(1)[0][0] for group, counts in votes.items()}
        return factorize([most[group] for group in groups.tolist()])


class EntityMajority(Majority):
    """Most frequent type of all entities with the same words; no value outside entities.

    Args:
        of: attribute or column with the labels, in any segment scheme.
        within: "document" or "corpus": the text in which mentions are counted.
    """

    def transform(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the most frequent type of the entity that each token is in."""
        labels = lookup(self.of)
        entities = list(self.entities(corpus, labels))
        votes: defaultdict[Name, Counter[str]] = defaultdict(Counter)
        for entity in entities:
            votes[entity.name][entity.type] += 1
        return _at_entities(entities, votes, corpus.tokens)


class SuperentityMajority(Majority):
    """Most frequent type of the longer entities that contain the words of an entity; no value if there is none.

    Args:
        of: attribute or column with the labels, in any segment scheme.
        within: "document" or "corpus": the text in which mentions are counted.
    """

    def transform(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the most frequent type of the longer entities that contain the entity at each token."""
        labels = lookup(self.of)
        entities = list(self.entities(corpus, labels))
        names = {entity.name for entity in entities}
        votes: defaultdict[Name, Counter[str]] = defaultdict(Counter)
        for entity in entities:
            for part in _proper_parts(entity.name) & names:
                votes[part][entity.type] += 1
        return _at_entities(entities, votes, corpus.tokens)


def _words(corpus: Corpus) -> np.ndarray:
    words = corpus.factorize("word")
    return factorize(list(map(str.casefold, words.distinct))).numbers[words.numbers]


def _proper_parts(name: Name) -> set[Name]:
    """Return the shorter names that are contiguous parts of a name."""
    document, words = name
    n = len(words)
    return {(document, words[a:b]) for a in range(n) for b in range(a + 1, n + 1) if b - a < n}


def _at_entities(entities: list[Entity], votes: dict[Name, Counter[str]], tokens: int) -> Factorized:
    """Return the type with most votes at the tokens of each entity, "" elsewhere and for names without votes."""
    types = {name: counts.most_common(1)[0][0] for name, counts in votes.items()}  # the first of equals
    values = [""] * tokens
    for entity in entities:
        values[entity.start : entity.end] = [types.get(entity.name, "")] * (entity.end - entity.start)
    return factorize(values)
