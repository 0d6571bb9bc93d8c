"""Rows of JSON as annotation tools export them -> rows with a text and its spans.

Label Studio (JSON; JSON-MIN needs no change), doccano (needs none either) and Prodigy.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from structperc.errors import InputError

logger = logging.getLogger("pytorch_lightning.structperc")

Row = tuple[str, Mapping[str, Any]]  # its place, for messages, and its values by the names of its columns
SPANS = "annotations"  # the column of the spans of a task of Label Studio
ANSWERS = ("accept", "reject", "ignore")  # of Prodigy


def tool_of(row: Mapping[str, Any]) -> str | None:
    """Return the tool that has exported a row, where the names of its fields tell.

    Example:
        >>> tool_of({"id": 1, "text": "Anna left", "label": [[0, 4, "PER"]]})
        'doccano'
    """
    if isinstance(row.get("data"), Mapping) and isinstance(row.get(SPANS), list):
        return "Label Studio"
    if _is_minimal(row):
        return "Label Studio"
    if row.get("answer") in ANSWERS or {"_input_hash", "_task_hash"} & row.keys():
        return "Prodigy"
    if "text" in row and any(_is_doccano(row.get(name)) for name in ("label", "labels", "entities")):
        return "doccano"
    return None


def exported_rows(rows: Iterable[Row], name: str) -> Iterator[Row]:
    """Yield rows of a file of that name with a text and its spans in a column each.

    A task of Label Studio (JSON) becomes a row with the fields of its `data` and a column `annotations` of spans; of
    Prodigy only accepted texts are kept, and those without spans get an empty list. All other rows stay as they are.
    Rows that are left out are counted on standard error. Raises InputError for tasks with several annotations, and for
    marks that are no stretches of characters.
    """
    given = list(rows)
    regions: dict[str, list[Any]]
    regions = {name: [] for _, row in given for name, value in row.items() if _is_minimal(row) and _is_regions(value)}
    left_out = 0
    for place, row in given:
        found: Mapping[str, Any] | None = row
        tool = tool_of(row)
        if tool == "Label Studio":
            found = {**regions, **row} if _is_minimal(row) else _task(row, place)
        elif tool == "Prodigy":
            found = {"spans": [], **row} if row.get("answer", "accept") == "accept" else None
        if found is None:
            left_out += 1
        else:
            yield place, found
    if left_out:
        what = "1 row is" if left_out == 1 else f"{left_out:,} rows are"
        logger.warning("%s: %s left out: not annotated, or not accepted", name, what)


def _is_minimal(row: Mapping[str, Any]) -> bool:
    """Whether a row is of JSON-MIN, the short form of Label Studio."""
    return "annotation_id" in row and "annotator" in row


def _is_regions(value: Any) -> bool:
    """Whether a value holds marks in the short form; a task without any lacks their field."""
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) and "start" in one for one in value)


def _task(row: Mapping[str, Any], place: str) -> Mapping[str, Any] | None:
    """The text and spans of a task; None for one that nobody has annotated."""
    given = [one for one in row[SPANS] if isinstance(one, Mapping) and not one.get("was_cancelled")]
    if len(given) > 1:
        raise InputError(f"{place}: this task has {len(given)} annotations; keep one of them")
    if not given:
        return None
    marks = [one for one in given[0].get("result") or [] if "labels" in str(one.get("type", ""))]
    if len({one.get("to_name") for one in marks}) > 1:
        raise InputError(f"{place}: the marks of this task are in several texts; write a row for each of them")
    return {**row["data"], SPANS: [_mark(one.get("value"), place) for one in marks]}


def _mark(value: Any, place: str) -> Mapping[str, Any]:
    """A mark as a span with start, end and labels."""
    if isinstance(value, Mapping):
        labels = next((found for key, found in value.items() if key.endswith("labels")), None)
        if isinstance(value.get("start"), int) and isinstance(value.get("end"), int):
            return {"start": value["start"], "end": value["end"], "labels": labels}
    raise InputError(f"{place}: a mark has no start and end in characters, but {value!r:.80}; export plain text")


def _is_doccano(value: Any) -> bool:
    """Whether a value is a list of spans as doccano writes them."""
    if not isinstance(value, list) or not value:
        return False
    first = value[0]
    if isinstance(first, Mapping):
        return "start_offset" in first
    return isinstance(first, list) and len(first) == 3 and isinstance(first[2], str)
