"""The strings of a template that candidate lists have, collected batch by batch and kept as sorted arrays."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.nonlocal_features.global_feature import GlobalFeature, Occurrences

PENDING = 2**18  # keys of batches that wait until they are merged, unless so many are known that it can be more


class Instances(NamedTuple):
    """One place for each of F strings, at which it occurs."""

    rows: Tensor  # (F,) int32, sequence of the corpus
    candidates: Tensor  # (F,) int32, the candidate k that has it
    starts: Tensor  # (F,) int32, as in `Occurrences`
    ends: Tensor  # (F,) int32
    types: Tensor  # (F,) int32
    parts: Tensor  # (F,) int32


class _Known(NamedTuple):
    """Different keys, ascending."""

    keys: Tensor  # (F,) int64
    sequences: Tensor  # (F,) int32, how many have it
    examples: Tensor  # (F, 6) int32, the fields of `Instances`


class Vocabulary:
    """The strings of one template and how many sequences have each in some candidate.

    Takes 36 bytes for each different string and, while arrays are merged, about three times that.
    """

    def __init__(self) -> None:
        none = torch.zeros(0, dtype=torch.int32)
        self._known = _Known(none.long(), none, none.view(0, len(Instances._fields)))
        self._waiting: list[_Known] = []

    def add(self, occurrences: Occurrences, rows: Tensor, K: int) -> None:
        """Count the strings of sequences rows (B,) of the corpus, each given once, with K candidates each."""
        found = Occurrences(*(values.cpu() for values in occurrences))
        keys, inverse = found.keys.unique(return_inverse=True)
        B = max(1, len(rows))
        sequences = ((inverse * B + found.candidates // K).unique() // B).bincount(minlength=len(keys))
        first = torch.full_like(keys, len(inverse))
        first.scatter_reduce_(0, inverse, torch.arange(len(inverse)), "amin")
        at = Occurrences(*(values[first] for values in found))
        places = rows.cpu()[at.candidates // K], at.candidates % K
        examples = torch.stack([*places, at.starts, at.ends, at.types, at.parts], 1)
        self._waiting.append(_Known(keys, sequences.int(), examples.int()))
        if sum(len(one.keys) for one in self._waiting) > max(PENDING, len(self._known.keys)):
            self._merge()

    def keys(self, min_sequences: int = 1) -> Tensor:
        """Return the strings (F,) int64 that at least so many sequences have, ascending."""
        self._merge()
        return self._known.keys[self._known.sequences >= min_sequences]

    def examples(self, keys: Tensor) -> Instances:
        """Return one occurrence of each of these strings (F,). Raises InputError for one that was not seen."""
        self._merge()
        keys = keys.cpu()
        places = torch.searchsorted(self._known.keys, keys)
        if len(keys) and not (places.max() < len(self._known.keys) and self._known.keys[places].equal(keys)):
            raise InputError("examples: some of these keys are not in the vocabulary")
        return Instances(*self._known.examples[places].unbind(1))

    def _merge(self) -> None:
        """Make one of all arrays; of equal keys the example that came first is kept."""
        if not self._waiting:
            return
        every = [self._known, *self._waiting]
        self._waiting = []
        keys, order = torch.cat([one.keys for one in every]).sort(stable=True)
        new = keys.diff(prepend=keys[:1] - 1) != 0
        first, owner = new.nonzero().squeeze(1), new.cumsum(0) - 1
        sequences = torch.cat([one.sequences for one in every])[order]
        total = sequences.new_zeros(len(first)).index_add_(0, owner, sequences)
        self._known = _Known(keys[first], total, torch.cat([one.examples for one in every])[order[first]])


def spell(
    feature: GlobalFeature,
    examples: Instances,
    corpus: Corpus,
    labels: Callable[[int, int], Sequence[str]],
    types: Sequence[str],
) -> list[str]:
    """Return the strings of a template, spelled as they are in examples (F,).

    labels(row, k): label names of the candidate k of a sequence of the corpus. types: `LabelSet.type_names`.
    """
    words, boundaries = corpus.columns["word"], torch.from_numpy(corpus.sentences)
    starts = torch.from_numpy(corpus.starts)[examples.rows.long()]
    sentence = torch.searchsorted(boundaries, starts + examples.starts, right=True)
    first, stop = boundaries[sentence - 1], boundaries[sentence]
    columns = (first, stop, first - starts, *examples)
    strings = []
    for a, b, before, row, k, start, end, kind, part in zip(*(column.tolist() for column in columns), strict=True):
        own = labels(row, k)[before : before + b - a]
        name = types[kind] if kind >= 0 else ""
        strings.append(feature.string(words[a:b], own, start - before, end - before, name, part))
    return strings
