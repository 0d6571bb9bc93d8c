"""A file of columns labelled by a saved model."""

import sys
from collections.abc import Iterator, Sequence

import torch

from structperc.commands.saved_model import load_guided
from structperc.data.conll import with_fields
from structperc.data.corpus import Corpus
from structperc.data.output import write_lines
from structperc.data.reading import Reading
from structperc.data.text import read_lines
from structperc.errors import InputError
from structperc.inspection.reading import AS_THE_MODEL, read_text
from structperc.reports.writing import check_targets
from structperc.taggers.inference import at_once, flat_labels
from structperc.taggers.lattice_tagger import LatticeTagger
from structperc.taggers.sequence_tagger import SequenceTagger

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
    was decided, from 1, stands before its label. Raises InputError for a missing file or model, columns that the model
    needs and the file lacks, k < 1, k for a model that knows the best labelling alone, and order for a model that has
    none.
    """
    if k is not None and k < 1:
        raise InputError(f"-k must be >= 1, got {k}")
    check_targets(output)
    if output is None and sys.stdout is None:
        raise InputError("standard output is closed; write to a file with -o")
    tagger = load_guided(model, trusted) if order else SequenceTagger.load(model, trusted=trusted)
    lines = read_lines(file, reading.encoding)
    corpus = read_text(tagger, lines, file, reading)
    if k is None:
        labelled = with_fields(lines, fields_by_line(tagger, corpus, order))
    elif isinstance(tagger, LatticeTagger):
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
    """Return the label of the token at each line; with `order`, after what the tagger says about its decision."""
    assert corpus.lines is not None
    parts = [tagger.predict_step(batch) for batch in tagger.batches(corpus, at_once(corpus))]
    said = tagger.annotated(corpus, parts).columns if order else corpus.columns
    own = [said[role] for role in said if role not in corpus.columns]
    fields = zip(*own, flat_labels(corpus, tagger.labels, parts), strict=True)
    return dict(zip(corpus.lines.tolist(), fields, strict=True))


def candidate_lines(tagger: LatticeTagger, corpus: Corpus, k: int) -> Iterator[str]:
    """Yield each sequence's k best: a comment with rank, score and log-probability, then word and label per line."""
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
