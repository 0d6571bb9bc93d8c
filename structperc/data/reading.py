"""How files are read: the options that a user gives, and those of the training files, which are kept with a model."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from structperc.data.tags import Scheme
from structperc.data.typed import check_value

Unit = Literal["sentence", "document"]  # what one sequence is
UNITS = get_args(Unit)
DOCSTART = "-DOCSTART-"  # first field of the lines that open a document
HEADER = "#columns="  # begins the first line of a file that names its columns
PREDICTED = "predicted"  # the name of a column of predicted labels


class Reading(NamedTuple):
    """How a file of columns is read; what is None is as the saved model that reads the file has it."""

    columns: Sequence[str] | None = None  # roles of the columns
    unit: str | None = None  # sentence or document
    labels: str | None = None  # tag scheme of gold in the file
    encoding: str = "utf-8"

    def or_else(self, unit: str, labels: str) -> "Reading":
        """Return the same options with this unit and this tag scheme where none is named."""
        return self._replace(unit=self.unit or unit, labels=self.labels or labels)


TRAINING_FILES: dict[str, Any] = {  # options of the training files, of all data sources, as plain JSON types
    "columns": list[str | None] | dict[str, str],  # roles of a file's columns in order, or the column of each role
    "docstart": str | None,
    "comments": bool,
    "tags": str,
    "names": dict[str, list[str]],
    "tokens": str,
    "sentences": str,
    "scheme": Scheme,
    "encoding": str,
    "labels": Scheme,
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
