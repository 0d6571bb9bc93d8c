"""Options of how a file of columns is to be read, as far as a user gives them."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

Unit = Literal["sentence", "document"]  # what one sequence is
UNITS = get_args(Unit)
DOCSTART = "-DOCSTART-"  # first field of the lines that open a document


class Reading(NamedTuple):
    """How a file of columns is read; what is None is as the saved model that reads the file has it."""

    columns: Sequence[str] | None = None  # roles of the columns
    unit: str | None = None  # sentence or document
    labels: str | None = None  # tag scheme of gold in the file
    encoding: str = "utf-8"

    def or_else(self, unit: str, labels: str) -> "Reading":
        """Return the same options with this unit and this tag scheme where none is named."""
        return self._replace(unit=self.unit or unit, labels=self.labels or labels)
