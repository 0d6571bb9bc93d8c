"""Small commands on saved models and prediction files."""

import sys
from collections.abc import Iterator, Sequence

import torch

from structperc.data.conll import with_fields
from structperc.data.corpus import Corpus
from structperc.data.output import write_lines
from structperc.data.reading import Reading
from structperc.data.schemes import check_labels, common_scheme, in_scheme
from structperc.data.text import read_lines
from structperc.errors import InputError
from structperc.metrics import compare, compare_all
from structperc.training.decisions import load_guided
from structperc.training.inference import flat_labels
from structperc.training.predictions import gold_column, last_column, predictions_of, short_names
from structperc.training.reading import AS_THE_MODEL, read_text
from structperc.training.sequence_tagger import SequenceTagger
from structperc.training.tagger import Tagger
from structperc.training.writing import check_targets

TOGETHER = 2**16  # labellings


def tag_file(
    model: str,
    file: str,
    reading: Reading = AS_THE_MODEL,
    output: str | None = None,
    k: int | None = None,
    order: bool = False,
    trusted: Sequence[str] = (),
) -> None:
    """Label a file of CoNLL columns; write its lines with the predicted label, or with k the k best labellings.

    Columns stay as they are, those that the model does not read among them. With `order` the step in which each token
    was decided, from 1, stands before its label. InputError for a missing file or model, columns that the model needs
    and the file lacks, k < 1, k for a model that knows the best labelling alone, and order for a model that has none.
    """
    if k is not None and k < 1:
        raise InputError(f"-k must be >= 1, got {k}")
    check_targets(output)
    tagger = load_guided(model, trusted) if order else SequenceTagger.load(model, trusted=trusted)
    lines = read_lines(file, reading.encoding)
    corpus = read_text(tagger, lines, file, reading)
    if k is None:
        labelled = with_fields(lines, fields_by_line(tagger, corpus, order))
    elif isinstance(tagger, Tagger):
        labelled = candidate_lines(tagger, corpus, k)
    else:
        raise InputError(f"{model}: a {type(tagger).__name__} knows the best labelling alone; leave out -k")
    if output is None:
        sys.stdout.writelines(labelled)
        sys.stdout.flush()
    else:
        write_lines(output, labelled)


@torch.no_grad()
def fields_by_line(tagger: SequenceTagger, corpus: Corpus, order: bool) -> dict[int, tuple[str, ...]]:
    """Line -> the label of its token; with `order`, behind what the tagger says about its decision."""
    assert corpus.lines is not None
    parts = [tagger.predict_step(batch) for batch in tagger.batches(corpus)]
    said = tagger.annotated(corpus, parts).columns if order else corpus.columns
    own = [said[role] for role in said if role not in corpus.columns]
    fields = zip(*own, flat_labels(corpus, tagger.labels, parts), strict=True)
    return dict(zip(corpus.lines.tolist(), fields, strict=True))


def candidate_lines(tagger: Tagger, corpus: Corpus, k: int) -> Iterator[str]:
    """Each sequence's k best: a comment with rank, score and log-probability, then word and label per line."""
    words = [corpus.columns["word"][a:b] for a, b in zip(corpus.starts[:-1], corpus.starts[1:], strict=True)]
    step = max(1, TOGETHER // k)  # of long lists, no more than these are kept
    stretches = (corpus.stretch(a, min(a + step, len(corpus))) for a in range(0, len(corpus), step))
    lists = (found for part in stretches for found in tagger.candidates(part, k))
    for sequence, found in zip(words, lists, strict=True):
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
    encoding: str = "utf-8",
) -> str:
    """The table of `compare` for two, of `compare_all` for more prediction files or folders of runs.

    The label is in the last column of each file, of the gold file too; without one gold is the last column but one
    of the prediction files, which must agree on it. `scheme` is that of the predictions, by default the
    `common_scheme`; gold is of the scheme `labels` and compared as `in_scheme` gives it. `encoding` is that of files,
    not of those in folders of runs. InputError for a single place, files of different texts, and as of `compare`,
    `gold_column` and these two.
    """
    if len(places) < 2:
        raise InputError(f"compare needs two or more prediction files or folders of runs, got {' '.join(places)}")
    paths = [str(predictions_of(place, split)) for place in places]
    of = {path: encoding if path == place else "utf-8" for path, place in zip(paths, places, strict=True)}
    words, wanted = last_column(gold, encoding) if gold is not None else gold_column(paths[0], of[paths[0]])
    predictions = {}
    for path in paths:
        own_words, predicted = last_column(path, of[path])
        if own_words != words:
            raise InputError(f"{path}: its sentences or words are not those of {gold or paths[0]}")
        if gold is None and gold_column(path, of[path])[1] != wanted:
            raise InputError(f"{path}: its gold labels are not those of {paths[0]}; set --gold FILE")
        predictions[path] = predicted
    scheme = scheme or common_scheme(predictions)
    for path, predicted in predictions.items():
        check_labels(predicted, path, scheme)
    right = in_scheme(wanted, gold or paths[0], scheme, labels)
    names, found = short_names(places), [predictions[path] for path in paths]
    if len(places) == 2:
        return compare(right, found[0], found[1], scheme, (names[0], names[1]), gamma).table()
    return compare_all(right, found, names, scheme, gamma).table()
