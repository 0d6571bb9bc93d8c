"""New text as a corpus, and what taggers say about it as strings."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from torch import Tensor

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError

Sentence = Iterable[str] | Mapping[str, Iterable[str]]


class Labelling(NamedTuple):
    """One labelling of a sentence, its score and, from likelihood-trained models, its log-probability."""

    labels: list[str]
    score: float
    log_probability: float | None


def read_sentences(sentences: Iterable[Sentence], documents: Iterable[int] | None = None) -> Corpus:
    """Return sentences as a corpus, in which neighbouring ones of one document are together where documents are given.

    Raises InputError for a string where a list of words is due, and for words that are no strings.
    """
    rows = list(map(_columns, sentences))
    if documents is None:
        return Corpus.from_sentences(rows)
    return Corpus.from_sentences(rows, list(documents), "document")


def _columns(sentence: Sentence) -> dict[str, list[str]]:
    """{column: strings}, each iterated over once."""
    named = sentence if isinstance(sentence, Mapping) else {"word": sentence}
    for role, values in named.items():
        if isinstance(values, str):
            what = "a sentence" if role == "word" else f"column {role!r} of a sentence"
            raise InputError(f"{what} is a list of words, not the string {values[:30]!r}; split it into words")
    columns = {role: list(values) for role, values in named.items()}
    if wrong := [value for values in columns.values() for value in values if not isinstance(value, str)]:
        raise InputError(f"a word is a string, not {wrong[0]!r}; a sentence is a list of words")
    return columns


def flat_labels(corpus: Corpus, labels: LabelSet, parts: Iterable[tuple[Tensor, ...]]) -> list[str]:
    """Return the label names of all N tokens of a corpus, in its order.

    `parts` are (rows (B,), labels (B, T), ...) of mini-batches that cover the corpus.
    """
    return flat_values(corpus, ((rows, best) for rows, best, *_ in parts), labels.decode)


def flat_values(
    corpus: Corpus, parts: Iterable[tuple[Tensor, Tensor]], read: Callable[[Tensor], list[str]]
) -> list[str]:
    """Return one string for each of the N tokens of a corpus, in its order.

    `parts` are (rows (B,), values (B, T)) of mini-batches that cover it; `read` turns the values of a sequence into
    strings.
    """
    flat = [""] * corpus.tokens
    for rows, values in parts:
        for row, own in zip(rows.tolist(), values.cpu(), strict=True):
            start, end = corpus.starts[row], corpus.starts[row + 1]
            flat[start:end] = read(own[: end - start])
    return flat
