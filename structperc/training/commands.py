"""Small commands on saved models and prediction files."""

import sys
from collections.abc import Iterator, Sequence

from structperc.data.conll import conll_lines, read_conll
from structperc.data.corpus import Corpus
from structperc.data.output import write_lines
from structperc.data.schemes import common_scheme, in_scheme
from structperc.errors import InputError
from structperc.metrics import compare, compare_all
from structperc.training.decisions import load_guided
from structperc.training.inference import flat_labels
from structperc.training.predictions import gold_column, last_column, predictions_of, short_names
from structperc.training.sequence_tagger import SequenceTagger
from structperc.training.tagger import Tagger
from structperc.training.writing import check_targets


def tag_file(
    model: str,
    file: str,
    columns: Sequence[str] | None,
    unit: str | None,
    output: str | None,
    k: int | None,
    order: bool = False,
    trusted: Sequence[str] = (),
) -> None:
    """Label a file of CoNLL columns; write its columns and the predicted label, or with k the k best labellings.

    With `order` the step in which each token was decided, from 1, stands before its label. InputError for a missing
    file or model, columns that the model needs and the file lacks, k < 1, k for a model that knows the best labelling
    alone, and order for a model that has none.
    """
    if k is not None and k < 1:
        raise InputError(f"-k must be >= 1, got {k}")
    check_targets(output)
    tagger = load_guided(model, trusted) if order else SequenceTagger.load(model, trusted=trusted)
    roles = list(columns or tagger.features.columns)
    corpus = Corpus.from_dataset(read_conll(file, roles), unit or tagger.unit, file)
    if k is not None:
        if not isinstance(tagger, Tagger):
            raise InputError(f"{model}: a {type(tagger).__name__} knows the best labelling alone; leave out -k")
        lines = candidate_lines(tagger, corpus, k)
    elif order:
        lines = order_lines(tagger, corpus)
    else:
        lines = conll_lines(corpus, predicted=[label for sentence in tagger.label(corpus) for label in sentence])
    if output is None:
        sys.stdout.writelines(lines)
        sys.stdout.flush()
    else:
        write_lines(output, lines)


def order_lines(tagger: SequenceTagger, corpus: Corpus) -> Iterator[str]:
    """The columns of a corpus, then what the tagger says about its decisions, then the labels."""
    parts = [tagger.predict_step(batch) for batch in tagger.batches(corpus)]
    return conll_lines(tagger.annotated(corpus, parts), predicted=flat_labels(corpus, tagger.labels, parts))


def candidate_lines(tagger: Tagger, corpus: Corpus, k: int) -> Iterator[str]:
    """Each sequence's k best: a comment with rank, score and log-probability, then word and label per line."""
    words = [corpus.columns["word"][a:b] for a, b in zip(corpus.starts[:-1], corpus.starts[1:], strict=True)]
    for sequence, found in zip(words, tagger.candidates(corpus, k), strict=True):
        for rank, labelling in enumerate(found, 1):
            log_p = "" if labelling.log_probability is None else f" log-probability {labelling.log_probability:.6f}"
            yield f"# {rank} score {labelling.score:.6g}{log_p}\n"
            yield from (f"{w} {label}\n" for w, label in zip(sequence, labelling.labels, strict=True))
            yield "\n"


def compare_predictions(
    places: Sequence[str],
    gold: str | None,
    scheme: str | None = None,
    split: str = "test",
    gamma: float = 1.0,
    labels: str | None = None,
) -> str:
    """The table of `compare` for two, of `compare_all` for more prediction files or folders of runs.

    The label is in the last column of each file, of the gold file too; without one gold is the last column but one
    of the prediction files, which must agree on it. `scheme` is that of the predictions, by default the
    `common_scheme`; gold is of the scheme `labels` and compared as `in_scheme` gives it. InputError for a single place,
    files of different texts, and as of `compare`, `gold_column` and these two.
    """
    if len(places) < 2:
        raise InputError(f"compare needs two or more prediction files or folders of runs, got {' '.join(places)}")
    paths = [str(predictions_of(place, split)) for place in places]
    words, wanted = last_column(gold) if gold is not None else gold_column(paths[0])
    predictions = {}
    for path in paths:
        own_words, predicted = last_column(path)
        if own_words != words:
            raise InputError(f"{path}: its sentences or words are not those of {gold or paths[0]}")
        if gold is None and gold_column(path)[1] != wanted:
            raise InputError(f"{path}: its gold labels are not those of {paths[0]}; set --gold FILE")
        predictions[path] = predicted
    scheme = scheme or common_scheme(predictions)
    right = in_scheme(wanted, gold or paths[0], scheme, labels)
    names, found = short_names(places), [predictions[path] for path in paths]
    if len(places) == 2:
        return compare(right, found[0], found[1], scheme, (names[0], names[1]), gamma).table()
    return compare_all(right, found, names, scheme, gamma).table()
