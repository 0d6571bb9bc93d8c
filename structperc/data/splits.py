"""Parts of a corpus: held-out development data, drawn training data, and chunks for step-by-step processing."""

from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.tag_schemes import parse_tag
from structperc.errors import InputError
from structperc.spelling import counted

Extent = Literal["sequence", "document", "corpus"]  # parts that must not be divided


def widest(extents: Iterable[Extent]) -> Extent:
    """Return the largest of one or more extents."""
    return max(extents, key=get_args(Extent).index)


def split_holdout(corpus: Corpus, holdout: float, scheme: str, seed: int) -> tuple[Corpus, Corpus]:
    """Split a corpus into training data and held-out data.

    An integer is the number of the last sequences to hold out, a share below 1 the size of a random sample, see
    `sample_holdout`. Raises InputError if no training data is left.
    """
    if holdout < 1:
        chosen = sample_holdout(corpus, holdout, scheme, seed)
        return corpus.subset(~chosen), corpus.subset(chosen)
    kept = len(corpus) - int(holdout)
    if kept < 1:
        size = counted(len(corpus), "sequence")
        raise InputError(f"data.holdout is {holdout}, but {corpus.name} has {size}; hold out fewer")
    return corpus.slice(0, kept), corpus.slice(kept, len(corpus))


def sample_holdout(corpus: Corpus, share: float, scheme: str, seed: int) -> np.ndarray:
    """Draw a share of the sequences at random, whole documents if there are several. -> (S,) bool.

    Skips documents that would exceed the share, and those with the last segments of a type (the last tokens of a label,
    for the scheme "none") in the training data. Raises InputError if none can be drawn.
    """
    documents = corpus.documents if len(np.unique(corpus.documents)) > 1 else np.arange(len(corpus))
    number, sizes = np.unique(documents, return_inverse=True, return_counts=True)[1:]
    types = _types_by_document(corpus, number, scheme)
    left = types.sum(0)  # documents with each type in the training data
    missing, taken = max(1, round(share * len(corpus))), np.zeros(len(sizes), bool)
    order = np.random.default_rng(seed).permutation(len(sizes))
    possible = order[~(types & (left < 2)).any(1)[order]] if len(sizes) > 1 else order[:0]
    if not len(possible):
        reason = f"cannot hold out a part of {corpus.name}, since each part has labels that no other part has"
        raise InputError(f"data.holdout: {reason}; name a dev file")
    for i in possible:
        if sizes[i] <= missing and (left[types[i]] > 1).all():
            taken[i], missing, left = True, missing - sizes[i], left - types[i]
        if not missing:
            break
    if not taken.any():
        taken[min(possible, key=sizes.__getitem__)] = True
    return taken[number]


def draw_part(corpus: Corpus, size: int | float, seed: int) -> Corpus:
    """Draw a number of sequences, or a share up to 1.0, at random; they keep their order.

    With one seed a larger part contains the smaller one. Raises InputError for more sequences than there are.
    """
    count = max(1, round(size * len(corpus))) if isinstance(size, float) and size <= 1 else int(size)
    if count > len(corpus):
        available = counted(len(corpus), "sequence")
        raise InputError(f"data.train_size is {size}, but {corpus.name} has {available}; use null for all of them")
    drawn = np.zeros(len(corpus), bool)
    drawn[np.random.default_rng(seed).permutation(len(corpus))[:count]] = True
    return corpus.subset(drawn)


def missing_types(whole: Corpus, part: Corpus, scheme: str) -> list[str]:
    """Return the types of segments (the labels, for the scheme "none") of a corpus that are missing in a part of it."""
    return sorted(_type_names(whole, scheme) - _type_names(part, scheme))


def _types_by_document(corpus: Corpus, number: np.ndarray, scheme: str) -> np.ndarray:
    """Return a mask of types (columns) in documents (rows), from the numbers (S,) of documents."""
    if "label" not in corpus.columns:
        return np.zeros((number.max(initial=-1) + 1, 0), bool)
    labels = corpus.factorize("label")
    names = sorted(_type_names(corpus, scheme))
    mask = np.zeros((number.max(initial=-1) + 1, len(names) + 1), bool)
    ids = [names.index(name) if (name := _type_of(label, scheme)) is not None else -1 for label in labels.distinct]
    mask[np.repeat(number, corpus.lengths), np.array(ids)[labels.numbers]] = True
    return mask[:, :-1]


def _type_names(corpus: Corpus, scheme: str) -> set[str]:
    return {name for label in corpus.factorize("label").distinct if (name := _type_of(label, scheme)) is not None}


def _type_of(label: str, scheme: str) -> str | None:
    return label if scheme == "none" else parse_tag(label, scheme).type


def chunk_bounds(corpus: Corpus, size: int, extent: Extent = "sequence") -> list[int]:
    """Return the bounds 0, ..., S of chunks of neighbouring sequences; a corpus without sequences is one chunk.

    A chunk has about `size` tokens, but at least one sequence, document or corpus, depending on the extent. A document
    whose sequences are not adjacent includes those between.
    """
    wanted = np.searchsorted(corpus.starts, np.arange(0, max(1, corpus.tokens), size))
    allowed = _allowed_bounds(corpus, extent)
    bounds = np.unique(allowed[np.searchsorted(allowed, wanted)])
    return [*bounds[bounds < len(corpus)].tolist(), len(corpus)] if len(corpus) else [0, 0]


def _allowed_bounds(corpus: Corpus, extent: Extent) -> np.ndarray:
    """Return the numbers of the sequences that may begin a chunk, ascending, and S."""
    count = len(corpus)
    if extent == "sequence" or not count:
        return np.arange(count + 1)
    if extent == "corpus":
        return np.array([0, count])
    which = np.unique(corpus.documents, return_inverse=True)[1]
    last = np.zeros(which.max() + 1, np.int64)
    np.maximum.at(last, which, np.arange(count))
    ends = np.flatnonzero(np.maximum.accumulate(last[which]) == np.arange(count))  # no document continues after these
    return np.concatenate([[0], ends + 1])
