"""Random labelled documents."""

import random
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import SCHEMES
from structperc.data.words import word_hashes, word_numbers
from structperc.ragged import Ragged
from structperc.structures import Batch, Words

WORDS = ["a", "a", "b", "A", "B", "c", ",", "and", "AND", "or"]
QUOTING = ['"', "``", "''", "“", "”", '"', "The", "the", "THE", "G.M.", "1996", "Xer", "iPod", ".", "--", "Élan", "a1"]


class Case(NamedTuple):
    documents: list[list[list[str]]]  # words of each sentence
    batch: Batch
    labels: Tensor  # (B, K, T)
    valid: Tensor  # (B, K)
    label_set: LabelSet

    def names(self, b: int, k: int) -> list[str]:
        return self.label_set.decode(self.labels[b, k, : self.batch.lengths[b]])


def make_batch(documents: Sequence[Sequence[Sequence[str]]]) -> Batch:
    """A batch of documents given as words, without features."""
    flat = [[(word, n, i == 0) for n, s in enumerate(d) for i, word in enumerate(s)] for d in documents]
    lengths = torch.tensor([len(d) for d in flat], dtype=torch.int64)
    T = max((len(d) for d in flat), default=0)
    columns = torch.zeros(7, len(flat), T, dtype=torch.int64)
    for b, document in enumerate(flat):
        words, sentences, first = zip(*document, strict=True) if document else ((), (), ())
        last = (*first[1:], True)[: len(first)]
        for column, value in zip(columns, (sentences, first, last, *word_numbers(words)), strict=True):
            column[b, : len(document)] = torch.as_tensor(value, dtype=torch.int64)
    sentences, first, last, *words = columns
    none = Ragged(torch.zeros(0, dtype=torch.int32), torch.zeros(1, dtype=torch.int32))
    rows = torch.arange(len(flat))
    return Batch(none, None, lengths, None, sentences, first.bool(), last.bool(), rows, Words(*words))


def make_case(seed: int, words: Sequence[str] = WORDS) -> Case:
    """Up to four documents of up to five sentences, in a third of the cases also one of no and one of one token.

    Labellings are random, or change one at few tokens; any label may follow any. What nobody may read, the padding
    and the labellings that are not valid, holds no labels.
    """
    draw = random.Random(seed)
    torch.manual_seed(seed)
    label_set = make_labels(draw.choice(["IOB1", "IOB2", "IOBES", "BILOU"]), draw.choice([1, 2, 3, 3, 3]), draw)
    documents = [[draw.choices(words, k=draw.randint(1, 9)) for _ in range(draw.randint(1, 5))]]
    documents += [[draw.choices(words, k=draw.randint(1, 9))] * draw.randint(1, 3) for _ in range(draw.randint(0, 3))]
    if seed % 3 == 0:
        documents = [[], *documents, [[draw.choice(words)]]]
    batch = make_batch(documents)
    B, T = batch.sentences.shape
    K = draw.choice([1, 2, 5, 20, 60])
    connects = torch.isin(batch.words.folded, torch.from_numpy(word_hashes([",", "and", "or"])))
    inside = torch.rand(B, T) < torch.where(connects, 0.2, draw.choice([0.5, 0.8, 1.0]))
    labels = torch.randint(len(label_set), (B, K, T)).where(inside.unsqueeze(1), label_set.index("O"))
    if draw.random() < 0.6:
        changes = torch.rand(B, K, T) < draw.choice([0.03, 0.2])
        labels = labels.where(changes & (torch.rand(B, 1, T) < 0.5), labels[:, :1])
    valid = torch.rand(B, K) < draw.choice([0.5, 1.0, 1.0])
    real = torch.arange(T) < batch.lengths.unsqueeze(1)
    return Case(documents, batch, labels.where(real.unsqueeze(1) & valid.unsqueeze(2), 999), valid, label_set)


def make_labels(scheme: str, n_types: int, draw: random.Random) -> LabelSet:
    """The labels of a scheme in any order."""
    types = ["LOC", "ORG", "PER"][:n_types]
    names = ["O", *(f"{letter}-{kind}" for kind in types for letter in SCHEMES[scheme])]
    return LabelSet(tuple(draw.sample(names, len(names))), scheme)
