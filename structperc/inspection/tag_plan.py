"""How a file that is to be labelled is read and written, from its beginning and the model: the same for all of it."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from structperc.data.blocks import Ends, Opening, document_ends, line_ends, nowhere, sentence_ends
from structperc.data.conll import Above, above, named_columns
from structperc.data.reading import PREDICTED, LineFormat, Reading
from structperc.data.recognition import Form, recognised
from structperc.errors import InputError
from structperc.inspection.reading import AS_THE_MODEL, column_roles, refuse_text
from structperc.light import Labeller
from structperc.text import paragraph_ends
from structperc.text.sentences import SENTENCES, Split
from structperc.text.tokenizer import TOKENIZERS, Cut

PREFIX = f"{PREDICTED}_"  # begins the names of new fields of JSON lines where these are there already
NEW = ("labels", "probabilities", "spans")
ENDS: dict[str, Ends] = {
    "nowhere": nowhere,
    "lines": line_ends,
    "paragraphs": paragraph_ends,
    "sentences": sentence_ends,
    "documents": document_ends,
}


class Cutting(NamedTuple):
    """How a file is taken apart; None for its form: that is recognised."""

    form: Form | None = None
    tokens: str = "conll"
    sentences: str = "rules"

    @property
    def tokenizer(self) -> Cut:
        """What gives the tokens of running text."""
        return TOKENIZERS[self.tokens]

    @property
    def split(self) -> Split:
        """What gives its sentences."""
        return SENTENCES[self.sentences]


class Plan(NamedTuple):
    """What is known of a file before it is read, so that each of its blocks can be read alone; it can be pickled."""

    name: str
    form: Form
    unit: str
    cutting: Cutting
    columns: Sequence[str]  # roles, of a file of columns
    line_format: LineFormat  # the same
    above: Above  # the same
    cut: str  # where it may be cut, one of ENDS
    together: bool  # whether documents are looked at, so that they must be marked as the file begins
    whole: bool  # whether the beginning was all of the file
    prefix: str  # of new fields of JSON lines
    names: Sequence[str]  # of all columns of a file of columns
    shown: str | None = None  # the format of what is written
    mark: int = 0  # characters before the text in its file: 1 for a byte-order mark

    @property
    def ends(self) -> Ends:
        """The places where the text may be cut."""
        return ENDS[self.cut]


def planned(
    tagger: Labeller,
    opening: Opening,
    name: str,
    shown: str | None,
    reading: Reading = AS_THE_MODEL,
    cutting: Cutting = Cutting(),  # noqa: B008  # immutable
) -> Plan:
    """Return how to read the file `name`, of which labels are written in the format `shown` (None: as columns).

    A file is cut into sentences, or into documents where the model or the format wants these, JSON lines into lines and
    running text into paragraphs. Not cut are a text that is one document for the model or the format, whatever is to
    become a page, columns of which no documents are marked for brat, and all that a model reads whose attributes count
    in all of the corpus. Raises InputError for a form that cannot be told or that the model cannot read.
    """
    lines = opening.lines
    named = of_columns(reading) or (lines and named_columns(lines[0]))
    form = cutting.form or ("columns" if named else None)
    if form is None:
        refuse_text(tagger, lines, name)
        form = recognised(lines, len(tagger.features.columns), name)
    if form != "columns" and (option := of_columns(reading)):
        raise InputError(f"{name}: --{option} is for files of columns; leave it out, or set --input columns")
    if form == "text":
        tagger.check_words_alone()
    columns: Sequence[str] = []
    names: Sequence[str] = []
    if form == "columns":
        found = column_roles(tagger, lines, name, reading)
        found.say(name)
        columns, names = found.roles, found.names
    unit, how = reading.unit or tagger.unit, reading.line_format(tagger.training_files)
    known = above(lines, how) if form == "columns" else Above()
    together = _documents_matter(tagger, form, shown, unit, cutting)
    cut = _cut(tagger, form, shown, together, known.marked)
    whole = opening.whole or cut == "nowhere"
    prefix, mark = _prefix(lines), int(opening.marked)
    return Plan(name, form, unit, cutting, columns, how, known, cut, together, whole, prefix, names, shown, mark)


def of_columns(reading: Reading) -> str | None:
    """Return the name of an option that is given and for files of columns alone; None for none."""
    given = {"columns": reading.columns, "separator": reading.separator, "comments": reading.comments}
    return next((name for name, value in given.items() if value), None)


def _documents_matter(tagger: Labeller, form: Form, shown: str | None, unit: str, cutting: Cutting) -> bool:
    """Whether a document is to be read as a whole."""
    one = form == "text" and cutting.sentences == "one"
    return unit == "document" or tagger.features.extent != "sequence" or shown not in (None, "columns") or one


def _cut(tagger: Labeller, form: Form, shown: str | None, together: bool, marked: bool) -> str:
    one = shown == "html" or (shown == "brat" and form == "columns" and not marked)
    if tagger.features.extent == "corpus" or one:
        return "nowhere"
    if form == "jsonl":
        return "lines"
    if form == "text":
        return "nowhere" if together else "paragraphs"
    return "documents" if together and marked else "sentences"


def _prefix(lines: Sequence[str]) -> str:
    """What new fields begin with, so that they replace none of the objects on these lines."""
    return PREFIX if any(map(_has_new, lines)) else ""


def _has_new(line: str) -> bool:
    """Whether a line is an object with a field that is to be written."""
    if not any(name in line for name in NEW):
        return False
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and not row.keys().isdisjoint(NEW)
