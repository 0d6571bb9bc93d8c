"""The strings of a column, each of them once.

A column of a corpus, in which each distinct string is kept once.

Corpora: sentences or documents as flat columns of strings, from which features are extracted.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import numpy as np

from structperc.data.read_options import UNITS
from structperc.errors import InputError
from structperc.spelling import counted

if TYPE_CHECKING:
    import datasets


class Factorized(NamedTuple):
    """The distinct strings of a column, and which of them each of its N strings is."""

    distinct: list[str]  # in the order in which they first occur
    numbers: np.ndarray  # (N,) int32, positions in `distinct`


def factorize(strings: Sequence[str]) -> Factorized:
    """Number the strings of a column in the order in which they first occur."""
    index: defaultdict[str, int] = defaultdict(count().__next__)
    numbers = np.fromiter(map(index.__getitem__, strings), np.int32, len(strings))
    return Factorized(list(index), numbers)


PIECE = 2**16  # strings that are looked up at a time


class Column(Sequence[str]):
    """N strings in 4 bytes each: to be read like a list of them, and never changed.

    Args:
        strings: the distinct strings in the order in which they first occur, and their numbers (N,) int32.
    """

    __hash__ = None  # type: ignore[assignment]  # it equals lists

    def __init__(self, strings: Factorized) -> None:
        self.strings = strings

    @classmethod
    def of(cls, values: Sequence[str]) -> "Column":
        """Return the column of N strings."""
        return values if isinstance(values, cls) else cls(factorize(values))

    @classmethod
    def numbered(cls, distinct: Sequence[str], numbers: np.ndarray) -> "Column":
        """Return the column distinct[numbers[0]], distinct[numbers[1]], ...; of different strings any may be unused."""
        present, own = renumber(numbers, len(distinct))
        return cls(Factorized([distinct[i] for i in present.tolist()], own))

    def __len__(self) -> int:
        return len(self.strings.numbers)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        """Return a string, or a list of those of a slice."""
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

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """Return where a string first stands. Raises ValueError where it does not."""
        number = self.strings.distinct.index(value)
        found = np.flatnonzero(self.strings.numbers[start:stop] == number)
        if not len(found):
            raise ValueError(f"{value!r} is not in this stretch of the column")
        return start + int(found[0])

    def take(self, places: slice | np.ndarray) -> "Column":
        """Return the strings at some places, a slice or (n,) numbers, as a column."""
        return Column.numbered(self.strings.distinct, self.strings.numbers[places])


def renumber(numbers: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Renumber numbers (N,) < size in the order in which they first occur.

    -> those that occur, in this order (n,) int64, and for each of the N which of these it is (N,) int32.
    """
    first = np.full(size, len(numbers), np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]  # of several places of a number the one written last stays
    present = np.flatnonzero(first < len(numbers))
    present = present[first[present].argsort()]
    rank = np.empty(size, np.int32)
    rank[present] = np.arange(len(present), dtype=np.int32)
    return present, rank[numbers]


Value = TypeVar("Value")


@dataclass(frozen=True)
class Corpus:
    """N tokens in R sentences in S sequences; a sequence is a sentence or a whole document.

    Sequence s is the tokens starts[s]:starts[s+1], sentence r the tokens sentences[r]:sentences[r+1].
    Raises InputError when there is no column `word` or a column does not have N values.
    """

    columns: Mapping[str, Sequence[str]]  # role -> N strings: a list, or a `Column`, which takes less memory
    starts: np.ndarray  # (S + 1,) int64
    sentences: np.ndarray  # (R + 1,) int64
    documents: np.ndarray  # (S,) int64, document id of each sequence
    name: str = "corpus"  # file or data set, for messages
    lines: np.ndarray | None = None  # (N,) int64, line of each token in that file
    _numbered: dict[str, Factorized] = field(default_factory=dict, init=False, repr=False, compare=False)

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
        """Return a corpus of sentences, each {role: strings}. Without `documents` each sentence is its own document.

        Raises InputError when sentences differ in their roles, columns of a sentence in their length, or there is
        another number of documents.
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
    def from_columns(
        cls,
        columns: Mapping[str, Sequence[str]],
        sentences: Sequence[int],
        documents: Sequence[int] | np.ndarray,
        unit: str = "sentence",
        name: str = "corpus",
        lines: Sequence[int] | np.ndarray | None = None,
    ) -> "Corpus":
        """Return a corpus of columns of N strings, R + 1 boundaries of sentences, R document ids and N line numbers.

        With unit "document" the sentences of a document, which must be neighbours, make one sequence.
        """
        flat = {role: values if isinstance(values, Column) else list(values) for role, values in columns.items()}
        lengths, ids = {"word": np.diff(sentences)}, np.asarray(documents, dtype=np.int64)
        numbers = None if lines is None else np.asarray(lines, dtype=np.int64)
        return cls(flat, *_boundaries(lengths, ids, unit, name), name, numbers)

    @classmethod
    def from_dataset(cls, rows: "datasets.Dataset", unit: str = "sentence", name: str = "corpus") -> "Corpus":
        """Return a corpus of rows of sentences: all columns of string lists, and `document` and `line` if present.

        With unit "document" the rows of a document, which must be neighbours, make one sequence. Raises InputError
        when columns of a row differ in length, or documents are asked for and there is no such column.
        """
        table = rows.with_format("arrow")[:]
        held = {role: table.column(role).combine_chunks() for role in table.column_names}
        texts = [role for role in held if _is_text(rows, role)]
        lengths = {role: held[role].value_lengths().to_numpy(zero_copy_only=False) for role in texts}
        flat = {role: _strings(held[role].flatten(), f"{name}: column {role!r}") for role in texts}
        if unit == "document" and "document" not in held:
            raise InputError(f"{name}: no column 'document' says where documents begin; set unit: sentence")
        ids = held["document"].to_numpy() if "document" in held else np.arange(len(rows))
        lines = held["line"].flatten().to_numpy() if "line" in held else None
        return cls(flat, *_boundaries(lengths, ids, unit, name), name, lines)

    @classmethod
    def concat(cls, parts: Sequence["Corpus"]) -> "Corpus":
        """Return one corpus after the other; document ids are renumbered so that parts share none."""
        roles = list(parts[0].columns)
        for part in parts:
            if set(part.columns) != set(roles):
                raise InputError(f"{part.name}: columns {list(part.columns)} differ from {roles}")
        return cls(
            columns={role: [value for part in parts for value in part.columns[role]] for role in roles},
            starts=_to_boundaries(np.concatenate([part.lengths for part in parts])),
            sentences=_to_boundaries(np.concatenate([np.diff(part.sentences) for part in parts])),
            documents=_renumber([part.documents for part in parts]),
            name=" + ".join(part.name for part in parts),
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def tokens(self) -> int:
        """The number of tokens of the whole corpus, N."""
        return int(self.starts[-1])

    @property
    def lengths(self) -> np.ndarray:
        """The number of tokens of each sequence, (S,) int64."""
        return np.diff(self.starts)

    def numbered(self, role: str) -> Factorized:
        """Return the distinct strings of a column and which of them stands at each token; found once, then kept."""
        if role not in self._numbered:
            values = self.columns[role]
            self._numbered[role] = values.strings if isinstance(values, Column) else factorize(values)
        return self._numbered[role]

    def replace_column(self, role: str, values: Sequence[str]) -> "Corpus":
        """Return the corpus with one column of N strings added or replaced."""
        held = values if isinstance(values, Column) else list(values)
        return replace(self, columns={**self.columns, role: held})

    def sentences_of(self, flat: Sequence[Value]) -> list[list[Value]]:
        """Return values of all N tokens, cut at the boundaries of sentences."""
        return [list(flat[a:b]) for a, b in pairwise(self.sentences.tolist())]

    def encode_sentences(self) -> "Corpus":
        """Return the corpus with each sentence as a sequence, of the document that it was in."""
        sequence = np.searchsorted(self.starts[1:-1], self.sentences[:-1], side="right")
        documents = self.documents[sequence] if len(self) else self.documents
        return replace(self, starts=self.sentences, documents=documents)

    def stretch(self, first: int, stop: int) -> "Corpus":
        """Return the sequences first, ..., stop - 1, at least one, as a corpus of the same name."""
        a, b = int(self.starts[first]), int(self.starts[stop])
        inside = (self.sentences >= a) & (self.sentences <= b)
        return replace(
            self,
            columns={role: _part(values, slice(a, b)) for role, values in self.columns.items()},
            starts=self.starts[first : stop + 1] - a,
            sentences=self.sentences[inside] - a,
            documents=self.documents[first:stop],
            lines=None if self.lines is None else self.lines[a:b],
        )

    def subset(self, keep: np.ndarray) -> "Corpus":
        """Return the sequences where keep (S,) bool is true, in their order, without sentences that are empty."""
        tokens = np.repeat(keep, self.lengths)
        before = _to_boundaries(tokens)  # tokens kept before each boundary
        kept = np.flatnonzero(tokens)
        return replace(
            self,
            columns={role: _part(values, kept) for role, values in self.columns.items()},
            starts=_to_boundaries(self.lengths[keep]),
            sentences=np.unique(before[self.sentences]),
            documents=self.documents[keep],
            lines=None if self.lines is None else self.lines[tokens],
        )

    def where(self, token: int) -> str:
        """Return the place of a token for messages: "file:line", or sentence and token where lines are not known."""
        if self.lines is not None:
            return f"{self.name}:{self.lines[token]}"
        sentence = int(np.searchsorted(self.sentences, token, side="right")) - 1
        return f"{self.name}, sentence {sentence + 1}, token {token - self.sentences[sentence] + 1}"


def _is_text(rows: "datasets.Dataset", role: str) -> bool:
    """True for a column of lists of strings."""
    return getattr(getattr(rows.features[role], "feature", None), "dtype", None) in ("string", "large_string")


def _strings(values: Any, column: str) -> Column:
    """Arrow strings as a column."""
    if values.null_count:
        raise InputError(f"{column} has {counted(values.null_count, 'token')} without a value")
    coded = values.dictionary_encode()
    return Column.numbered(coded.dictionary.to_pylist(), coded.indices.to_numpy())


def _part(values: Sequence[str], places: slice | np.ndarray) -> Sequence[str]:
    if isinstance(values, Column):
        return values.take(places)
    return values[places] if isinstance(places, slice) else [values[i] for i in places.tolist()]


def _boundaries(
    lengths: Mapping[str, np.ndarray], documents: np.ndarray, unit: str, name: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens per sentence of each role and document per sentence -> starts, sentences, documents."""
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
        raise InputError(f"{name}: sentences of one document are not next to each other; do not shuffle them")
    return np.append(sentences[first], sentences[-1]), sentences, documents[first]


def _check_words(roles: Mapping[str, Any], name: str) -> None:
    if "word" not in roles:
        raise InputError(f"{name}: no column 'word' among {list(roles)}; say which one it is in `columns`")


def _to_boundaries(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _renumber(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Shifts the ids of each part past those of the parts before."""
    shifts = np.cumsum([0, *(ids.max(initial=-1) + 1 for ids in parts)])
    return np.concatenate([ids + shift for ids, shift in zip(parts, shifts[:-1], strict=True)])
