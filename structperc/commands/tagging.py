"""A file of columns, running text or JSON lines labelled by a saved model."""

import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from structperc.commands.saved_model import load_guided
from structperc.data.corpus import Corpus
from structperc.data.output import write_lines
from structperc.data.reading import Reading
from structperc.data.recognition import Form, recognised, say_form
from structperc.data.text import lines_of, read_whole
from structperc.errors import InputError
from structperc.inspection.reading import AS_THE_MODEL
from structperc.inspection.tag_input import TagInput, read_input
from structperc.inspection.tag_output import Format, column_lines, output_lines
from structperc.reports.writing import check_targets
from structperc.taggers.inference import at_once, flat_labels
from structperc.taggers.lattice_tagger import LatticeTagger
from structperc.taggers.sequence_tagger import SequenceTagger
from structperc.text.sentences import SENTENCES
from structperc.text.tokenizer import TOKENIZERS

TOGETHER = 2**16  # labellings


class Shown(NamedTuple):
    """What is to be written: the best labels in a format, with their probabilities or their order, or the k best."""

    form: Format | None = None  # None: JSON lines as such, everything else as columns
    k: int | None = None
    order: bool = False
    probabilities: bool = False

    def check(self) -> None:
        """Raise InputError for what cannot be shown together."""
        if self.k is not None and self.k < 1:
            raise InputError(f"-k must be >= 1, got {self.k}")
        lists = "-k" if self.k is not None else "--order" if self.order else None
        if lists and self.form not in (None, "columns"):
            raise InputError(f"{lists} is shown in columns alone; leave out --format {self.form}, or {lists}")
        if lists and self.probabilities:
            raise InputError(f"{lists} and --probabilities are not shown together; leave out one of them")


class Cutting(NamedTuple):
    """How a file is taken apart; None for its form: that is recognised."""

    form: Form | None = None
    tokens: str = "conll"
    sentences: str = "rules"


def tag_file(
    model: str,
    file: str,
    reading: Reading = AS_THE_MODEL,
    output: str | None = None,
    shown: Shown = Shown(),  # noqa: B008  # immutable
    cutting: Cutting = Cutting(),  # noqa: B008
    trusted: Sequence[str] = (),
) -> None:
    """Label a file and write it with what the model predicts, see `Shown`.

    Columns stay as they are, those that the model does not read among them. Raises InputError for a missing file or
    model, a file whose form cannot be told, columns that the model needs and the file lacks, and for things to be shown
    that the model does not know.
    """
    shown.check()
    check_targets(output)
    if output is None and sys.stdout is None:
        raise InputError("standard output is closed; write to a file with -o")
    tagger = load_guided(model, trusted) if shown.order else SequenceTagger.load(model, trusted=trusted)
    form, given = _read(tagger, file, reading, cutting)
    labelled = _labelled(tagger, given, shown, model)
    if form is None:
        say_form(given.form, file)
    if output is None:
        sys.stdout.writelines(labelled)
        sys.stdout.flush()
    else:
        write_lines(output, labelled)


def _read(tagger: SequenceTagger, file: str, reading: Reading, cutting: Cutting) -> tuple[Form | None, TagInput]:
    """The form that the user named, and what is in the file."""
    text = read_whole(file, reading.encoding)
    form = cutting.form or ("columns" if reading.columns else None)
    found = form or recognised(lines_of(text), len(tagger.features.columns), file)
    ways = TOKENIZERS[cutting.tokens], SENTENCES[cutting.sentences]
    return form, read_input(tagger, text, file, found, reading, *ways)


def _labelled(tagger: SequenceTagger, given: TagInput, shown: Shown, model: str) -> Iterator[str]:
    if shown.k is not None:
        if isinstance(tagger, LatticeTagger):
            return candidate_lines(tagger, given.corpus, shown.k)
        raise InputError(f"{model}: a {type(tagger).__name__} knows the best labelling alone; leave out -k")
    if shown.order:
        return _ordered_lines(tagger, given)
    form = shown.form or ("jsonl" if given.form == "jsonl" else "columns")
    decided = tagger.decided(given.corpus, shown.probabilities)
    return output_lines(given, decided, tagger.labels.scheme, form)


@torch.no_grad()
def _ordered_lines(tagger: SequenceTagger, given: TagInput) -> Iterator[str]:
    """Columns, with what the tagger says about its decisions before the label."""
    corpus = given.corpus
    parts = [tagger.predict_step(batch) for batch in tagger.batches(corpus, at_once(corpus))]
    said = tagger.annotated(corpus, parts).columns
    own = {role: values for role, values in said.items() if role not in corpus.columns}
    return column_lines(given, own, flat_labels(corpus, tagger.labels, parts))


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
