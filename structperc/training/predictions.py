"""Prediction files: their paths in runs, and reading them for a comparison.

Their columns are word, other columns of the data, gold label and predicted label, as for the conlleval script, and
their first line names these columns.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from structperc.data.conll import conll_corpus, detect_line_format, header_names, write_conll
from structperc.data.corpus import Corpus
from structperc.data.read_options import PREDICTED
from structperc.data.tag_schemes import label_type
from structperc.data.text_files import read_lines
from structperc.errors import InputError

SentenceStrings = list[list[str]]  # by sentence


def write_predictions(run: Path, split: str, corpus: Corpus, predicted: Sequence[str]) -> Path:
    """Write RUN/predictions/SPLIT.conll and return its path.

    The file has the columns of a corpus, gold last, and after them the N predicted labels; its first line names them.
    """
    path = run / "predictions" / f"{split}.conll"
    path.parent.mkdir(parents=True, exist_ok=True)
    gold = [role for role in corpus.columns if role == "label"]
    write_conll(path, corpus, [role for role in corpus.columns if role != "label"] + gold, predicted)
    return path


def predictions_of(place: str, split: str) -> Path:
    """Return the prediction file of a split: `place` itself if it is a file, else the one in this folder of a run.

    Raises InputError for a run without predictions of this split.
    """
    path = Path(place)
    if not path.is_dir():
        return path
    file = path / "predictions" / f"{split}.conll"
    if not file.is_file():
        splits = sorted(p.stem for p in file.parent.glob("*.conll"))
        there = f"found {', '.join(splits)}: set --split" if splits else "expected the folder of a run of fit"
        raise InputError(f"{place}: no predictions/{split}.conll in this folder; {there}")
    return file


def short_names(places: Sequence[str]) -> list[str]:
    """Return the last parts of each path, enough to distinguish them; runs/crf/1/model becomes "crf/1"."""
    parts = [_without_tail(Path(place).parts) for place in places]
    longest = max(len(path) for path in parts)
    for n in range(1, longest + 1):
        names = ["/".join(path[-n:]) for path in parts]
        if len(set(names)) == len(set(parts)) and not any(name.isdigit() for name in names):
            return names
    return list(places)


def _without_tail(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts of a path without the names that all runs contain."""
    for tail in (("predictions", parts[-1]), ("model",)) if parts else ():
        if len(parts) > len(tail) and parts[-len(tail) :] == tail:
            return parts[: -len(tail)]
    return parts


def label_column(path: str, encoding: str = "utf-8", role: str = PREDICTED) -> tuple[SentenceStrings, SentenceStrings]:
    """Return words and predicted labels of a file, or with role "label" words and gold labels, by sentence.

    Their columns are those in the first line of the file (see `conll.header_line`), else the first and the last one.
    Raises InputError for a file of one column.
    """
    words, labels = _read(path, {"word": 0, role: -1}, encoding)
    if words == labels:
        raise InputError(f"{path}: only words found; labels must be in the last column")
    return words, labels


def gold_column(path: str, encoding: str = "utf-8") -> tuple[SentenceStrings, SentenceStrings]:
    """Return words and gold labels of a prediction file, by sentence: by name, else the last column but one.

    Raises InputError for a file that seems to have no such column: one of words and predicted labels only, and one
    whose predicted types are all missing in that column.
    """
    words, gold, predicted = read_predictions(path, encoding)
    types = _types(predicted)
    if gold == words or (types and not types & _types(gold)):
        raise InputError(f"{path}: its last column but one has no gold labels; set --gold FILE")
    return words, gold


def _types(labels: SentenceStrings) -> set[str | None]:
    return {label_type(label) for sentence in labels for label in sentence} - {None}


def read_predictions(path: str, encoding: str = "utf-8") -> tuple[SentenceStrings, SentenceStrings, SentenceStrings]:
    """Return words, gold labels and predicted labels of a file: by name, else the first, last but one and last one."""
    words, gold, predicted = _read(path, {"word": 0, "label": -2, PREDICTED: -1}, encoding)
    return words, gold, predicted


def document_numbers(path: str, encoding: str = "utf-8") -> np.ndarray:
    """Return the number of each sentence's document in a prediction file, (R,) int64; without marks 0, 1, 2, ..."""
    lines = read_lines(path, encoding)
    return conll_corpus(lines, {"word": 0}, path, line_format=detect_line_format(lines)).documents


def _read(path: str, places: Mapping[str, int], encoding: str) -> list[SentenceStrings]:
    """Return columns by role, at the given places unless the first line of the file names the columns."""
    lines = read_lines(path, encoding)
    if names := header_names(lines[0]) if lines else None:
        if missing := [role for role in places if role not in names]:
            advice = "; set --gold FILE" if missing[0] == "label" else ""
            raise InputError(
                f"{path}: no column {missing[0]} among those of its first line, {', '.join(names)}{advice}"
            )
        places = {role: names.index(role) for role in places}
    corpus = conll_corpus(lines, places, path, line_format=detect_line_format(lines))
    return [corpus.sentences_of(corpus.columns[role]) for role in places]
