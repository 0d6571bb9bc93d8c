"""Development data taken from the training data, for corpora that have none of their own.

Where a corpus is cut into pieces of neighbouring sequences, by how much of it decides what is asked of a token.
"""

from typing import Literal

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.tag_schemes import parse_tag
from structperc.errors import InputError
from structperc.spelling import counted


def split_holdout(corpus: Corpus, holdout: float, scheme: str, seed: int) -> tuple[Corpus, Corpus]:
    """Return the sequences of a corpus that are left for training, and those held out, both in their order.

    A whole number holds out so many of the last sequences, a share below 1 those that `sample_holdout` draws. Raises
    InputError if nothing would be left.
    """
    if holdout < 1:
        chosen = sample_holdout(corpus, holdout, scheme, seed)
        return corpus.subset(~chosen), corpus.subset(chosen)
    kept = len(corpus) - int(holdout)
    if kept < 1:
        raise InputError(
            f"data.holdout is {holdout}, but {corpus.name} has {counted(len(corpus), 'sequence')}: hold out fewer"
        )
    return corpus.stretch(0, kept), corpus.stretch(kept, len(corpus))


def sample_holdout(corpus: Corpus, share: float, scheme: str, seed: int) -> np.ndarray:
    """Draw a share of the sequences of a corpus at random, whole documents where there are several. -> (S,) bool.

    Documents are taken in an order drawn by the seed, without those that are too large for what is missing, and those
    of which a type of segments (a label, for the scheme "none") would be missing in the other ones. Raises InputError
    where none can be taken.
    """
    documents = corpus.documents if len(np.unique(corpus.documents)) > 1 else np.arange(len(corpus))
    number, sizes = np.unique(documents, return_inverse=True, return_counts=True)[1:]
    types = _types(corpus, number, scheme)
    left = types.sum(0)  # documents with each type that are not taken
    missing, taken = max(1, round(share * len(corpus))), np.zeros(len(sizes), bool)
    order = np.random.default_rng(seed).permutation(len(sizes))
    possible = order[~(types & (left < 2)).any(1)[order]] if len(sizes) > 1 else order[:0]
    if not len(possible):
        raise InputError(
            f"data.holdout: nothing of {corpus.name} can be held out, since each part has labels of its own; "
            "name a dev file"
        )
    for i in possible:
        if sizes[i] <= missing and (left[types[i]] > 1).all():
            taken[i], missing, left = True, missing - sizes[i], left - types[i]
        if not missing:
            break
    if not taken.any():
        taken[min(possible, key=sizes.__getitem__)] = True
    return taken[number]


def missing_types(whole: Corpus, part: Corpus, scheme: str) -> list[str]:
    """Return the types of segments (the labels, for the scheme "none") that only the whole of a corpus has."""
    return sorted(_names(whole, scheme) - _names(part, scheme))


def _types(corpus: Corpus, number: np.ndarray, scheme: str) -> np.ndarray:
    """Which types occur in which document, of (S,) numbers of documents. -> (documents, types) bool."""
    if "label" not in corpus.columns:
        return np.zeros((number.max(initial=-1) + 1, 0), bool)
    labels = corpus.numbered("label")
    names = sorted(_names(corpus, scheme))
    found = np.zeros((number.max(initial=-1) + 1, len(names) + 1), bool)
    ids = [names.index(name) if (name := _type(label, scheme)) is not None else -1 for label in labels.distinct]
    found[np.repeat(number, corpus.lengths), np.array(ids)[labels.numbers]] = True
    return found[:, :-1]


def _names(corpus: Corpus, scheme: str) -> set[str]:
    return {name for label in corpus.numbered("label").distinct if (name := _type(label, scheme)) is not None}


def _type(label: str, scheme: str) -> str | None:
    return label if scheme == "none" else parse_tag(label, scheme).type


Extent = Literal["sequence", "document", "corpus"]


def chunk_bounds(corpus: Corpus, size: int, extent: Extent = "sequence") -> list[int]:
    """Return 0, ..., S: piece i is the sequences bounds[i], ..., bounds[i + 1] - 1. A corpus without any is one piece.

    A piece has some `size` tokens, or is one sequence, the sequences of one document or, by its extent, all. Sequences
    of a document that do not stand together keep those between them.
    """
    wanted = np.searchsorted(corpus.starts, np.arange(0, max(1, corpus.tokens), size))
    allowed = _cuts(corpus, extent)
    found = np.unique(allowed[np.searchsorted(allowed, wanted)])
    return [*found[found < len(corpus)].tolist(), len(corpus)] if len(corpus) else [0, 0]


def _cuts(corpus: Corpus, extent: Extent) -> np.ndarray:
    """The numbers of the sequences that may begin a piece, ascending, and S."""
    count = len(corpus)
    if extent == "sequence" or not count:
        return np.arange(count + 1)
    if extent == "corpus":
        return np.array([0, count])
    which = np.unique(corpus.documents, return_inverse=True)[1]
    last = np.zeros(which.max() + 1, np.int64)
    np.maximum.at(last, which, np.arange(count))
    ends = np.flatnonzero(np.maximum.accumulate(last[which]) == np.arange(count))  # no document goes on after these
    return np.concatenate([[0], ends + 1])
