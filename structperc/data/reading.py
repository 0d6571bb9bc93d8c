"""Options of how a file of columns is to be read, as far as a user gives them."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

Unit = Literal["sentence", "document"]  # what one sequence is
UNITS = get_args(Unit)
Separator = Literal["whitespace", "tab"]  # what stands between the fields of a line
SEPARATORS = get_args(Separator)
DOCSTART = "-DOCSTART-"  # first field of the lines that open a document


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


class Reading(NamedTuple):
    """How a file of columns is read; what is None is as the saved model that reads the file has it."""

    columns: Sequence[str] | None = None  # roles of the columns
    unit: str | None = None  # sentence or document
    labels: str | None = None  # tag scheme of gold in the file, and how it writes labels
    encoding: str = "utf-8"
    comments: bool | None = None  # see `LineFormat`
    separator: Separator | None = None

    def or_else(self, unit: str, labels: str) -> "Reading":
        """Return the same options with this unit and this tag scheme where none is named."""
        return self._replace(unit=self.unit or unit, labels=self.labels or labels)

    @property
    def line_format(self) -> LineFormat:
        """How lines are divided, where nothing is named: at spaces and tabs, without comments."""
        return LineFormat(self.separator or "whitespace", bool(self.comments))
