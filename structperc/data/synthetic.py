"""The embedded corpus: documents whose ambiguous names only non-local evidence resolves.

Two names of each document are its topics. The class of a topic, person, place or company with equal odds, holds
for the whole document and is drawn anew in the next one, so the name itself tells nothing. A document has

* a headline in capitals, which names the first topic with probability a (`ambiguity`);
* one clear mention of each topic ("Mr. X", "police in X", "X Corp.") and two further ones, each in a sentence
  that fits every class ("nothing was heard from X") with probability a and clear otherwise;
* with probability a, a list "in X, Y and Z" of a topic and two more names of its class: only X is clear;
* two sentences with two names each whose class shows in their form or context.

That is 10 + 4a names on average. 7a of them are undecidable within two tokens to either side, and nothing does
better on those than one class for all, right for a third. So the segment F1 of local evidence is at most

    1 - (2/3) * 7a / (10 + 4a),    0.806 for a = 0.5,

while the other mentions of the document (exact, inside a longer name, in capitals) and the list decide all.
Names of the splits come partly from disjoint inventories. The column `evidence` records what decides each name:
"local", "list" or "document"; "O" outside names.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

from datasets import Dataset

from structperc.data.corpus import Corpus
from structperc.data.labels import Span, spans
from structperc.data.rows import rows
from structperc.errors import InputError

CLASSES = ("PER", "LOC", "ORG")  # of an ambiguous name
ROLES = ("word", "pos", "chunk", "label", "evidence")


class Mention(NamedTuple):
    """A name as it stands in a sentence."""

    words: tuple[str, ...]
    type: str
    evidence: str
    pos: str = "NNP"


Sentence = dict[str, list[str]]


def synthetic_splits(
    seed: int = 0,
    train: int = 300,
    dev: int = 100,
    test: int = 100,
    ambiguity: float = 0.5,
    unseen: float = 0.3,
) -> dict[str, Dataset]:
    """Training, development and test documents, each split with names of its own (share `unseen`)."""
    sizes = {"train": train, "dev": dev, "test": test}
    return {
        split: synthetic_corpus(seed, size, ambiguity=ambiguity, unseen=unseen, inventory=number)
        for number, (split, size) in enumerate(sizes.items())
    }


def synthetic_corpus(
    seed: int = 0, documents: int = 300, *, ambiguity: float = 0.5, unseen: float = 0.3, inventory: int = 0
) -> Dataset:
    """Rows of sentences with the columns `word`, `pos`, `chunk`, `label` (IOB2) and `evidence`.

    `ambiguity` is the a of the module's text, `unseen` the share of names that no other `inventory` has. Equal
    arguments give equal rows. InputError for probabilities outside 0..1.
    """
    for option, value in (("ambiguity", ambiguity), ("unseen", unseen)):
        if not 0 <= value <= 1:
            raise InputError(f"{option} must lie between 0 and 1, not {value}")
    chance = random.Random(f"{seed} {inventory}")
    names = _Names(chance, unseen, inventory)
    flat: Sentence = {role: [] for role in ROLES}
    borders, ids = [0], []
    for document in range(documents):
        for sentence in _document(names, chance, ambiguity):
            for role in ROLES:
                flat[role] += sentence[role]
            borders.append(len(flat["word"]))
            ids.append(document)
    return rows(flat, borders, ids)


def local_ceiling(corpus: Dataset) -> float:
    """Highest expected segment F1 of a tagger that sees two tokens to either side, from the generator's record.

    Names that are decided locally are right, of the others one in three is.
    """
    columns = Corpus.from_dataset(corpus).columns
    evidence = [columns["evidence"][span.start] for span in _names_of(columns)]
    local = evidence.count("local")
    return (local + (len(evidence) - local) / len(CLASSES)) / len(evidence)
