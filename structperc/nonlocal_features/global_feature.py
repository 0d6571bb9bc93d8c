"""Global features (Collins 2002): strings of whole label sequences, each hashed to a number, and their vocabularies.

Section 3.2: words w, their shapes f, and shapes with a flag g are numbers of every token of a batch and strings of one
token of a sentence. Outside of a sentence all of them are NULL, whose number is 0.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from structperc.data.corpus import Corpus
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
    strings: list[str] | None  # their F names, where they are known; they are not saved with the weights

    def __init__(self, typed: bool = True) -> None:
        super().__init__()
        self.typed = typed
        self.strings = None
        self.weight = nn.Parameter(torch.zeros(0))
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

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *options: Any) -> None:
        """Takes a vocabulary of any size; the names of another one are forgotten."""
        saved = state_dict.get(f"{prefix}keys")
        if saved is not None and not torch.equal(saved.to(self.keys.device), self.keys):
            self.learn(saved)
        super()._load_from_state_dict(state_dict, prefix, *options)


class LexiconFeature(GlobalFeature):
    """A template with the flag g of a lexicon.

    Args:
        typed: strings differ for entities of different types.
        lexicon: words that are usually in lower case; by default those of the training data.
    """

    def __init__(self, typed: bool = True, lexicon: LowerCaseLexicon | None = None) -> None:
        super().__init__(typed)
        self.lexicon = lexicon or LowerCaseLexicon()


@lru_cache(maxsize=64)
def name_hashes(names: tuple[str | None, ...]) -> Tensor:
    """Return numbers (n,) int64 of names; None, which stands for no name, has the number 0."""
    numbers = [0 if name is None else int(word_hashes([name])[0]) for name in names]
    return torch.tensor(numbers, device="cpu")  # kept for others, whatever device is the default now


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
