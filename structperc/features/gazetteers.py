"""Gazetteers: lists of phrases, matched against the words of each sentence."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from structperc.data.text import read_lines
from structperc.data.typed import check_fields
from structperc.errors import InputError

TAGS = ("", "B", "I")
UNKNOWN = -1  # a word that is in no phrase; a state from which no phrase goes on


class Gazetteer:
    """A list of phrases whose leftmost-longest matches become an attribute with values B, I and "" (IOB2).

    `phrases` is the path of a file with one phrase per line (UTF-8; words separated by spaces) or the phrases
    themselves. With `fold`, case is ignored on both sides.
    The phrases are a trie in sorted arrays: the key of leaving state s by word w is s * words + w, and its
    rank gives the state that is reached, so that all places of a corpus are matched at the same time.
    """

    def __init__(self, phrases: str | Path | Sequence[str], fold: bool = True) -> None:
        self.fold = fold
        self.phrases = _read(phrases) if isinstance(phrases, str | Path) else list(phrases)
        split = [words for phrase in self._folded(self.phrases) if (words := phrase.split())]
        if not split:
            place = phrases if isinstance(phrases, str | Path) else "gazetteer"
            raise InputError(f"{place}: there is no phrase in it; give at least one or leave the gazetteer out")
        flat = list(chain.from_iterable(split))
        self._words = {word: i for i, word in enumerate(dict.fromkeys(flat))}
        lengths = np.array([len(words) for words in split])
        self._keys, self._final = _trie(np.array([self._words[word] for word in flat]), lengths)

    def tag(self, words: Sequence[str], tokens: np.ndarray, sentences: np.ndarray) -> np.ndarray:
        """Return the index into `TAGS` of each token, (N,) int8.

        `words` are the distinct words, `tokens` (N,) says which of them stands at each token, and sentence r
        is tokens[sentences[r]:sentences[r + 1]]; no match crosses its boundary.
        """
        number = np.array([self._words.get(word, UNKNOWN) for word in self._folded(words)], np.int64)
        ends = np.repeat(sentences[1:], np.diff(sentences))
        return _leftmost(self._longest(number[tokens], ends))

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that build this gazetteer: {"phrases": [...], "fold": ...}."""
        return {"phrases": self.phrases, "fold": self.fold}

    @classmethod
    def from_json(cls, state: Mapping[str, Any], place: str) -> "Gazetteer":
        """Rebuild a gazetteer from `to_json`; InputError, naming the place, for anything else, such as a path."""
        check_fields(state, {"phrases": list[str], "fold": bool}, place)
        return cls(**state)

    def _folded(self, strings: Iterable[str]) -> Iterable[str]:
        return map(str.lower, strings) if self.fold else strings

    def _longest(self, words: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return the length of the longest phrase that starts at each token, 0 if none does; (N,)."""
        longest = np.zeros(len(words), np.int64)
        state = np.zeros(len(words), np.int64)
        at, length = np.arange(len(words)), 0
        while len(at):
            state = self._step(state, words[at + length])
            at, state, length = at[state != UNKNOWN], state[state != UNKNOWN], length + 1
            longest[at[self._final[state]]] = length
            inside = at + length < ends[at]
            at, state = at[inside], state[inside]
        return longest

    def _step(self, state: np.ndarray, word: np.ndarray) -> np.ndarray:
        key = np.where(word == UNKNOWN, UNKNOWN, state * len(self._words) + word)
        rank = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        return np.where(self._keys[rank] == key, rank + 1, UNKNOWN)


def _read(path: str | Path) -> list[str]:
    return [line.strip() for line in read_lines(path) if line.strip()]


def _trie(words: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted keys of all transitions and, for each state, whether a phrase ends there.

    Built one depth at a time: the states of a depth are numbered after those of the depth above (the root is
    0), so the keys of successive depths ascend and a key's rank + 1 is the number of the state it leads to.
    """
    size = words.max() + 1
    first = np.cumsum(lengths) - lengths
    state = np.zeros(len(lengths), np.int64)
    keys: list[np.ndarray] = []
    for depth in range(lengths.max()):
        longer = np.flatnonzero(lengths > depth)
        new, rank = np.unique(state[longer] * size + words[first[longer] + depth], return_inverse=True)
        state[longer] = 1 + sum(map(len, keys)) + rank
        keys.append(new)
    transitions = np.concatenate(keys)
    final = np.zeros(len(transitions) + 1, bool)
    final[state] = True
    return transitions, final


def _leftmost(longest: np.ndarray) -> np.ndarray:
    """Return 0, 1 or 2 for outside, begin and inside of the matches that start leftmost, without overlaps."""
    tags = np.zeros(len(longest), np.int8)
    starts = np.flatnonzero(longest)
    free = 0
    for start, length in zip(starts.tolist(), longest[starts].tolist(), strict=True):
        if start >= free:
            free = start + length
            tags[start:free] = 2
            tags[start] = 1
    return tags
