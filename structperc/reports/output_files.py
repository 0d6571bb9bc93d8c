"""Tables and figures as files, which appear complete or not at all (see `data.output`)."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from structperc.data.output import check_output_path, open_atomic, write_lines
from structperc.errors import InputError


def check_targets(*paths: str | None) -> None:
    """Raise InputError before work begins if one of the files could not be written; None names no file."""
    for path in paths:
        if path is not None:
            check_output_path(path)


def check_figure(path: str | None) -> None:
    """Raise InputError like `check_targets`, and also if matplotlib knows no image format of the file's ending."""
    check_targets(path)
    known = Figure().canvas.get_supported_filetypes()
    if path is not None and Path(path).suffix[1:].lower() not in known:
        raise InputError(f"{path}: a figure cannot be written as {Path(path).suffix!r}; end it in .png, .svg or .pdf")


def write_csv(path: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file: the header, then the rows."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_lines(path, [text.getvalue()])


def write_records(path: str, records: Sequence[Mapping[str, object]]) -> None:
    """Write a CSV file with one line per record and one column per key, in the order in which keys first appear."""
    names = list(dict.fromkeys(name for record in records for name in record))
    write_csv(path, names, [[record.get(name, "") for name in names] for record in records])


def write_figure(path: str, figure: Figure) -> None:
    """Write a figure in the image format that the file's ending names."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format=Path(path).suffix[1:].lower(), dpi=150)
    with open_atomic(path) as file:
        file.write(drawn.getvalue())
