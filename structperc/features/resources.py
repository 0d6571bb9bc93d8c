"""Resources about words that templates read: gazetteers (phrase lists) and word clusters."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from structperc.data.json_data import check_fields
from structperc.data.output import write_lines
from structperc.data.text_files import read_lines
from structperc.errors import InputError
from structperc.features.attributes import Attribute

TAGS = ("", "B", "I")
UNKNOWN = -1  # a word outside all phrases


class Gazetteer:
    """A list of phrases whose leftmost-longest matches become an attribute with values B, I and "" (IOB2).

    The phrases are a trie in sorted arrays: the key of the transition from state s by word w is s * words + w, and its
    rank is the number of the next state.

    Args:
        phrases: path of a file with one phrase per line (UTF-8; words separated by spaces), or the phrases themselves.
        fold: ignore the case of phrases and text.

    Raises:
        InputError: there are no phrases.

    Example:
        >>> from structperc import Corpus, FeatureExtractor
        >>> companies = Gazetteer(["Ford", "Ford Motor Co"])
        >>> features = FeatureExtractor(["company[0]"], gazetteers={"company": companies}, cutoff=1)
        >>> corpus = Corpus.from_sentences([{"word": ["Ford", "Motor", "Co", "grew"]}])
        >>> features.fit_encode(corpus).nodes.counts.tolist()  # B, I, I and no value
        [1, 1, 1, 0]
        >>> sorted(features.index.names("node"))
        ['company[0]=B', 'company[0]=I']
    """

    def __init__(self, phrases: str | Path | Sequence[str], fold: bool = True) -> None:
        self.fold = fold
        if isinstance(phrases, str | Path):
            self.phrases = [line.strip() for line in read_lines(phrases) if line.strip()]
        else:
            self.phrases = list(phrases)
        split = [words for phrase in self._folded(self.phrases) if (words := phrase.split())]
        if not split:
            place = phrases if isinstance(phrases, str | Path) else "gazetteer"
            raise InputError(f"{place}: no phrases; give at least one or remove the gazetteer")
        flat = list(chain.from_iterable(split))
        self._words = {word: i for i, word in enumerate(dict.fromkeys(flat))}
        lengths = np.array([len(words) for words in split])
        self._keys, self._final = _trie(np.array([self._words[word] for word in flat]), lengths)

    def tag(self, words: Sequence[str], tokens: np.ndarray, sentences: np.ndarray) -> np.ndarray:
        """Return the index into `TAGS` of each token, (N,) int8.

        Args:
            words: the distinct words.
            tokens: (N,), index of the word at each token.
            sentences: sentence r is tokens[sentences[r]:sentences[r + 1]]; matches do not cross its boundaries.
        """
        from structperc.features.phrase_matching import match  # compiled: imported when it is first needed

        number = np.array([self._words.get(word, UNKNOWN) for word in self._folded(words)], np.int64)
        tags = np.zeros(len(tokens), np.int8)
        match(number[tokens], sentences, self._keys, self._final, len(self._words), tags)
        return tags

    def to_json(self) -> dict[str, Any]:
        """Return the arguments that build this gazetteer: {"phrases": [...], "fold": ...}."""
        return {"phrases": self.phrases, "fold": self.fold}

    @classmethod
    def from_json(cls, state: Mapping[str, Any], place: str) -> "Gazetteer":
        """Build a gazetteer from the result of `to_json`. Raises InputError with the location if invalid."""
        check_fields(state, {"phrases": list[str], "fold": bool}, place)
        return cls(**state)

    def _folded(self, strings: Iterable[str]) -> Iterable[str]:
        return map(str.lower, strings) if self.fold else strings


def _trie(words: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the sorted keys of all transitions, and for each state True if a phrase ends there.

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


class Clusters:
    """Bit paths of words, as Brown clusters are distributed (Koo, Carreras & Collins 2008).

    Args:
        paths: a file of lines "path TAB word TAB frequency" (UTF-8; the frequency may be missing), or a mapping from
            word to path.
        lower_case: look up unknown words in lower case.

    Raises:
        InputError: a file or mapping without words; with file:line, a line of another form, or a word with two paths.

    Example:
        >>> clusters = Clusters({"bank": "0110", "shop": "0111"})
        >>> clusters.path("Bank"), clusters.path("tree")
        ('0110', '')
        >>> clusters.attribute("c3")("shop")  # the first three bits
        '011'
    """

    def __init__(self, paths: str | Path | Mapping[str, str], lower_case: bool = True) -> None:
        self.paths = _read_clusters(paths) if isinstance(paths, str | Path) else dict(paths)
        self.lower_case = lower_case
        if not self.paths:
            place = paths if isinstance(paths, str | Path) else "clusters"
            raise InputError(f"{place}: no words; give lines of bit path TAB word")

    @classmethod
    def from_vectors(
        cls, file: str | Path, levels: int = 11, balanced: bool = False, lower_case: bool = True
    ) -> "Clusters":
        """Cluster a file of word vectors, see `cluster_vectors` and, for its formats, `data.word_vectors.read_vectors`.

        Needs PyTorch. Raises InputError: an invalid file, fewer than two words, or levels below 1.
        """
        from structperc.data.word_vectors import read_vectors  # imports PyTorch, which these classes do not need
        from structperc.features.vector_clusters import cluster_vectors

        words, vectors = read_vectors(str(file))
        return cls(cluster_vectors(words, vectors.numpy(), levels, balanced), lower_case)

    def write(self, path: str | Path) -> None:
        """Write the words as lines of bit path TAB word, sorted by path; the file is replaced atomically.

        Raises InputError: a word that contains a tab or a line end or is blank, or a path that cannot be written.
        """
        if wrong := next((word for word in self.paths if not word.strip(" ") or re.search("[\t\n\r]", word)), None):
            raise InputError(f"{path}: the word {wrong!r} cannot be written; remove it")
        by_path = sorted(self.paths.items(), key=lambda pair: pair[1])
        write_lines(path, (f"{bits}\t{word}\n" for word, bits in by_path))

    def path(self, token: str) -> str:
        """Return the full bit path of a word, "" if the word is in no cluster."""
        bits = self.paths.get(token, "")
        return self.paths.get(token.lower(), "") if self.lower_case and not bits else bits

    def attribute(self, name: str, key: str = "c") -> Attribute | None:
        """Return the attribute c4, c6, ... of clusters named c, the first 4, 6, ... bits; None for other names."""
        bits = cluster_bits(name, key)
        return None if bits is None else partial(self._prefix, bits)

    def _prefix(self, bits: int, token: str) -> str:
        return self.path(token)[:bits]

    def to_json(self) -> dict[str, Any]:
        """Return the clusters as {"words": {path: [words]}, "lower_case": ...}."""
        words: dict[str, list[str]] = {}
        for word, path in self.paths.items():
            words.setdefault(path, []).append(word)
        return {"words": words, "lower_case": self.lower_case}

    @classmethod
    def from_json(cls, state: Mapping[str, Any], place: str = "clusters") -> "Clusters":
        """Build clusters from the result of `to_json`. Raises InputError with the location if invalid."""
        check_fields(state, {"words": dict[str, list[str]], "lower_case": bool}, place)
        if wrong := [path for path in state["words"] if not re.fullmatch("[01]+", path)]:
            raise InputError(f"{place}.words: {wrong[0]!r} is not a bit path")
        return cls({word: path for path, words in state["words"].items() for word in words}, state["lower_case"])


def _read_clusters(path: str | Path) -> dict[str, str]:
    paths: dict[str, str] = {}
    above = ""  # the path of the line above, mostly also that of the next one
    for number, line in enumerate(read_lines(path), 1):
        if line:
            bits, word, *more = fields if len(fields := line.split("\t")) > 1 else ("", "")
            if (bits != above and not re.fullmatch("[01]+", bits)) or not word.strip(" ") or len(more) > 1:
                raise InputError(f"{path}:{number}: expected bit path TAB word TAB frequency, got {line!r}")
            above = bits
            if paths.setdefault(word, bits) != bits:
                raise InputError(f"{path}:{number}: {word!r} has the path {bits}, but {paths[word]} above; keep one")
    return paths


def cluster_bits(name: str, key: str = "c") -> int | None:
    """Return the number of bits in the name of a prefix of clusters named `key`; None for other names."""
    match = re.fullmatch(f"{re.escape(key)}([1-9][0-9]*)", name)
    return int(match[1]) if match else None
