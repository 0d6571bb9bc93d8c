"""Roles of the columns of a file that a tagger reads: given, from its first line, as in training, or by position."""

import logging
from collections.abc import Sequence, Set
from typing import Literal, NamedTuple

from structperc.data.conll import distinct_fields, field_count, header_names, header_separator
from structperc.data.format_detection import is_json, looks_like_text, nonblank_lines
from structperc.data.read_options import DEFAULT_READING, LineFormat, ReadOptions
from structperc.errors import InputError
from structperc.predictor import Predictor

logger = logging.getLogger("pytorch_lightning.structperc")

SKIPPED, GOLD = "_", "label"  # roles
HALF = 0.5


class ColumnRoles(NamedTuple):
    """Roles and names of the columns of a file."""

    roles: list[str]  # "_" for columns that are not read
    names: Sequence[str]  # "_" for unknown names
    source: Literal["given", "header", "training_files", "position"]  # "given": by the user
    ambiguous: Sequence[int] = ()  # indices of columns that may be gold labels, if there are several

    def check(self, file: str) -> None:
        """Raise InputError if several columns may be gold labels."""
        if self.ambiguous:
            first = [GOLD if i == self.ambiguous[0] else role for i, role in enumerate(self.roles)]
            either = " and ".join(f"{i + 1}" for i in self.ambiguous)
            raise InputError(
                f"{file}: columns {either} contain labels; specify the gold column, such as --columns {' '.join(first)}"
            )

    def log(self, file: str) -> None:
        """Log the roles of the columns, unless the user gave them or there is no choice."""
        if self.source != "given" and {SKIPPED, GOLD} & set(self.roles):
            gold = f", gold is column {self.roles.index(GOLD) + 1}" if GOLD in self.roles else ""
            named = self.source == "header"
            start = (
                f"columns from the header line: {' '.join(self.names)}" if named else "columns: " + " ".join(self.roles)
            )
            logger.info("%s: %s%s; use --columns to override", file, start, gold)


def column_roles(
    tagger: Predictor, lines: Sequence[str], file: str, reading: ReadOptions = DEFAULT_READING
) -> ColumnRoles:
    """Return the roles of the columns of a file that begins with these lines.

    They are those of `reading`, or of the first line of the file (see `header_line`); those of the training files, if
    the number of columns is equal; else those that the tagger reads come first, and gold is the only further column, or
    the only one of several with labels of the tagger. Raises InputError for columns that do not fit, and for labels in
    a column that the tagger reads as something else.
    """
    line_format = line_format_of(tagger, lines, reading)
    inputs, width = tagger.columns, field_count(lines, line_format)
    names = header_names(lines[0]) if lines else None
    if reading.columns:
        skipped = [SKIPPED] * (width - len(reading.columns))
        return ColumnRoles(list(reading.columns), names or [*reading.columns, *skipped], "given")
    if names:
        if missing := [role for role in inputs if role not in names]:
            reason = f"the model requires {missing[0]}, but the header line contains {', '.join(names)}"
            raise InputError(f"{file}: {reason}; set --columns")
        return ColumnRoles(_used(names, inputs), names, "header")
    found = tagger.training_files.get("columns")
    trained = found if isinstance(found, list) else []
    if width == len(trained):
        _check_input_columns(tagger, distinct_fields(lines, line_format), _used(trained, inputs), file)
        return ColumnRoles(_used(trained, inputs), trained, "training_files")
    if width < len(inputs):
        if not width or tagger.unsupported_reason is None:
            return ColumnRoles(inputs, inputs, "position")
        raise InputError(f"{file}: {width} {'column' if width == 1 else 'columns'}, but {tagger.unsupported_reason}")
    if trained and trained[: len(inputs)] != inputs and width != len(inputs):
        known = f"the training files have {len(trained)} ({' '.join(trained)})"
        raise InputError(
            f"{file}: {width} columns, but {known} and the model requires {len(inputs)} ({' '.join(inputs)}); "
            "set --columns for this file"
        )
    return _by_position(tagger, distinct_fields(lines, line_format), file, width)


def line_format_of(tagger: Predictor, lines: Sequence[str], reading: ReadOptions = DEFAULT_READING) -> LineFormat:
    """Return the format of the lines of a file: that of the options, of its `header_line`, or of the training files."""
    separator = reading.separator or header_separator(lines)
    return reading._replace(separator=separator).line_format(tagger.training_files)


def _used(roles: Sequence[str], inputs: Sequence[str]) -> list[str]:
    return [role if role == GOLD or role in inputs else SKIPPED for role in roles]


def _by_position(tagger: Predictor, values: Sequence[Set[str]], file: str, width: int) -> ColumnRoles:
    inputs = tagger.columns
    roles = [*inputs, *[SKIPPED] * (width - len(inputs))]
    _check_input_columns(tagger, values, roles, file)
    labels = [i for i in range(len(inputs), width) if values[i] == {"O"} or tagger.labels.share_known(values[i]) > HALF]
    names = [GOLD if [i] == labels else role for i, role in enumerate(roles)]
    gold = [width - 1] if width == len(inputs) + 1 else labels
    if len(gold) == 1:
        roles[gold[0]] = GOLD
    return ColumnRoles(roles, names, "position", gold if len(gold) > 1 else ())


def _check_input_columns(tagger: Predictor, values: Sequence[Set[str]], roles: Sequence[str], file: str) -> None:
    """Raise InputError for labels of the tagger in a column that it reads as something else."""
    usual = tagger.training_files.get("like_labels", ())
    for place, (role, distinct) in enumerate(zip(roles, values, strict=True), 1):
        if role in (SKIPPED, GOLD, *usual) or tagger.labels.scheme == "none":
            continue
        if tagger.labels.share_known(distinct) > HALF:
            reason = f"column {place} contains labels of the model, but the model expects {role} there"
            raise InputError(f"{file}: {reason}; set --columns")


def refuse_plain_text(tagger: Predictor, lines: Sequence[str], file: str) -> None:
    """Raise InputError for lines that look like running text, if the tagger requires more than words."""
    width = field_count(lines, line_format_of(tagger, lines))
    if tagger.unsupported_reason is None or width <= len(tagger.columns):
        return
    if looks_like_text(lines) and not all(is_json(line) for _, line in nonblank_lines(lines)):
        raise InputError(f"{file}: {tagger.unsupported_reason}, a token per line")
