"""Small commands on saved models and prediction files."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from structperc.data.conll import conll_lines, read_conll
from structperc.data.corpus import Corpus
from structperc.data.text import write_lines
from structperc.errors import InputError
from structperc.metrics import compare
from structperc.training.tagger import Tagger


def tag_file(
    model: str, file: str, columns: Sequence[str] | None, unit: str | None, output: str | None, k: int | None
) -> None:
    """Label a file of CoNLL columns; write its columns and the predicted label, or with k the k best labellings.

    InputError for a missing file or model, columns that the model needs and the file lacks, and k < 1.
    """
    if k is not None and k < 1:
        raise InputError(f"-k must be >= 1, got {k}")
    tagger = Tagger.load(model)
    roles = list(columns or tagger.features.columns)
    corpus = Corpus.from_dataset(read_conll(file, roles), unit or tagger.unit, file)
    if k is not None:
        lines = candidate_lines(tagger, corpus, k)
    else:
        lines = conll_lines(corpus, predicted=[label for sentence in tagger.label(corpus) for label in sentence])
    if output is None:
        sys.stdout.writelines(lines)
        sys.stdout.flush()
    else:
        write_lines(output, lines)


def candidate_lines(tagger: Tagger, corpus: Corpus, k: int) -> Iterator[str]:
    """Each sequence's k best: a comment with rank, score and log-probability, then word and label per line."""
    words = [corpus.columns["word"][a:b] for a, b in zip(corpus.starts[:-1], corpus.starts[1:], strict=True)]
    for sequence, found in zip(words, tagger.candidates(corpus, k), strict=True):
        for rank, labelling in enumerate(found, 1):
            log_p = "" if labelling.log_probability is None else f" log-probability {labelling.log_probability:.6f}"
            yield f"# {rank} score {labelling.score:.6g}{log_p}\n"
            yield from (f"{w} {label}\n" for w, label in zip(sequence, labelling.labels, strict=True))
            yield "\n"


def compare_predictions(a: str, b: str, gold: str, scheme: str) -> str:
    """The table of `compare` for three files with the label in their last columns."""
    words, labels = last_column(gold)
    systems = []
    for path in (a, b):
        own_words, predicted = last_column(path)
        if own_words != words:
            raise InputError(f"{path}: its sentences or words are not those of {gold}")
        systems.append(predicted)
    return compare(labels, systems[0], systems[1], scheme, (Path(a).name, Path(b).name)).table()


def last_column(path: str) -> tuple[list[list[str]], list[list[str]]]:
    """Words (first column) and labels (last column) of a file, by sentence."""
    corpus = Corpus.from_dataset(read_conll(path, {"word": 0, "label": -1}), "sentence", path)
    return corpus.sentences_of(corpus.columns["word"]), corpus.sentences_of(corpus.columns["label"])
