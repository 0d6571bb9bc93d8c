"""Options for reading files: those of a user, and those of the training files, saved with a model."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from structperc.data.json_data import check_value
from structperc.data.tag_schemes import Scheme

Unit = Literal["sentence", "document"]  # unit of a sequence
UNITS = get_args(Unit)
Separator = Literal["whitespace", "tab"]  # between fields of a line
SEPARATORS = get_args(Separator)
InputFormat = Literal["text", "columns", "jsonl"]
INPUT_FORMATS = get_args(InputFormat)
Dropped = Literal["missed", "ignored"]
DROPPED = get_args(Dropped)
DOCSTART = "-DOCSTART-"  # first field of lines before documents
HEADER = "#columns="  # beginning of a first line that names the columns
PREDICTED = "predicted"  # name of a column of predicted labels


class LineFormat(NamedTuple):
    """Format of the lines of a column file.

    Args:
        separator: "whitespace" (spaces and tabs), or "tab" for fields that contain spaces.
        comments: True: lines that begin with "#" and have another number of fields than tokens are comments.
        docstart: first field of lines before documents; None: documents are not marked.
    """

    separator: Separator = "whitespace"
    comments: bool = False
    docstart: str | None = DOCSTART


class ReadOptions(NamedTuple):
    """Options for reading a file; None: depends on the model or the file.

    Example:
        >>> options = ReadOptions(columns=["word", "label"], comments=True).or_else("document", "IOB2")
        >>> options.unit, options.labels, options.line_format().comments
        ('document', 'IOB2', True)
    """

    columns: Sequence[str] | None = None  # roles, or ROLE=COLUMN for tables
    unit: str | None = None  # sentence or document
    labels: str | None = None  # tag scheme or notation of the labels in the file
    encoding: str = "utf-8"
    comments: bool | None = None  # see `LineFormat`
    separator: Separator | None = None
    misaligned: str | None = None  # of spans in running text, see `annotations.TextOptions`
    overlaps: str | None = None
    dropped: Dropped = "missed"  # gold spans that these two leave out: in evaluations missed, or ignored
    form: InputFormat | None = None  # of files without labels; None: detected
    tokens: str = "conll"  # tokenizer of running text, a key of `tokenizer.TOKENIZERS`
    sentences: str = "rules"  # its sentence splitter, a key of `tokenizer.SENTENCES`

    def or_else(self, unit: str, labels: str) -> "ReadOptions":
        """Return the options with defaults for unit and labels."""
        return self._replace(unit=self.unit or unit, labels=self.labels or labels)

    def line_format(self, trained: Mapping[str, Any] = MappingProxyType({})) -> LineFormat:
        """Return the line format; options that are None are those of the training files."""
        plain = LineFormat()
        separator = self.separator or trained.get("separator", plain.separator)
        comments = trained.get("comments", plain.comments) if self.comments is None else self.comments
        return LineFormat(separator, comments, trained.get("docstart", plain.docstart))


DEFAULT_READING = ReadOptions()

TRAINING_FILES: dict[str, Any] = {  # type hints of the options of data modules, as plain JSON
    "columns": list[str | None] | dict[str, str],  # roles in order, or the column of each role
    "docstart": str | None,
    "comments": bool,
    "separator": Separator,
    "tags": str,
    "names": dict[str, list[str]],
    "tokens": str,
    "sentences": str,
    "misaligned": str,
    "overlaps": str,
    "offsets": str,
    "heading": bool,
    "scheme": Scheme,
    "encoding": str,
    "labels": str,
    "strict": bool,
    "types": dict[str, str],
    "like_labels": list[str],  # roles of columns with labels of the same types
}
TREATMENTS = ("misaligned", "overlaps")
FORMER_VALUES = {"error": "refuse", "skip": "drop"}  # of these options in models saved before they were renamed


def check_training_files(options: Any) -> Mapping[str, Any]:
    """Return the options of a model's training files. Raises InputError for a wrong type.

    Unknown options, of user-defined data modules, are accepted.
    """
    check_value(options, dict[str, Any], "training_files")
    for name in options.keys() & TRAINING_FILES.keys():
        check_value(options[name], TRAINING_FILES[name], f"training_files.{name}")
    renamed = {name: FORMER_VALUES.get(options[name], options[name]) for name in TREATMENTS if name in options}
    return {**options, **renamed}
