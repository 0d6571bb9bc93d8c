"""Rows of JSON as annotation tools export them -> rows with a text and its spans.

Label Studio (JSON; JSON-MIN needs no change), doccano (needs none either) and Prodigy.

Texts with marked spans -> tokens with labels; spans that do not fit the tokens are counted and named together.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from structperc.errors import InputError
from structperc.text import (
    SpanConflict,
    TextSpan,
    TokenizedText,
    align,
    merge_sentences,
    to_character_offsets,
    tokenized,
)
from structperc.text.alignment import Misaligned, OffsetUnit, Overlaps
from structperc.text.tokenizer import SENTENCES, TOKENIZERS

logger = logging.getLogger("pytorch_lightning.structperc")

Row = tuple[str, Mapping[str, Any]]  # its place, for messages, and its values by the names of its columns
SPANS = "annotations"  # the column of the spans of a task of Label Studio
ANSWERS = ("accept", "reject", "ignore")  # of Prodigy


def detect_tool(row: Mapping[str, Any]) -> str | None:
    """Return the tool that has exported a row, where the names of its fields tell.

    Example:
        >>> detect_tool({"id": 1, "text": "Anna left", "label": [[0, 4, "PER"]]})
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


def convert_exports(rows: Iterable[Row], name: str) -> Iterator[Row]:
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
        tool = detect_tool(row)
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


TYPES = ("label", "type", "entity_group", "entity", "tag", "labels")  # how records call the type of a span
STARTS, ENDS = ("start", "start_offset"), ("end", "end_offset")
COUNTED = {"characters": "characters", "utf-16": "UTF-16 code units, as JavaScript does,", "utf-8": "UTF-8 bytes"}
EXAMPLES = 3  # of misfits


class TextOptions(NamedTuple):
    """How texts become tokens and spans their labels.

    Args:
        tokens: a name of `text.tokenizer.TOKENIZERS`.
        sentences: a name of `text.tokenizer.SENTENCES`.
        misaligned: what becomes of spans that do not begin and end as tokens do, see `text.align`.
        overlaps: what becomes of spans that share a token.
        offsets: what those of spans count.
    """

    tokens: str = "conll"
    sentences: str = "rules"
    misaligned: Misaligned = "error"
    overlaps: Overlaps = "error"
    offsets: OffsetUnit = "characters"

    def check(self) -> None:
        """Raise InputError for an unknown value of an option."""
        known = {
            "tokens": tuple(TOKENIZERS),
            "sentences": tuple(SENTENCES),
            "misaligned": get_args(Misaligned),
            "overlaps": get_args(Overlaps),
            "offsets": get_args(OffsetUnit),
        }
        for option, values in known.items():
            if (value := getattr(self, option)) not in values:
                raise InputError(f"{option} must be one of {', '.join(values)}, not {value!r}")

    def cut(self, text: str) -> TokenizedText:
        """Return a text with its tokens and sentences."""
        return tokenized(text, TOKENIZERS[self.tokens], SENTENCES[self.sentences])


class AnnotatedText(NamedTuple):
    """A text and what is marked in it; None: nothing is said about spans."""

    place: str
    text: str
    spans: list[TextSpan] | None


class LabelledText(NamedTuple):
    """A text with its tokens and sentences, and the spans of tokens."""

    text: TokenizedText
    spans: list[tuple[int, int, str]]


class SpanReport(NamedTuple):
    """Spans of a table of annotated texts that do not fit the tokens, and how the table was read."""

    name: str
    text_options: TextOptions
    texts: Sequence[AnnotatedText]
    conflicts: list[tuple[str, SpanConflict]]  # with their places
    joined: list[str]  # the places of the texts in which a boundary of sentences was inside of a span

    @property
    def total(self) -> int:
        """The number of all spans."""
        return sum(len(one.spans or []) for one in self.texts)

    def summary(self) -> str:
        """Return how many spans do not fit, by kinds, with a few examples."""
        number = len(self.conflicts)
        kinds = Counter(misfit.kind for _, misfit in self.conflicts)
        lines: dict[str, list[str]] = {kind: [] for kind in kinds}
        for place, one in self.conflicts:
            lines[one.kind].append(f"{Path(place).name}: {one.message}")
        shown = {kind: "; ".join(own[: EXAMPLES if len(kinds) == 1 else 1]) for kind, own in lines.items()}
        counts = [f"{kind} {count:,}, such as {shown[kind]}" for kind, count in kinds.items()]
        found = ", ".join(counts) if len(kinds) > 1 else "".join(shown.values())
        if number > EXAMPLES:
            found += "; structperc check shows more of them"
        does = "does" if number == 1 else "do"
        return f"{self.name}: {number:,} of {self.total:,} spans {does} not fit the tokens: {found}"

    def better(self) -> dict[str, tuple[TextOptions, int]]:
        """Return by option another value with which the fewest spans do not fit, and how many those are.

        Options with which no fewer do not fit are left out.
        """
        others = {
            "offsets": [self.text_options._replace(offsets=value) for value in get_args(OffsetUnit)],
            "tokens": [self.text_options._replace(tokens=value) for value in TOKENIZERS],
        }
        own = self._count(self.text_options)
        found = {}
        for option, cuttings in others.items() if own else ():
            counts = {one: own if one == self.text_options else self._count(one) for one in cuttings}
            best = min(counts, key=lambda one: counts[one])
            if counts[best] < own:
                found[option] = (best, counts[best])
        return found

    def _count(self, text_options: TextOptions) -> int:
        return sum(
            len(
                align(
                    text_options.cut(one.text), to_character_offsets(one.text, one.spans, text_options.offsets)
                ).conflicts
            )
            for one in self.texts
            if one.spans
        )

    def advice(self) -> str:
        """Return which options make more spans fit, or leave out those that do not."""
        found = []
        for option, (text_options, left) in self.better().items():
            value = getattr(text_options, option)
            how = f"counted in {COUNTED[value]}" if option == "offsets" else f"with the tokens of {value}"
            rest = "all fit" if not left else f"only {left:,} {'does' if left == 1 else 'do'} not fit"
            found.append(f"{how} {rest}: set data.{option}: {value}")
            if not left:
                return found[-1]
        if any(misfit.misaligned for _, misfit in self.conflicts):
            found.append("correct what does not fit, or set data.misaligned: expand (to whole tokens) or skip")
        if any(not misfit.misaligned for _, misfit in self.conflicts):
            found.append("leave out one of those that overlap, or set data.overlaps: longest")
        return "; ".join(found)


ReportHandler = Callable[[SpanReport], None]


def check_conflicts(report: SpanReport) -> None:
    """Raise InputError for misfits that no option corrects; what is corrected is said on standard error."""
    text_options = report.text_options
    refused = [
        (misfit.misaligned and text_options.misaligned == "error")
        or (not misfit.misaligned and text_options.overlaps == "error")
        for _, misfit in report.conflicts
    ]
    if any(refused):
        raise InputError(f"{report.summary()}; {report.advice()}")
    if report.conflicts:
        how = f"misaligned: {text_options.misaligned}, overlaps: {text_options.overlaps}"
        logger.warning("%s; read with %s", report.summary(), how)
        if (found := report.better()) and "offsets" in found and not found["offsets"][1]:
            logger.warning("%s: %s", report.name, report.advice())
    if report.joined:
        where = f"{len(report.joined):,} {'text' if len(report.joined) == 1 else 'texts'}, first in {report.joined[0]}"
        logger.info("%s: sentences are joined where a span crosses their boundary, in %s", report.name, where)


def label_texts(
    texts: Sequence[AnnotatedText], text_options: TextOptions, name: str, tell: ReportHandler = check_conflicts
) -> list[LabelledText]:
    """Return the tokens of texts with their spans; `tell` is called with what does not fit.

    No sentence ends inside of a span.
    """
    found: list[LabelledText] = []
    report = SpanReport(name, text_options, texts, [], [])
    for place, value, spans in texts:
        text = text_options.cut(value)
        given = to_character_offsets(value, spans or [], text_options.offsets)
        kept, conflicts = align(text, given, text_options.misaligned, text_options.overlaps)
        report.conflicts.extend((place, misfit) for misfit in conflicts)
        joined = merge_sentences(text, kept)
        if len(joined.sentences) < len(text.sentences):
            report.joined.append(place)
        found.append(LabelledText(joined, kept))
    tell(report)
    return found


def read_spans(value: Any, column: str, place: str, type_name: Callable[[int], str]) -> list[TextSpan]:
    """Return the spans in a column: records, lists (start, end, type), a record of lists, or JSON of these.

    Records have start and end, or start_offset and end_offset, and a type under one of `TYPES`; numbers of types have a
    name by `type_name`. Raises InputError with the place for anything else.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = _unpacked(value, column, place)
    if isinstance(value, Mapping) and all(isinstance(one, Sequence) for one in value.values()):
        value = [dict(zip(value, one, strict=False)) for one in zip(*value.values(), strict=False)]
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError(f"{place}: column {column!r} holds {value!r:.40}, no list of spans; change columns")
    found = []
    for i, one in enumerate(value):
        parts = _parts(one)
        if len(parts) == 3 and isinstance(parts[2], int):
            parts[2] = type_name(parts[2])
        if [type(part) for part in parts] != [int, int, str] or not parts[2] or parts[2].split() != [parts[2]]:
            raise InputError(f"{place}: {column}[{i}] must have start, end and label, without spaces; not {one!r:.80}")
        found.append(TextSpan(*parts))
    return found


def _parts(one: Any) -> list[Any]:
    """Start, end and type of a span, as they are given."""
    if not isinstance(one, Mapping):
        return list(one) if isinstance(one, Sequence) and not isinstance(one, str) else []
    parts = [next((one[key] for key in keys if one.get(key) is not None), None) for keys in (STARTS, ENDS, TYPES)]
    if isinstance(parts[2], Sequence) and not isinstance(parts[2], str) and len(parts[2]) == 1:
        parts[2] = parts[2][0]
    return parts


def _unpacked(value: str, column: str, place: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: column {column!r} is no JSON ({error}); write a list of spans") from None
