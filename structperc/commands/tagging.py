"""A file of columns, running text or JSON lines labelled by a saved model."""

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from structperc.data.output import check_target, write_lines
from structperc.data.reading import Reading
from structperc.data.recognition import Form, recognised, say_form
from structperc.data.text import lines_of, read_whole
from structperc.errors import InputError
from structperc.inspection.reading import AS_THE_MODEL
from structperc.inspection.tag_input import TagInput, read_input
from structperc.inspection.tag_output import Format, Lines, output_lines
from structperc.light import Labeller
from structperc.loading import load
from structperc.text.sentences import SENTENCES
from structperc.text.tokenizer import TOKENIZERS


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
    if output is not None:
        check_target(output)
    if output is None and sys.stdout is None:
        raise InputError("standard output is closed; write to a file with -o")
    tagger, lines = _ready(model, trusted, shown)
    form, given = _read(tagger, file, reading, cutting)
    labelled = lines(given)
    if form is None:
        say_form(given.form, file)
    if output is None:
        sys.stdout.writelines(labelled)
        sys.stdout.flush()
    else:
        write_lines(output, labelled)


def _read(tagger: Labeller, file: str, reading: Reading, cutting: Cutting) -> tuple[Form | None, TagInput]:
    """The form that the user named, and what is in the file."""
    text = read_whole(file, reading.encoding)
    form = cutting.form or ("columns" if reading.columns else None)
    found = form or recognised(lines_of(text), len(tagger.features.columns), file)
    ways = TOKENIZERS[cutting.tokens], SENTENCES[cutting.sentences]
    return form, read_input(tagger, text, file, found, reading, *ways)


def _ready(model: str, trusted: Sequence[str], shown: Shown) -> tuple[Labeller, Lines]:
    """The tagger, whole only where more than labels is shown, and what gives the lines to be written."""
    if shown.k is None and not shown.order:
        tagger = load(model, trusted)
        return tagger, partial(_decided_lines, tagger, shown)
    from structperc.commands.listing import candidates_of, order_of  # which need PyTorch

    return order_of(model, trusted) if shown.k is None else candidates_of(model, trusted, shown.k)


def _decided_lines(tagger: Labeller, shown: Shown, given: TagInput) -> Iterator[str]:
    form = shown.form or ("jsonl" if given.form == "jsonl" else "columns")
    decided = tagger.decided(given.corpus, shown.probabilities)
    return output_lines(given, decided, tagger.labels.scheme, form)
