"""How files are read: the options that a user gives, and those of the training files, which are kept with a model."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from structperc.data.json_data import check_value
from structperc.data.tag_schemes import Scheme

Unit = Literal["sentence", "document"]  # what one sequence is
UNITS = get_args(Unit)
Separator = Literal["whitespace", "tab"]  # what stands between the fields of a line
SEPARATORS = get_args(Separator)
DOCSTART = "-DOCSTART-"  # first field of the lines that open a document
HEADER = "#columns="  # begins the first line of a file that names its columns
PREDICTED = "predicted"  # the name of a column of predicted labels


class LineFormat(NamedTuple):
    """How the lines of a file of columns are divided.

    Args:
        separator: "whitespace", spaces and tabs; or "tab", for fields that hold spaces.
        comments: whether lines that begin with "#" and have another number of fields than tokens have are comments.
        docstart: first field of the lines that open a document; None: documents are not marked.
    """

    separator: Separator = "whitespace"
    comments: bool = False
    docstart: str | None = DOCSTART


class ReadOptions(NamedTuple):
    """How a file of columns is read; what is None is as the saved model that reads the file has it."""

    columns: Sequence[str] | None = None  # roles of the columns
    unit: str | None = None  # sentence or document
    labels: str | None = None  # tag scheme of gold in the file, and how it writes labels
    encoding: str = "utf-8"
    comments: bool | None = None  # see `LineFormat`
    separator: Separator | None = None

    def or_else(self, unit: str, labels: str) -> "ReadOptions":
        """Return the same options with this unit and this tag scheme where none is named."""
        return self._replace(unit=self.unit or unit, labels=self.labels or labels)

    def line_format(self, trained: Mapping[str, Any] = MappingProxyType({})) -> LineFormat:
        """Return how lines are divided: what is not named is as in the training files, or else `LineFormat()`."""
        plain = LineFormat()
        separator = self.separator or trained.get("separator", plain.separator)
        comments = trained.get("comments", plain.comments) if self.comments is None else self.comments
        return LineFormat(separator, comments, trained.get("docstart", plain.docstart))


TRAINING_FILES: dict[str, Any] = {  # options of the training files, of all data sources, as plain JSON types
    "columns": list[str | None] | dict[str, str],  # roles of a file's columns in order, or the column of each role
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
    "like_labels": list[str],  # roles of the columns whose strings are labels as those that are learned
}


def check_training_files(options: Any) -> Mapping[str, Any]:
    """Return the options of a model's training files. Raises InputError for options of a wrong type.

    Unknown ones are those of a data source that is not of this library.
    """
    check_value(options, dict[str, Any], "training_files")
    for name in options.keys() & TRAINING_FILES.keys():
        check_value(options[name], TRAINING_FILES[name], f"training_files.{name}")
    return options
