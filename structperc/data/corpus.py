"""Corpora: sentences or documents as flat columns of strings."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload
from uuid import uuid4

import numpy as np

from structperc.data.read_options import UNITS
from structperc.errors import InputError
from structperc.spelling import counted

if TYPE_CHECKING:
    import datasets

PIECE = 2**16  # strings per step of an iteration
Value = TypeVar("Value")


class Factorized(NamedTuple):
    """The distinct strings of a column in order of first occurrence, and the index of each of its N strings."""

    distinct: list[str]
    numbers: np.ndarray  # (N,) int32, indices into `distinct`


class StringEncoder:
    """Maps strings to consecutive numbers in order of first occurrence."""

    def __init__(self) -> None:
        self._index: defaultdict[str, int] = defaultdict(count().__next__)

    @property
    def distinct(self) -> list[str]:
        """All encoded strings, in order of first occurrence."""
        return list(self._index)

    def encode(self, strings: Sequence[str]) -> np.ndarray:
        """Return the numbers of n strings, (n,) int32."""
        return np.fromiter(map(self._index.__getitem__, strings), np.int32, len(strings))


def factorize(strings: Sequence[str]) -> Factorized:
    """Number strings in order of first occurrence."""
    encoder = StringEncoder()
    numbers = encoder.encode(strings)
    return Factorized(encoder.distinct, numbers)


class Column(Sequence[str]):
    """An immutable sequence of N strings that keeps each distinct string once, and 4 bytes per entry.

    Args:
        strings: the distinct strings in order of first occurrence, and their numbers (N,) int32.
    """

    def __init__(self, strings: Factorized) -> None:
        self.strings = strings

    @classmethod
    def from_codes(cls, distinct: Sequence[str], codes: np.ndarray) -> "Column":
        """Return the column distinct[codes[0]], distinct[codes[1]], ...; some of the distinct strings may be unused."""
        first = np.full(len(distinct), len(codes), np.int64)
        first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last assignment of an index wins
        present = np.flatnonzero(first < len(codes))
        present = present[first[present].argsort()]
        rank = np.empty(len(distinct), np.int32)
        rank[present] = np.arange(len(present), dtype=np.int32)
        return cls(Factorized([distinct[i] for i in present.tolist()], rank[codes]))

    def __len__(self) -> int:
        return len(self.strings.numbers)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        distinct, numbers = self.strings
        if isinstance(place, slice):
            return [distinct[i] for i in numbers[place].tolist()]
        return distinct[numbers[place]]

    def __iter__(self) -> Iterator[str]:
        distinct, numbers = self.strings
        for first in range(0, len(numbers), PIECE):
            yield from map(distinct.__getitem__, numbers[first : first + PIECE].tolist())

    def __contains__(self, value: object) -> bool:
        return value in self.strings.distinct

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return repr(list(self))

    def take(self, places: slice | np.ndarray) -> "Column":
        """Return the strings at a slice or at (n,) positions as a column."""
        return Column.from_codes(self.strings.distinct, self.strings.numbers[places])


class DroppedSegment(NamedTuple):
    """A gold segment of a file that labels cannot represent."""

    place: str  # "file:line"
    type: str
    text: str


@dataclass(frozen=True)
class Corpus:
    """N tokens in R sentences in S sequences; a sequence is a sentence or a whole document.

    Sequence s is the tokens starts[s]:starts[s+1], sentence r the tokens sentences[r]:sentences[r+1]. Corpora are made
    by `from_sentences`, `from_columns`, `from_dataset` and the readers of files.

    Raises:
        InputError: there is no column `word`, or a column does not have N values.

    Example:
        >>> sentences = [{"word": ["Anna", "left"], "label": ["B-PER", "O"]}, {"word": ["Yes"], "label": ["O"]}]
        >>> corpus = Corpus.from_sentences(sentences)
        >>> len(corpus), corpus.tokens, corpus.columns["word"]
        (2, 3, ['Anna', 'left', 'Yes'])
        >>> len(Corpus.from_sentences(sentences, documents=[0, 0], unit="document"))
        1
    """

    columns: Mapping[str, Sequence[str]]  # role -> N strings, a list or a `Column`
    starts: np.ndarray  # (S + 1,) int64
    sentences: np.ndarray  # (R + 1,) int64
    documents: np.ndarray  # (S,) int64, document id of each sequence
    name: str = "corpus"  # file or data set, for messages
    lines: np.ndarray | None = None  # (N,) int64, line of each token in that file
    dropped: Sequence[DroppedSegment] = ()  # of the whole file; evaluations count them as missed
    _factorized: dict[str, Factorized] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_words(self.columns, self.name)
        for role, values in self.columns.items():
            if len(values) != self.tokens:
                raise InputError(f"{self.name}: column {role!r} has {counted(len(values), 'value')}, not {self.tokens}")

    @classmethod
    def from_sentences(
        cls,
        sentences: Iterable[Mapping[str, Iterable[str]]],
        documents: Sequence[int] | None = None,
        unit: str = "sentence",
        name: str = "corpus",
    ) -> "Corpus":
        """Return a corpus of sentences.

        Args:
            sentences: the columns of each sentence, {role: strings}, such as {"word": [...], "label": [...]}.
            documents: document id of each sentence; by default each sentence is a document.
            unit: "sentence", or "document" to make the adjacent sentences of a document one sequence.
            name: file or data set, for messages.

        Raises:
            InputError: sentences with different roles, columns of a sentence with different lengths, or a wrong number
                of documents.
        """
        flat: dict[str, list[str]] = {}
        ends: dict[str, list[int]] = {}
        number = 0
        for number, sentence in enumerate(sentences, 1):
            if number == 1:
                flat, ends = {role: [] for role in sentence}, {role: [0] for role in sentence}
            if sentence.keys() != flat.keys():
                raise InputError(f"{name}: sentence {number} has columns {list(sentence)}, not {list(flat)}")
            for role, column in flat.items():
                column += sentence[role]
                ends[role].append(len(column))
        if documents is not None and len(documents) != number:
            raise InputError(f"{name}: {counted(len(documents), 'document id')} for {counted(number, 'sentence')}")
        lengths = {role: np.diff(column) for role, column in (ends or {"word": [0]}).items()}
        ids = np.arange(number) if documents is None else np.asarray(documents, dtype=np.int64)
        return cls(flat or {"word": []}, *_boundaries(lengths, ids, unit, name), name)

    @classmethod
    def from_documents(
        cls, documents: Iterable[Sequence[Mapping[str, Iterable[str]]]], unit: str = "sentence", name: str = "corpus"
    ) -> "Corpus":
        """Return a corpus of documents, lists of sentences; arguments and errors are those of `from_sentences`."""
        numbered = [(number, sentence) for number, sentences in enumerate(documents) for sentence in sentences]
        return cls.from_sentences([sentence for _, sentence in numbered], [n for n, _ in numbered], unit, name)

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Sequence[str]],
        sentences: Sequence[int],
        documents: Sequence[int] | np.ndarray,
        unit: str = "sentence",
        name: str = "corpus",
        lines: Sequence[int] | np.ndarray | None = None,
    ) -> "Corpus":
        """Return a corpus of flat columns.

        Args:
            columns: N strings for each role.
            sentences: R + 1 sentence boundaries, from 0 to N.
            documents: document id of each of the R sentences.
            unit: "sentence", or "document" to make the sentences of a document, which must be adjacent, one sequence.
            name: file or data set, for messages.
            lines: line of each token in the file, if known.

        Raises:
            InputError: columns of different lengths, or a document whose sentences are not adjacent.
        """
        flat = {role: values if isinstance(values, Column) else list(values) for role, values in columns.items()}
        lengths, ids = {"word": np.diff(sentences)}, np.asarray(documents, dtype=np.int64)
        numbers = None if lines is None else np.asarray(lines, dtype=np.int64)
        return cls(flat, *_boundaries(lengths, ids, unit, name), name, numbers)

    @classmethod
    def from_dataset(cls, rows: "datasets.Dataset", unit: str = "sentence", name: str = "corpus") -> "Corpus":
        """Return a corpus of rows of sentences.

        Args:
            rows: a data set with a row for each sentence; all columns of string lists are read, and `document` and
                `line` if present.
            unit: "sentence", or "document" to make the rows of a document, which must be adjacent, one sequence.
            name: file or data set, for messages.

        Raises:
            InputError: columns of different lengths in a row, or unit "document" without a column `document`.
        """
        table = rows.with_format("arrow")[:]
        arrays = {role: table.column(role).combine_chunks() for role in table.column_names}
        kinds = {role: getattr(rows.features[role], "feature", None) for role in arrays}  # types of the items of lists
        texts = [role for role, kind in kinds.items() if getattr(kind, "dtype", None) in ("string", "large_string")]
        lengths = {role: arrays[role].value_lengths().to_numpy(zero_copy_only=False) for role in texts}
        flat = {role: _to_column(arrays[role].flatten(), f"{name}: column {role!r}") for role in texts}
        if unit == "document" and "document" not in arrays:
            raise InputError(f"{name}: unit document needs a column 'document'; set unit: sentence")
        ids = arrays["document"].to_numpy() if "document" in arrays else np.arange(len(rows))
        lines = arrays["line"].flatten().to_numpy() if "line" in arrays else None
        return cls(flat, *_boundaries(lengths, ids, unit, name), name, lines)

    def to_dataset(self) -> "datasets.Dataset":
        """Return a data set of R rows, one per sentence, in memory.

        A row has `document` (int64 id), `sentence` (int64 position), a list of strings for each role and, if known,
        `line`, the line numbers of its tokens.
        """
        import pyarrow as pa  # slow imports that reading into a corpus does not need
        from datasets import Dataset

        boundaries = pa.array(self.sentences, pa.int32())
        table = {
            "document": pa.array(self.by_sentence().documents, pa.int64()),
            "sentence": pa.array(np.arange(len(self.sentences) - 1), pa.int64()),
        }
        for role, values in self.columns.items():
            table[role] = pa.ListArray.from_arrays(boundaries, pa.array(list(values), pa.string()))
        if self.lines is not None:
            table["line"] = pa.ListArray.from_arrays(boundaries, pa.array(self.lines, pa.int64()))
        return Dataset(pa.table(table), fingerprint=uuid4().hex)  # its default is a hash of the data, which takes long

    @classmethod
    def concat(cls, parts: Sequence["Corpus"]) -> "Corpus":
        """Concatenate corpora; documents of different parts get different ids.

        Raises:
            InputError: parts with different columns.
        """
        roles = list(parts[0].columns)
        for part in parts:
            if set(part.columns) != set(roles):
                raise InputError(f"{part.name}: columns {list(part.columns)} differ from {roles}")
        shifts = np.cumsum([0, *(part.documents.max(initial=-1) + 1 for part in parts)])
        return cls(
            columns={role: [value for part in parts for value in part.columns[role]] for role in roles},
            starts=_to_boundaries(np.concatenate([part.lengths for part in parts])),
            sentences=_to_boundaries(np.concatenate([np.diff(part.sentences) for part in parts])),
            documents=np.concatenate([part.documents + shift for part, shift in zip(parts, shifts, strict=False)]),
            name=" + ".join(part.name for part in parts),
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def tokens(self) -> int:
        """The number of tokens, N."""
        return int(self.starts[-1])

    @property
    def lengths(self) -> np.ndarray:
        """The number of tokens of each sequence, (S,) int64."""
        return np.diff(self.starts)

    def factorize(self, role: str) -> Factorized:
        """Return the distinct strings of a column and the index of each token's string; they are computed once."""
        if role not in self._factorized:
            values = self.columns[role]
            self._factorized[role] = values.strings if isinstance(values, Column) else factorize(values)
        return self._factorized[role]

    def replace_column(self, role: str, values: Sequence[str]) -> "Corpus":
        """Return the corpus with one column of N strings added or replaced."""
        return replace(self, columns={**self.columns, role: values if isinstance(values, Column) else list(values)})

    @property
    def document_starts(self) -> list[int]:
        """The first token of each document, whose sequences are adjacent."""
        first: list[int] = self.starts[:-1][np.diff(self.documents, prepend=-1) != 0].tolist()
        return first

    def sentences_of(self, flat: Sequence[Value]) -> list[list[Value]]:
        """Split values of all N tokens into sentences."""
        return [list(flat[a:b]) for a, b in pairwise(self.sentences.tolist())]

    def sequences_of(self, flat: Sequence[Value]) -> list[list[Value]]:
        """Split values of all N tokens into sequences."""
        return [list(flat[a:b]) for a, b in pairwise(self.starts.tolist())]

    def by_sentence(self) -> "Corpus":
        """Return the corpus with a sequence for each sentence."""
        if len(self.starts) == len(self.sentences):
            return self
        sequence = np.searchsorted(self.starts[1:-1], self.sentences[:-1], side="right")
        return replace(self, starts=self.sentences, documents=self.documents[sequence])

    def slice(self, first: int, stop: int) -> "Corpus":
        """Return the sequences first, ..., stop - 1, at least one, as a corpus of the same name."""
        a, b = int(self.starts[first]), int(self.starts[stop])
        inside = (self.sentences >= a) & (self.sentences <= b)
        return replace(
            self,
            columns={role: _take(values, slice(a, b)) for role, values in self.columns.items()},
            starts=self.starts[first : stop + 1] - a,
            sentences=self.sentences[inside] - a,
            documents=self.documents[first:stop],
            lines=None if self.lines is None else self.lines[a:b],
        )

    def subset(self, keep: np.ndarray) -> "Corpus":
        """Return the sequences where keep (S,) bool is true, in order, without empty sentences."""
        tokens = np.repeat(keep, self.lengths)
        before = _to_boundaries(tokens)  # number of tokens kept before each boundary
        kept = np.flatnonzero(tokens)
        return replace(
            self,
            columns={role: _take(values, kept) for role, values in self.columns.items()},
            starts=_to_boundaries(self.lengths[keep]),
            sentences=np.unique(before[self.sentences]),
            documents=self.documents[keep],
            lines=None if self.lines is None else self.lines[tokens],
        )

    def where(self, token: int) -> str:
        """Return the position of a token for messages: "file:line", or sentence and token if lines are unknown."""
        if self.lines is not None:
            return f"{self.name}:{self.lines[token]}"
        sentence = int(np.searchsorted(self.sentences, token, side="right")) - 1
        return f"{self.name}, sentence {sentence + 1}, token {token - self.sentences[sentence] + 1}"


def _to_column(values: Any, column: str) -> Column:
    """Return Arrow strings as a column."""
    if values.null_count:
        raise InputError(f"{column} has {counted(values.null_count, 'token')} without a value")
    coded = values.dictionary_encode()
    return Column.from_codes(coded.dictionary.to_pylist(), coded.indices.to_numpy())


def _take(values: Sequence[str], places: slice | np.ndarray) -> Sequence[str]:
    if isinstance(values, Column):
        return values.take(places)
    return values[places] if isinstance(places, slice) else [values[i] for i in places.tolist()]


def _boundaries(
    lengths: Mapping[str, np.ndarray], documents: np.ndarray, unit: str, name: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return starts, sentences and documents from the lengths of sentences by role, and document ids of sentences."""
    if unit not in UNITS:
        raise InputError(f"unknown unit {unit!r}; choose one of {', '.join(UNITS)}")
    _check_words(lengths, name)
    for role, counts in lengths.items():
        if (wrong := np.flatnonzero(counts != lengths["word"])).size:
            at, words = wrong[0], lengths["word"]
            raise InputError(f"{name}: sentence {at + 1} has {counted(words[at], 'word')} but {counts[at]} of {role!r}")
    sentences = _to_boundaries(lengths["word"])
    if unit == "sentence":
        return sentences, sentences, documents
    first = np.flatnonzero(np.diff(documents, prepend=-1))
    if len(np.unique(documents[first])) < len(first):
        raise InputError(f"{name}: the sentences of a document are not adjacent; do not shuffle them")
    return np.append(sentences[first], sentences[-1]), sentences, documents[first]


def _check_words(roles: Mapping[str, Any], name: str) -> None:
    if "word" not in roles:
        raise InputError(f"{name}: no column 'word' among {list(roles)}; name it in `columns`")


def _to_boundaries(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
