"""Global features (Collins 2002): strings of whole label sequences, each hashed to a number, and their vocabularies.

A token is described by its word w, its shape f or its shape with a flag g (section 3.2). Features of a batch use the
number (hash) of these strings for every token. The strings themselves are generated only for display. Positions outside
the sentence are NULL, with number 0.
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
from structperc.nonlocal_features.candidate_segments import CandidateSegments
from structperc.nonlocal_features.strings import combined
from structperc.structures import Words

NULL = "NULL"


def word_shapes_with_flag(words: Words, lexicon: LowerCaseLexicon) -> Tensor:
    """Return the number of g of each token, (B, T) int64: the word's shape and its flag in the lexicon."""
    return combined(words.shapes, lexicon(words.folded).long())


def word_shape_with_flag(word: str, lexicon: LowerCaseLexicon) -> str:
    """Return g of a word, such as Aa1 for Animal: its shape and 1 if it is in the lexicon, else 0."""
    return f"{word_shape(word)}{int(word in lexicon)}"


def shift(numbers: Tensor, places: Tensor, by: int | Tensor, segments: CandidateSegments) -> Tensor:
    """Return the numbers (n,) of the tokens `by` (n,) to the right of positions b * T + t (n,), 0 outside the sentence.

    numbers (B, T) int64.
    """
    target = (places + by).clamp(0, numbers.numel() - 1)
    same = (segments.sentences[target] == segments.sentences[places]) & (target == places + by)
    return numbers.flatten()[target].where(same, 0)


def token_string(words: Sequence[str], t: int, lexicon: LowerCaseLexicon | None = None) -> str:
    """Return the word at t, or its g if a lexicon is given, or NULL outside the sentence."""
    if not 0 <= t < len(words):
        return NULL
    return words[t] if lexicon is None else word_shape_with_flag(words[t], lexicon)


class Occurrences(NamedTuple):
    """Occurrences of strings in label sequences, with repetitions."""

    candidates: Tensor  # (M,) int64, b * K + k
    keys: Tensor  # (M,) int64, number of the string
    starts: Tensor  # (M,) int64, position in the sequence of the first token of the string
    ends: Tensor  # (M,) int64, position after the last one
    types: Tensor  # (M,) int64, type of the segment as its position in `LabelSet.type_names`, -1 for none
    parts: Tensor  # (M,) int64, number of the string in the template


class GlobalFeature(NonlocalFeature):
    """Base class of the templates of Collins (2002), whose strings are binary features of label sequences.

    "Ranking Algorithms for Named-Entity Extraction", section 3, where strings are generated and hashed to integers.
    Here the integers are computed directly for all label sequences, and strings are generated only for display. The
    features are the strings of the training lists, given to `set_vocabulary`; other strings do not count. Subclasses
    compute the numbers of the strings of a batch (`occurrences`) and generate a string (`format_string`).

    Args:
        typed: True to distinguish the strings of entities of different types. The paper has one type.

    Example:
        >>> from structperc.nonlocal_features import WholeEntity
        >>> WholeEntity().string(["Anna", "Lind", "left"], ["B-PER", "I-PER", "O"], 0, 2, "PER", 0)
        'WE=Anna Lind/PER'
        >>> WholeEntity(typed=False).string(["Anna", "Lind", "left"], ["B-PER", "I-PER", "O"], 0, 2, "PER", 0)
        'WE=Anna Lind'
    """

    template: str  # name of the template in the paper
    keys: Tensor  # (F,) int64, numbers of the strings that are features, ascending
    any_size = True  # load_state_dict accepts any size
    strings: list[str] | None  # their F names, if known; not saved with the weights

    def __init__(self, typed: bool = True) -> None:
        super().__init__()
        self.typed = typed
        self.strings = None
        self.weight = nn.Parameter(torch.zeros(0))
        self.register_load_state_dict_pre_hook(_restore_vocabulary)
        self.register_buffer("keys", torch.zeros(0, dtype=torch.int64, device="cpu"))  # read during construction

    # -- strings of a template -------------------------------------------------------------------------------

    @abstractmethod
    def occurrences(self, segments: CandidateSegments) -> Occurrences:
        """Return all strings of all valid label sequences."""

    @abstractmethod
    def format_string(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Return a string without its type; arguments as in `string`."""

    def string(
        self, words: Sequence[str], labels: Sequence[str], start: int, end: int, type_name: str, part: int
    ) -> str:
        """Return a string in the notation of the paper, such as "WE=Gen Xer/PER".

        Args:
            words: the words of the sentence.
            labels: the labels of the sentence.
            start: first token of the string, counted from the start of the sentence (not as in `Occurrences`).
            end: the token after the last one.
            type_name: type of the segment, "" for none.
            part: number of the string in the template, as in `Occurrences`.
        """
        text = self.format_string(words, labels, start, end, part)
        return f"{text}/{type_name}" if self.typed and type_name else text

    def key(self, numbers: Tensor, parts: Tensor | int, types: Tensor, segments: CandidateSegments) -> Tensor:
        """Return keys of strings, int64, from numbers without template, part and type; type -1 is no type."""
        type_numbers = name_hashes((*segments.label_set.type_names, None)).to(types.device)
        template = int(word_hashes([self.template])[0])
        return combined(numbers, parts, type_numbers[types] if self.typed else 0, template)

    # -- the vocabulary --------------------------------------------------------------------------------------

    def collect_lexicon(self, words: Iterable[str]) -> None:
        """Collect the lexicon of the template, if it has one, from the words of the training data."""
        for part in self.children():
            if isinstance(part, LowerCaseLexicon):
                part.read(words)

    def set_vocabulary(self, keys: Tensor, strings: Sequence[str] | None = None) -> None:
        """Set the strings that are features, with zero weights.

        `keys`: (F,) int64, numbers of the strings, ascending. `strings`: the F strings, if known.

        Raises:
            InputError: keys that do not ascend, or another number of strings.
        """
        if not (keys[1:] > keys[:-1]).all():
            raise InputError(f"{self.template}: the keys of a vocabulary must ascend, without repetition")
        if strings is not None and len(strings) != len(keys):
            raise InputError(f"{self.template}: {len(strings)} strings cannot be the names of {len(keys)} keys")
        self.keys = keys.to(self.keys.device, torch.int64)
        self.strings = None if strings is None else list(strings)
        self.weight = nn.Parameter(self.weight.new_zeros(len(keys)), self.weight.requires_grad)

    def prune(self, keep: Tensor) -> None:
        """Remove the strings for which keep (F,) bool is False.

        Raises:
            InputError: another shape of `keep`.
        """
        if keep.shape != self.keys.shape:
            raise InputError(f"{self.template}: keep has shape {tuple(keep.shape)}, not {tuple(self.keys.shape)}")
        keep = keep.to(self.keys.device)
        if self.strings is not None:
            self.strings = [name for name, kept in zip(self.strings, keep.tolist(), strict=True) if kept]
        self.keys = self.keys[keep]
        self.weight = nn.Parameter(self.weight.detach()[keep], self.weight.requires_grad)

    def names(self, types: Sequence[str]) -> list[str]:
        """Return the F strings, or if unknown template and key, such as "WE#00c0ffee00c0ffee"."""
        if self.strings is not None:
            return list(self.strings)
        return [f"{self.template}#{key % 2**64:016x}" for key in self.keys.tolist()]

    # -- known strings ---------------------------------------------------------------------------------------

    def feature_ids(self, segments: CandidateSegments) -> tuple[Tensor, Tensor]:
        """Return features of candidates: b * K + k (N,) int64, ascending, and 0 <= feature < F (N,), each pair once."""
        found, F = self.occurrences(segments), len(self.keys)
        if not F:
            return found.candidates[:0], found.keys[:0]
        ids = torch.searchsorted(self.keys, found.keys).clamp_(max=F - 1)
        known = (self.keys[ids] == found.keys).nonzero().squeeze(1)
        pairs = (found.candidates[known] * F + ids[known]).unique()
        return pairs // F, pairs % F

    def counts(self, segments: CandidateSegments) -> Tensor:
        """Return the binary features of each label sequence, (B * K, F) float32, sparse."""
        indices = torch.stack(self.feature_ids(segments))
        ones = torch.ones_like(indices[0], dtype=torch.float32)
        size = segments.valid.numel(), len(self.keys)
        return torch.sparse_coo_tensor(indices, ones, size, check_invariants=False, is_coalesced=True)


def _restore_vocabulary(feature: GlobalFeature, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """Take the vocabulary of a saved feature; names of another vocabulary are removed."""
    saved = state.get(f"{prefix}keys")
    if saved is not None and not torch.equal(saved.to(feature.keys.device), feature.keys):
        feature.set_vocabulary(saved)


class LexiconFeature(GlobalFeature):
    """A template with the flag g of a lexicon.

    Args:
        typed: True to distinguish the strings of entities of different types.
        lexicon: words that are usually in lower case; by default those of the training data.
    """

    def __init__(self, typed: bool = True, lexicon: LowerCaseLexicon | None = None) -> None:
        super().__init__(typed)
        self.lexicon = lexicon or LowerCaseLexicon()


@lru_cache(maxsize=64)
def name_hashes(names: tuple[str | None, ...]) -> Tensor:
    """Return hashes (n,) int64 of names, 0 for None."""
    numbers = [0 if name is None else int(word_hashes([name])[0]) for name in names]
    return torch.tensor(numbers, device="cpu")  # cached, independent of the default device


PENDING = 2**18  # keys to collect before they are merged; more if more keys are known


class Instances(NamedTuple):
    """One occurrence of each of F strings."""

    rows: Tensor  # (F,) int32, sequence of the corpus
    candidates: Tensor  # (F,) int32, candidate k with the string
    starts: Tensor  # (F,) int32, as in `Occurrences`
    ends: Tensor  # (F,) int32
    types: Tensor  # (F,) int32
    parts: Tensor  # (F,) int32


class _Known(NamedTuple):
    """Different keys, ascending."""

    keys: Tensor  # (F,) int64
    sequences: Tensor  # (F,) int32, number of sequences with the string
    examples: Tensor  # (F, 6) int32, the fields of `Instances`


class Vocabulary:
    """Strings of a template in candidate lists, and the number of sequences with each string.

    It takes 36 bytes for each different string, and about three times that while arrays are merged.
    """

    def __init__(self) -> None:
        none = torch.zeros(0, dtype=torch.int32)
        self._known = _Known(none.long(), none, none.view(0, len(Instances._fields)))
        self._waiting: list[_Known] = []

    def add(self, occurrences: Occurrences, rows: Tensor, K: int) -> None:
        """Count the strings of sequences rows (B,) of the corpus, with K candidates; add each sequence once."""
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
        """Return the keys (F,) int64 of strings in at least `min_sequences` sequences, ascending."""
        self._merge()
        return self._known.keys[self._known.sequences >= min_sequences]

    def examples(self, keys: Tensor) -> Instances:
        """Return one occurrence of each of these keys (F,).

        Raises:
            InputError: an unknown key.
        """
        self._merge()
        keys = keys.cpu()
        places = torch.searchsorted(self._known.keys, keys)
        if len(keys) and not (places.max() < len(self._known.keys) and self._known.keys[places].equal(keys)):
            raise InputError("examples: some of these keys are not in the vocabulary")
        return Instances(*self._known.examples[places].unbind(1))

    def _merge(self) -> None:
        """Merge all arrays; of equal keys the first example is kept."""
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


def format_strings(
    feature: GlobalFeature,
    examples: Instances,
    corpus: Corpus,
    labels: Callable[[int, int], Sequence[str]],
    types: Sequence[str],
) -> list[str]:
    """Return the F strings of a template at examples.

    Args:
        examples: one occurrence of each of F strings.
        corpus: the corpus with the sequences of the examples.
        labels: function labels(row, k) that returns the label names of candidate k of a sequence of the corpus.
        types: names of the segment types, as in `LabelSet.type_names`.
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
