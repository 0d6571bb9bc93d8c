"""Global features (Collins 2002): strings that are read off whole label sequences, each hashed to a number.

Section 3.2: words w, their shapes f, and shapes with a flag g are numbers of every token of a batch and strings of one
token of a sentence. Outside of a sentence all of them are NULL, whose number is 0.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from structperc.data.lexicon import LowerCaseLexicon
from structperc.data.words import word_hashes, word_shape
from structperc.errors import InputError
from structperc.nonlocal_features.base import NonlocalFeature
from structperc.nonlocal_features.segments import CandidateSegments
from structperc.nonlocal_features.strings import combined
from structperc.structures import Words

NULL = "NULL"


def lexicon_shapes(words: Words, lexicon: LowerCaseLexicon) -> Tensor:
    """Return a number for g of each token, (B, T) int64: the word's shape and whether it is usually in lower case."""
    return combined(words.shapes, lexicon(words.folded).long())


def lexicon_shape(word: str, lexicon: LowerCaseLexicon) -> str:
    """Return the shape of a word and 1 if it is in the lexicon, else 0: g of Animal is Aa1."""
    return f"{word_shape(word)}{int(word in lexicon)}"


def shifted(numbers: Tensor, places: Tensor, by: int | Tensor, segments: CandidateSegments) -> Tensor:
    """Return the numbers (B, T) of the tokens `by` (n,) to the right of places b * T + t (n,).

    Outside of their sentence the result is 0.
    """
    target = (places + by).clamp(0, numbers.numel() - 1)
    same = (segments.sentences[target] == segments.sentences[places]) & (target == places + by)
    return numbers.flatten()[target].where(same, 0)


def spelled(words: Sequence[str], t: int, lexicon: LowerCaseLexicon | None = None) -> str:
    """Write the word at t, or its g where a lexicon is given, or NULL where there is no token."""
    if not 0 <= t < len(words):
        return NULL
    return words[t] if lexicon is None else lexicon_shape(words[t], lexicon)


class Occurrences(NamedTuple):
    """Where strings occur in label sequences; a label sequence may have the same one several times."""

    candidates: Tensor  # (M,) int64, b * K + k
    keys: Tensor  # (M,) int64, number of the string
    starts: Tensor  # (M,) int64, position in the sequence of the first token that the string is about
    ends: Tensor  # (M,) int64, position after the last one
    types: Tensor  # (M,) int64, position in `LabelSet.type_names` of the segment there, -1 where there is none
    parts: Tensor  # (M,) int64, which string of the template


class GlobalFeature(NonlocalFeature):
    """A template of Collins (2002): each string that it makes is a feature, which a label sequence has or has not.

    "Ranking Algorithms for Named-Entity Extraction", section 3, where a generator makes strings and another module
    hashes them to integers; here the integers are made at once, for all label sequences, and a string is spelled only
    when it is asked for. Which strings are features is learned: those of the training lists. Others count nothing, and
    before `learn` all do. A subclass finds the strings of a batch by number and spells one of them.

    Args:
        typed: whether entities of different types make different strings. The paper has one type.
    """

    template: str  # the paper's name of it
    keys: Tensor  # (F,) int64, numbers of the strings that are features, ascending
    any_size = True  # of a loaded state
    strings: list[str] | None  # their F names, where they are known; they are not saved with the weights

    def __init__(self, typed: bool = True) -> None:
        super().__init__()
        self.typed = typed
        self.strings = None
        self.weight = nn.Parameter(torch.zeros(0))
        self.register_load_state_dict_pre_hook(_learn_saved)
        self.register_buffer("keys", torch.zeros(0, dtype=torch.int64, device="cpu"))  # looked at while it is built

    # -- what a template says --------------------------------------------------------------------------------

    @abstractmethod
    def occurrences(self, segments: CandidateSegments) -> Occurrences:
        """Return all strings of all valid label sequences, known or not."""

    @abstractmethod
    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string without its type; the arguments are those of `string`."""

    def string(
        self, words: Sequence[str], labels: Sequence[str], start: int, end: int, type_name: str, part: int
    ) -> str:
        """Return the string that occurs in a sentence, as the paper writes it, such as "WE=Gen Xer/PER".

        words, labels: those of the sentence.
        start, end: tokens it is about, counted from the first of the sentence, which `Occurrences` does not do.
        type_name: of the segment there, "" where there is none.
        part: as in `Occurrences`.
        """
        spelled = self.spell(words, labels, start, end, part)
        return f"{spelled}/{type_name}" if self.typed and type_name else spelled

    def key(self, numbers: Tensor, parts: Tensor | int, types: Tensor, segments: CandidateSegments) -> Tensor:
        """Return numbers of strings, int64, that include template, part and type, from numbers that do not.

        A type of -1 stands for none.
        """
        type_numbers = name_hashes((*segments.label_set.type_names, None)).to(types.device)
        template = int(word_hashes([self.template])[0])
        return combined(numbers, parts, type_numbers[types] if self.typed else 0, template)

    # -- the vocabulary --------------------------------------------------------------------------------------

    def read(self, words: Iterable[str]) -> None:
        """Learn from the text of the training data what the template asks about words. Most ask nothing."""
        for part in self.children():
            if isinstance(part, LowerCaseLexicon):
                part.read(words)

    def learn(self, keys: Tensor, strings: Sequence[str] | None = None) -> None:
        """Take the strings of these numbers (F,), ascending, as features; their weights are zero.

        `strings` are their names, where they are known. Raises InputError when keys are not ascending or names are not
        F.
        """
        if not (keys[1:] > keys[:-1]).all():
            raise InputError(f"{self.template}: the keys of a vocabulary must ascend, without repetition")
        if strings is not None and len(strings) != len(keys):
            raise InputError(f"{self.template}: {len(strings)} strings cannot be the names of {len(keys)} keys")
        self.keys = keys.to(self.keys.device, torch.int64)
        self.strings = None if strings is None else list(strings)
        self.weight = nn.Parameter(self.weight.new_zeros(len(keys)), self.weight.requires_grad)

    def prune(self, keep: Tensor) -> None:
        """Forget the strings for which keep (F,) bool is False. Raises InputError for another shape."""
        if keep.shape != self.keys.shape:
            raise InputError(f"{self.template}: keep has shape {tuple(keep.shape)}, not {tuple(self.keys.shape)}")
        keep = keep.to(self.keys.device)
        if self.strings is not None:
            self.strings = [name for name, kept in zip(self.strings, keep.tolist(), strict=True) if kept]
        self.keys = self.keys[keep]
        self.weight = nn.Parameter(self.weight.detach()[keep], self.weight.requires_grad)

    def names(self, types: Sequence[str]) -> list[str]:
        """Return the F strings, or template and number of those that are not known, such as "WE#00c0ffee00c0ffee"."""
        if self.strings is not None:
            return list(self.strings)
        return [f"{self.template}#{key % 2**64:016x}" for key in self.keys.tolist()]

    # -- known strings ---------------------------------------------------------------------------------------

    def found(self, segments: CandidateSegments) -> tuple[Tensor, Tensor]:
        """Return features of candidates: b * K + k (N,) int64, ascending, and 0 <= feature < F (N,), each pair once."""
        found, F = self.occurrences(segments), len(self.keys)
        if not F:
            return found.candidates[:0], found.keys[:0]
        ids = torch.searchsorted(self.keys, found.keys).clamp_(max=F - 1)
        known = (self.keys[ids] == found.keys).nonzero().squeeze(1)
        pairs = (found.candidates[known] * F + ids[known]).unique()
        return pairs // F, pairs % F

    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return which features each label sequence has, (B * K, F) float32, sparse, of ones."""
        places = torch.stack(self.found(segments))
        ones = torch.ones_like(places[0], dtype=torch.float32)
        size = segments.valid.numel(), len(self.keys)
        return torch.sparse_coo_tensor(places, ones, size, check_invariants=False, is_coalesced=True)


def _learn_saved(feature: GlobalFeature, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Take the vocabulary of a saved feature; the names of another vocabulary are forgotten."""
    saved = state.get(f"{prefix}keys")
    if saved is not None and not torch.equal(saved.to(feature.keys.device), feature.keys):
        feature.learn(saved)


@lru_cache(maxsize=64)
def name_hashes(names: tuple[str | None, ...]) -> Tensor:
    """Return numbers (n,) int64 of names; None, which stands for no name, has the number 0."""
    numbers = [0 if name is None else int(word_hashes([name])[0]) for name in names]
    return torch.tensor(numbers, device="cpu")  # kept for others, whatever device is the default now
