"""The embedded corpus: documents whose ambiguous names only non-local evidence resolves.

Two names of each document are its topics. The class of a topic, person, place or company with equal odds,
holds for the whole document and is drawn anew in the next, so the name itself tells nothing. A document has

* a headline in capitals, which names the first topic with probability a (`ambiguity`);
* one clear mention of each topic ("Mr. X", "police in X", "X Corp.") and two further ones, each in a sentence
  that fits every class ("nothing was heard from X") with probability a, and clear otherwise;
* with probability a, a list "in X, Y and Z" of a topic and two more names of its class: only X is clear;
* two sentences with two names each whose class shows in their form or context.

That is 10 + 4a names on average. 7a of them are undecidable within two tokens to either side, and nothing
does better on those than one class for all, right for a third. So the segment F1 of local evidence is at most

    1 - (2/3) * 7a / (10 + 4a),    0.806 for a = 0.5,

while the other mentions in the document (the same name, alone, inside a longer one, or in capitals) and the
first name of the list decide all. Splits share a part of the names only. The column `evidence` records what
decides each name: "local", "list" or "document"; it is "O" outside names.
"""

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

from structperc.data.corpus import Corpus
from structperc.data.patterns import (
    BACKGROUND,
    CLEAR,
    HEADLINES,
    LISTS,
    NAMELESS_HEADLINES,
    NEUTRAL,
    Mention,
    SentenceColumns,
    render,
)
from structperc.data.rows import rows
from structperc.data.tags import BEGIN, read_tag
from structperc.errors import InputError

if TYPE_CHECKING:
    from datasets import Dataset

CLASSES = ("PER", "LOC", "ORG")  # of an ambiguous name
ROLES = ("word", "pos", "chunk", "label", "evidence")
INVENTORIES = 100
MOST = 1_000_000  # documents


def synthetic_splits(
    seed: int = 0,
    train: int = 300,
    dev: int = 100,
    test: int = 100,
    *,
    ambiguity: float = 0.5,
    unseen: float = 0.3,
) -> "dict[str, Dataset]":
    """Return {"train", "dev", "test"} with rows of so many documents; each split has names of its own."""
    sizes = {"train": train, "dev": dev, "test": test}
    return {
        split: synthetic_corpus(seed, size, ambiguity=ambiguity, unseen=unseen, inventory=number)
        for number, (split, size) in enumerate(sizes.items())
    }


def synthetic_corpus(
    seed: int = 0, documents: int = 300, *, ambiguity: float = 0.5, unseen: float = 0.3, inventory: int = 0
) -> "Dataset":
    """Return rows of sentences with the columns `word`, `pos`, `chunk`, `label` (IOB2) and `evidence`.

    `ambiguity` is the a of the module's text, `unseen` the share of names that no other `inventory` has.
    Equal arguments give equal rows. Raises InputError for options out of range.
    """
    _check(documents, ambiguity, unseen, inventory)
    chance = random.Random(f"{seed} {inventory}")
    names = _Names(chance, unseen, inventory)
    flat: SentenceColumns = {role: [] for role in ROLES}
    boundaries, ids = [0], []
    for document in range(documents):
        for sentence in _document(names, chance, ambiguity):
            for role in ROLES:
                flat[role] += sentence[role]
            boundaries.append(len(flat["word"]))
            ids.append(document)
    return rows(flat, boundaries, ids)


def local_ceiling(corpus: "Dataset") -> float:
    """Return the highest expected segment F1 within two tokens to either side, from the generator's own record.

    Names that are decided locally are counted as right, of the others one in three.
    """
    columns = Corpus.from_dataset(corpus).columns
    tokens = zip(columns["label"], columns["evidence"], strict=True)
    kinds = [evidence for label, evidence in tokens if read_tag(label).prefix == BEGIN]
    local = kinds.count("local")
    return (local + (len(kinds) - local) / len(CLASSES)) / len(kinds)


def _check(documents: int, ambiguity: float, unseen: float, inventory: int) -> None:
    if not 1 <= documents <= MOST:
        raise InputError(f"documents must lie between 1 and {MOST}, not {documents}")
    if not 0 <= inventory < INVENTORIES:
        raise InputError(f"inventory must lie between 0 and {INVENTORIES - 1}, not {inventory}")
    for option, value in (("ambiguity", ambiguity), ("unseen", unseen)):
        if not 0 <= value <= 1:
            raise InputError(f"{option} must lie between 0 and 1, not {value}")


class _Names:
    """Draws names; a stem belongs to one kind and to one inventory, 0 being shared by all splits."""

    _SIZE = 80
    _KINDS = ("ambiguous", "PER", "LOC", "ORG", "MISC")

    def __init__(self, chance: random.Random, unseen: float, inventory: int) -> None:
        self.chance, self.unseen, self.own = chance, unseen, inventory + 1

    def stem(self, kind: str) -> str:
        inventory = self.own if self.chance.random() < self.unseen else 0
        block = inventory * len(self._KINDS) + self._KINDS.index(kind)
        return _spell(block * self._SIZE + self.chance.randrange(self._SIZE))

    def ambiguous(self, count: int) -> list[str]:
        drawn: dict[str, None] = {}
        while len(drawn) < count:
            drawn[self.stem("ambiguous")] = None
        return list(drawn)

    def marked(self, kind: str) -> Mention:
        """Return a name whose class shows in its form."""
        stem, ending = self.stem(kind), self.chance.choice(_ENDINGS[kind])
        if kind == "PER":
            return Mention((self.chance.choice(_GIVEN), stem + ending), kind)
        if kind == "ORG":
            return Mention((stem, ending), kind)
        return Mention((stem + ending,), kind, pos="JJ" if kind == "MISC" else "NNP")

    def long(self, name: str, kind: str) -> Mention:
        """Return an ambiguous name inside a longer one that shows its class."""
        if kind == "PER":
            return Mention((self.chance.choice(_GIVEN), name), kind)
        return Mention((name, "Valley" if kind == "LOC" else "Corp."), kind)


def _spell(number: int) -> str:
    """Distinct pronounceable name for each number below 60000."""
    number = number * 37547 % 60000  # a bijection that scatters neighbours
    letters = ""
    for parts in (_ONSETS, _VOWELS, _ONSETS, _VOWELS, _CODAS):
        number, at = divmod(number, len(parts))
        letters += parts[at]
    return letters.capitalize()


def _document(names: _Names, chance: random.Random, ambiguity: float) -> Iterator[SentenceColumns]:
    first, second, *others = names.ambiguous(4)
    topics = {first: chance.choice(CLASSES), second: chance.choice(CLASSES)}
    yield _headline(chance, first, topics[first], chance.random() < ambiguity)
    body = [_clear(names, chance, *topic) for topic in topics.items()]
    for name, kind in (*topics.items(), *topics.items()):
        neutral = chance.random() < ambiguity
        body.append(_neutral(chance, name, kind) if neutral else _clear(names, chance, name, kind))
    if chance.random() < ambiguity:
        body.append(_list(chance, first, others, topics[first]))
    for pattern in chance.choices(BACKGROUND, k=2):
        body.append(render(pattern, chance, **{kind: names.marked(kind) for kind in _ENDINGS}))
    chance.shuffle(body)
    yield from body


def _headline(chance: random.Random, name: str, kind: str, named: bool) -> SentenceColumns:
    pattern = chance.choice(HEADLINES if named else NAMELESS_HEADLINES)
    sentence = render(pattern, chance, X=Mention((name,), kind, "document"))
    return {**sentence, "word": [word.upper() for word in sentence["word"]]}


def _clear(names: _Names, chance: random.Random, name: str, kind: str) -> SentenceColumns:
    pattern = chance.choice(CLEAR[kind])
    return render(pattern, chance, X=Mention((name,), kind), LONG=names.long(name, kind))


def _neutral(chance: random.Random, name: str, kind: str) -> SentenceColumns:
    return render(chance.choice(NEUTRAL), chance, X=Mention((name,), kind, "document"))


def _list(chance: random.Random, name: str, others: list[str], kind: str) -> SentenceColumns:
    y, z = (Mention((other,), kind, "list") for other in others)
    return render(LISTS[kind], chance, X=Mention((name,), kind), Y=y, Z=z)


_ONSETS = (*"bdfgklmnprstvz", "br", "dr", "gr", "kr", "st", "tr")
_VOWELS = tuple("aeiou")
_CODAS = (*"lnrsm", "nd")
_GIVEN = ("Anna", "Boris", "Clara", "David", "Elena", "Frank", "Greta", "Henry", "Irene", "Jakob", "Karen")
_ENDINGS = {
    "PER": ("sen", "ski", "ez"),
    "LOC": ("ville", "burg", "stead"),
    "ORG": ("Inc.", "Group", "Union"),
    "MISC": ("ian", "ese"),
}
