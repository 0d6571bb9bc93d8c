"""Non-local features counted from strings, pair by pair: what the tensors must agree with."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from typing import NamedTuple

from structperc.data.tag_schemes import spans

Document = Sequence[Sequence[str]]  # words of each sentence


class Entity(NamedTuple):
    type: str
    words: tuple[str, ...]
    sentence: int
    start: int
    end: int


def entities(document: Document, labels: Sequence[str], fold: bool = False) -> list[Entity]:
    """labels: those of all tokens of the document."""
    found, at = [], 0
    for number, sentence in enumerate(document):
        words = [word.casefold() for word in sentence] if fold else sentence
        for kind, start, end in spans(labels[at : at + len(sentence)]):
            found.append(Entity(kind, tuple(words[start:end]), number, start, end))
        at += len(sentence)
    return found


def contains(whole: tuple[str, ...], part: tuple[str, ...]) -> bool:
    n = len(part)
    return n < len(whole) and any(whole[i : i + n] == part for i in range(len(whole) - n + 1))


def majority(own: str, others: list[str]) -> str:
    votes = Counter(others)
    most = max(votes.values())
    tied = sorted(kind for kind, n in votes.items() if n == most)
    return own if own in tied else tied[0]


def phrase(document: Document, labels: Sequence[str], fold: bool = False) -> Counter[tuple[str, str]]:
    pairs = combinations(entities(document, labels, fold), 2)
    return Counter(tuple(sorted((a.type, b.type))) for a, b in pairs if a.words == b.words)


def subphrase(document: Document, labels: Sequence[str], fold: bool = False) -> Counter[tuple[str, str]]:
    pairs = permutations(entities(document, labels, fold), 2)
    return Counter((a.type, b.type) for a, b in pairs if contains(b.words, a.words))


def majority_phrase(document: Document, labels: Sequence[str], fold: bool = False) -> Counter[tuple[str, str]]:
    return _majorities(entities(document, labels, fold), lambda a, b: a.words == b.words)


def majority_superphrase(document: Document, labels: Sequence[str], fold: bool = False) -> Counter[tuple[str, str]]:
    return _majorities(entities(document, labels, fold), lambda a, b: contains(b.words, a.words))


def _majorities(found: list[Entity], counts: Callable[[Entity, Entity], bool]) -> Counter[tuple[str, str]]:
    keys: Counter[tuple[str, str]] = Counter()
    for a in found:
        others = [b.type for b in found if b is not a and counts(a, b)]
        if others:
            keys[a.type, majority(a.type, others)] += 1
    return keys


def conjunction(document: Document, labels: Sequence[str], connectors: Sequence[str]) -> Counter[tuple[str, str]]:
    folded = {word.casefold() for word in connectors}
    keys: Counter[tuple[str, str]] = Counter()
    for number, sentence in enumerate(document):
        members = [entity for entity in entities(document, labels) if entity.sentence == number]
        for i, a in enumerate(members):
            for j in range(i + 1, len(members)):
                gap = sentence[members[j - 1].end : members[j].start]
                if not gap or any(word.casefold() not in folded for word in gap):
                    break
                keys[tuple(sorted((a.type, members[j].type)))] += 1
    return keys
