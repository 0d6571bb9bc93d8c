"""Annotated texts: spans in the formats of annotation tools, aligned with tokens; conflicts are reported together."""

import json
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, get_args

from structperc.data.corpus import DroppedSegment
from structperc.errors import InputError
from structperc.text import tokenize
from structperc.text.alignment import (
    LineEnds,
    Misaligned,
    OffsetUnit,
    Overlaps,
    SpanConflict,
    TextSpan,
    TokenizedText,
    align,
    merge_sentences,
    to_character_offsets,
)
from structperc.text.quoted_mentions import find_quotes
from structperc.text.tokenizer import SENTENCES, TOKENIZERS, strip_invisible

TableRow = tuple[str, Mapping[str, Any]]  # location for messages, and values by column
TYPES = ("label", "type", "entity_group", "entity", "tag", "labels")  # keys of the type of a span
STARTS, ENDS = ("start", "start_offset"), ("end", "end_offset")
QUOTE = "text"  # key of the text of a span
QUOTES = (QUOTE, "mention", "quote", "name", "word", "span", "value", "entity")  # of one without offsets
UNPLACED = -1  # offsets of such a span
UNITS = {"characters": "characters", "utf-16": "UTF-16 code units, as in JavaScript,", "utf-8": "UTF-8 bytes"}
LINE_ENDS: tuple[LineEnds | None, ...] = get_args(LineEnds)
EXAMPLES = 3  # conflicts in a message
TASK_SPANS = "annotations"  # column of the spans of a Label Studio task
ANSWERS = ("accept", "reject", "ignore")  # in Prodigy
_TYPE = re.compile(r"\S(?:[\S ]*\S)?")

logger = logging.getLogger("pytorch_lightning.structperc")


class TextOptions(NamedTuple):
    """Options for turning texts into tokens and spans into labels.

    Args:
        tokens: a name of `tokenizer.TOKENIZERS`.
        sentences: a name of `tokenizer.SENTENCES`.
        misaligned: treatment of spans whose edges are not token edges, see `text.align`.
        overlaps: treatment of spans that share a token.
        offsets: unit of the offsets of spans.
    """

    tokens: str = "conll"
    sentences: str = "rules"
    misaligned: Misaligned = "refuse"
    overlaps: Overlaps = "refuse"
    offsets: OffsetUnit = "characters"

    def check(self) -> None:
        """Raise InputError for an unknown value."""
        for option, value in self._asdict().items():
            if value not in choices(option):
                raise InputError(f"{option} must be one of {', '.join(choices(option))}, not {value!r}")

    def tokenize(self, text: str) -> TokenizedText:
        """Split a text into tokens and sentences."""
        return tokenize(text, TOKENIZERS[self.tokens], SENTENCES[self.sentences])


def choices(option: str) -> Sequence[str]:
    """Return the values of an option of `TextOptions`."""
    values = {
        "tokens": tuple(TOKENIZERS),
        "sentences": tuple(SENTENCES),
        "misaligned": get_args(Misaligned),
        "overlaps": get_args(Overlaps),
        "offsets": get_args(OffsetUnit),
    }
    return values[option]


class AnnotatedText(NamedTuple):
    """A text and its spans; None: not annotated."""

    place: str
    text: str
    spans: list[TextSpan] | None


class AlignedText(NamedTuple):
    """A text with its tokens and sentences, spans of tokens, and the spans of characters that they are made of."""

    text: TokenizedText
    spans: list[tuple[int, int, str]]
    given: list[TextSpan]


class SpanReport(NamedTuple):
    """Conflicts between spans and tokens in a table of annotated texts."""

    name: str
    text_options: TextOptions
    texts: Sequence[AnnotatedText]
    conflicts: list[tuple[str, SpanConflict]]  # with their locations
    merged: list[str]  # locations of texts with a sentence boundary inside a span
    remark: str = ""  # on offsets that count in another way than the options; empty: they do not
    missing: Sequence[tuple[str, SpanConflict]] = ()  # quoted spans that are not in their text, with their locations

    @property
    def total(self) -> int:
        """Number of all spans."""
        return sum(len(text.spans or []) for text in self.texts)

    def summary(self) -> str:
        """Return the number of conflicts of each kind with examples."""
        kinds = Counter(conflict.kind for _, conflict in self.conflicts)
        examples: dict[str, list[str]] = {kind: [] for kind in kinds}
        for place, example in self.conflicts:
            examples[example.kind].append(f"{Path(place).name}: {example.message}")
        shown = {kind: "; ".join(texts[: EXAMPLES if len(kinds) == 1 else 1]) for kind, texts in examples.items()}
        counts = [f"{kind} {count:,}, such as {shown[kind]}" for kind, count in kinds.items()]
        conflicts = ", ".join(counts) if len(kinds) > 1 else "".join(shown.values())
        more = "; structperc check shows more of them" if len(self.conflicts) > EXAMPLES else ""
        return f"{self.name}: {len(self.conflicts):,} of {self.total:,} spans do not fit the tokens: {conflicts}{more}"

    def dropped(self) -> list[DroppedSegment]:
        """Return the spans with a type that the result lacks."""
        text = {annotated.place: annotated.text for annotated in self.texts}
        lost = [
            (place, conflict.span)
            for place, conflict in (*self.conflicts, *self.missing)
            if conflict.dropped and conflict.span
        ]
        return [
            DroppedSegment(place, span.type, span.quote or text[place][max(span.start, 0) : max(span.end, 0)])
            for place, span in lost
            if span.type
        ]

    def better_options(self) -> dict[str, tuple[TextOptions, int]]:
        """Return, by option, the options with the fewest conflicts and their number, if fewer than now."""
        given = self.text_options
        others = {
            "offsets": [given._replace(offsets=value) for value in get_args(OffsetUnit)],
            "tokens": [given._replace(tokens=value) for value in TOKENIZERS],
        }
        conflicts = self._count(given)
        better = {}
        for option, candidates in others.items() if conflicts else ():
            counts = {other: conflicts if other == given else self._count(other) for other in candidates}
            best = min(counts, key=lambda one: counts[one])
            if counts[best] < conflicts:
                better[option] = (best, counts[best])
        return better

    def _count(self, options: TextOptions) -> int:
        texts = to_characters(self.texts, options.offsets).texts
        return sum(len(align(options.tokenize(text.text), text.spans).conflicts) for text in texts if text.spans)

    def log_remarks(self) -> None:
        """Log another way of counting offsets, and each quoted span that is not in its text."""
        if self.remark:
            logger.warning("%s: %s", self.name, self.remark)
        for place, conflict in self.missing:
            logger.warning("%s: %s", place, conflict.message)

    def advice(self, option: str = "data.{}:") -> str:
        """Return a message on how to resolve the conflicts; `option` is the form of options, with their name as {}."""
        misaligned, overlaps = option.format("misaligned"), option.format("overlaps")
        proposals = []
        for name, (options, left) in self.better_options().items():
            value = getattr(options, name)
            unit = f"counted in {UNITS[value]}" if name == "offsets" else f"with the tokens of {value}"
            rest = f"only {left:,} do not fit" if left else "all fit"
            proposals.append(f"{unit} {rest}: set {option.format(name)} {value}")
            if not left:
                return proposals[-1]
        if any(conflict.misaligned for _, conflict in self.conflicts):
            proposals.append(f"correct these spans, or set {misaligned} expand (to whole tokens) or drop")
        if any(not conflict.misaligned for _, conflict in self.conflicts):
            proposals.append(f"remove one of the overlapping spans, or set {overlaps} longest or first")
        return "; ".join(proposals)


ReportHandler = Callable[[SpanReport], None]


def check_conflicts(report: SpanReport, option: str = "data.{}:") -> None:
    """Raise InputError for conflicts that the options do not resolve; log the others. See `SpanReport.advice`."""
    options = report.text_options
    report.log_remarks()
    unresolved = [
        (options.misaligned if conflict.misaligned else options.overlaps) == "refuse"
        for _, conflict in report.conflicts
    ]
    if any(unresolved):
        raise InputError(f"{report.summary()}; {report.advice(option)}")
    if report.conflicts:
        treatment = f"misaligned: {options.misaligned}, overlaps: {options.overlaps}"
        logger.warning("%s; resolved with %s", report.summary(), treatment)
        if (better := report.better_options()) and "offsets" in better and not better["offsets"][1]:
            logger.warning("%s: %s", report.name, report.advice(option))
    if report.merged:
        message = "%s: merged sentences whose boundary is inside a span, in %d texts, the first is %s"
        logger.info(message, report.name, len(report.merged), report.merged[0])


def align_texts(
    texts: Sequence[AnnotatedText], options: TextOptions, name: str, on_report: ReportHandler = check_conflicts
) -> list[AlignedText]:
    """Tokenize texts and align their spans, merging sentences where needed. `on_report` handles conflicts.

    Raises InputError for spans whose text is not at their offsets, see `to_characters`.
    """
    aligned: list[AlignedText] = []
    placed = to_characters(texts, options.offsets)
    report = SpanReport(name, options, texts, [], [], placed.remark, placed.missing)
    for place, value, spans in placed.texts:
        text = options.tokenize(value)
        kept, conflicts = align(text, spans or [], options.misaligned, options.overlaps)
        report.conflicts.extend((place, conflict) for conflict in conflicts)
        merged = merge_sentences(text, kept)
        if len(merged.sentences) < len(text.sentences):
            report.merged.append(place)
        aligned.append(AlignedText(merged, kept, spans or []))
    on_report(report)
    return aligned


# -- texts of spans -------------------------------------------------------------------------------------------


class PlacedTexts(NamedTuple):
    """Texts whose spans have character offsets.

    `remark` and `missing` are those of `SpanReport`.
    """

    texts: list[AnnotatedText]
    remark: str
    missing: list[tuple[str, SpanConflict]]


def to_characters(texts: Sequence[AnnotatedText], unit: OffsetUnit) -> PlacedTexts:
    """Convert offsets in a unit to characters, and find spans without offsets by their texts, see `find_quotes`.

    The text of a span, if known, is compared with its offsets, but for white space. If they disagree, but agree for
    all spans with another unit or other line ends, these count. Raises InputError with the location and both texts
    if there are none.
    """
    quoted = [given for given in texts if any(span.quote for span in given.spans or ())]
    units = (unit, *(offset_unit for offset_unit in get_args(OffsetUnit) if offset_unit != unit))
    ways = [(offset_unit, ends) for ends, offset_unit in product((None, *LINE_ENDS), units)]
    way = next((way for way in ways if not any(True for given in quoted for _ in _disagreements(given, *way))), None)
    if way is None:
        wrong = [(given.place, *pair) for given in quoted for pair in _disagreements(given, unit, None)]
        place, span, covered = wrong[0]
        total = sum(bool(span.quote) for given in quoted for span in _with_offsets(given.spans))
        raise InputError(
            f"{place}: span {span.start}..{span.end} is {covered!r:.60} in the text, but its own text is "
            f"{span.quote!r:.60}; correct its offsets or its text ({len(wrong):,} of {total:,} spans disagree)"
        )
    result = PlacedTexts([], "" if way == ways[0] else _describe_way(*way), [])
    for place, text, spans in texts:
        marks, missing = _place_quotes(text, to_character_offsets(text, _with_offsets(spans), *way), spans or [])
        result.missing.extend((place, conflict) for conflict in missing)
        result.texts.append(AnnotatedText(place, text, spans and marks))
    return result


def _with_offsets(spans: Iterable[TextSpan] | None) -> list[TextSpan]:
    return [span for span in spans or () if span.start != UNPLACED or not span.quote]


def _place_quotes(
    text: str, placed: Sequence[TextSpan], spans: Sequence[TextSpan]
) -> tuple[list[TextSpan], list[SpanConflict]]:
    """Return the placed spans and those of `spans` without offsets that are in the text, and the others."""
    located, missing = [span._replace(quote=None) for span in placed], []
    unplaced = [span for span in spans if span.start == UNPLACED and span.quote]
    for span, place in zip(unplaced, find_quotes(text, [str(span.quote) for span in unplaced]), strict=True):
        if place is not None:
            located.append(span._replace(start=place[0], end=place[1], quote=None))
            continue
        often = " so often" if any(other.quote == span.quote for other in unplaced if other is not span) else ""
        message = f"{span.quote!r:.60} ({span.type}) is not in the text{often}; left out"
        missing.append(SpanConflict("not in the text", message, misaligned=True, dropped=True, span=span))
    return located, missing


def _describe_way(unit: OffsetUnit, line_ends: LineEnds | None) -> str:
    how = [f"in {UNITS[unit].rstrip(',')}"]
    if line_ends is not None:
        how.append(f"with line ends {line_ends!r}")
    return f"the offsets of spans are read as counted {', '.join(how)}, since their texts are there"


def _disagreements(
    given: AnnotatedText, unit: OffsetUnit, line_ends: LineEnds | None
) -> Iterator[tuple[TextSpan, str]]:
    """Yield the spans of a text whose quote is not at their offsets, and what is there."""
    spans = [span for span in _with_offsets(given.spans) if span.quote]
    for span, converted in zip(spans, to_character_offsets(given.text, spans, unit, line_ends), strict=True):
        covered = given.text[max(converted.start, 0) : max(converted.end, 0)]
        if not _agree(str(span.quote), covered, span.continuous):
            yield span, covered


def _agree(quote: str, found: str, continuous: bool) -> bool:
    """Return True if texts differ in white space and invisible characters only, or one lacks words inside the other."""
    if not continuous:
        words, whole = [_visible(word) for word in quote.split()], _visible(found)
        rest = iter(whole)
        ordered = all(char in rest for char in "".join(words))
        return ordered and whole.startswith(words[0]) and whole.endswith(words[-1])
    plain = [_visible(text) for text in (quote, quote.replace("\\n", ""), found)]
    return plain[2] in plain[:2]  # Label Studio writes line ends as a backslash and n


def _visible(text: str) -> str:
    return re.sub(r"\s+", "", strip_invisible(unicodedata.normalize("NFD", text)))


def read_spans(
    value: Any, column: str, place: str, type_name: Callable[[int], str], quoted: bool = False
) -> list[TextSpan]:
    """Return the spans in a column: records, lists (start, end, type), a record of lists, or JSON of these.

    Records have start and end, or start_offset and end_offset, and a type under one of `TYPES`, and may have their text
    and a confidence; `continuous` is false for spans of several parts. Types that are numbers are named by `type_name`;
    an empty one is that of a span which an annotator left without a type, see `align`. If `quoted`, records with a text
    and a type need no offsets, as language models write them; theirs are `UNPLACED`.
    Raises InputError with the location for anything else.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{place}: column {column!r} is not valid JSON ({error})") from None
    if isinstance(value, Mapping) and all(isinstance(cells, Sequence) for cells in value.values()):
        value = [dict(zip(value, cells, strict=False)) for cells in zip(*value.values(), strict=False)]
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError(f"{place}: {column} is {value!r:.40}; give a list of spans: [start, end, label]")
    spans = []
    for i, record in ((i, part) for i, given in enumerate(value) for part in _by_type(given)):
        parts = _span_parts(record)
        quote = _quote(record) if quoted and parts[:2] == [None, None] else None
        if quote is not None:
            parts[:2] = [UNPLACED, UNPLACED]
        if len(parts) == 3 and isinstance(parts[2], int):
            parts[2] = type_name(parts[2])
        if [type(part) for part in parts] != [int, int, str] or not (parts[2] == "" or _TYPE.fullmatch(parts[2])):
            advice = "must have start, end and label, without tabs, line ends or spaces around it"
            raise InputError(f"{place}: {column}[{i}] {advice}; not {record!r:.80}")
        further = record if isinstance(record, Mapping) else {}
        confidence = further.get("confidence")
        score = confidence if isinstance(confidence, float | int) else None
        continuous = further.get("continuous") is not False
        text = quote or further.get(QUOTE)
        quote = text if isinstance(text, str) and text.strip() else None
        spans.append(TextSpan(*parts)._replace(confidence=score, continuous=continuous, quote=quote))
    return spans


def _quote(one: Any) -> str | None:
    """Return the text of a span without offsets; None without one."""
    kind = next((key for key in TYPES if isinstance(one, Mapping) and one.get(key) is not None), "")
    texts = (one.get(key) for key in QUOTES if key != kind) if isinstance(one, Mapping) else ()
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def _by_type(one: Any) -> list[Any]:
    """Return a span for each type of a region of Label Studio."""
    types = one.get("labels") if isinstance(one, Mapping) else None
    return [{**one, "labels": kind} for kind in types] if isinstance(types, list) and len(types) > 1 else [one]


def _span_parts(one: Any) -> list[Any]:
    """Return start, end and type of a span."""
    if not isinstance(one, Mapping):
        return list(one) if isinstance(one, Sequence) and not isinstance(one, str) else []
    parts = [next((one[key] for key in keys if one.get(key) is not None), None) for keys in (STARTS, ENDS, TYPES)]
    if isinstance(parts[2], Sequence) and not isinstance(parts[2], str) and len(parts[2]) == 1:
        parts[2] = parts[2][0]
    return parts


# -- annotation tools -----------------------------------------------------------------------------------------


def detect_tool(row: Mapping[str, Any]) -> str | None:
    """Return the annotation tool that exported a row, by the names of its fields."""
    if (isinstance(row.get("data"), Mapping) and isinstance(row.get(TASK_SPANS), list)) or _is_minimal(row):
        return "Label Studio"
    if row.get("answer") in ANSWERS or {"_input_hash", "_task_hash"} & row.keys():
        return "Prodigy"
    if "text" in row and any(_is_doccano(row.get(name)) for name in ("label", "labels", "entities")):
        return "doccano"
    return None


def convert_exports(rows: Iterable[TableRow], name: str) -> Iterator[TableRow]:
    """Yield the rows of a file with a column of texts and one of spans; rows of other files are unchanged.

    A task of Label Studio (JSON) becomes a row with the fields of its `data` and a column `annotations` of spans. Only
    accepted texts of Prodigy are kept, with an empty list if there are no spans. Of several annotations of a task the
    one that is marked as ground truth counts. Dropped rows are counted in a warning. Raises InputError for tasks with
    several annotations without such a mark, for tasks without the field if others have it, and for spans without
    character offsets.
    """
    given = list(rows)
    regions: dict[str, list[Any]] = {  # the field of the spans is missing in tasks of JSON-MIN without spans
        name: [] for _, row in given if _is_minimal(row) for name, value in row.items() if _has_regions(value)
    }
    dropped = 0
    tasks = sum(isinstance(row.get("data"), Mapping) and TASK_SPANS in row for _, row in given)
    for place, row in given:
        if tasks and isinstance(row.get("data"), Mapping) and TASK_SPANS not in row:
            advice = "annotate it in Label Studio, or remove it"
            raise InputError(f"{place}: this task has no field {TASK_SPANS!r}, unlike other tasks; {advice}")
        kept: Mapping[str, Any] | None = row
        tool = detect_tool(row)
        if tool == "Label Studio":
            kept = {**regions, **row} if _is_minimal(row) else _task(row, place)
        elif tool == "Prodigy":
            fields = {name: value for name, value in row.items() if name != "tokens" or value}  # an empty list is none
            kept = {"spans": [], **fields, **_quote_tokens(row)} if row.get("answer", "accept") == "accept" else None
        if kept is None:
            dropped += 1
        else:
            yield place, kept
    if dropped:
        logger.warning("%s: dropped rows without accepted annotation: %d", name, dropped)


def _quote_tokens(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spans of a row of Prodigy with the texts of their tokens, {} if it has none."""
    tokens, spans = row.get("tokens"), row.get("spans")
    if not isinstance(tokens, list) or not isinstance(spans, list):
        return {}
    texts = {token.get("id"): str(token.get("text", "")) for token in tokens if isinstance(token, Mapping)}
    records = []
    for span in spans:
        first, last = (span.get(name) for name in ("token_start", "token_end")) if isinstance(span, Mapping) else (0, 0)
        numbers = list(range(first, last + 1)) if isinstance(first, int) and isinstance(last, int) else []
        if isinstance(span, Mapping) and QUOTE not in span and numbers and texts.keys() >= set(numbers):
            span = {**span, QUOTE: "".join(texts[number] for number in numbers)}
        records.append(span)
    return {"spans": records}


def _is_minimal(row: Mapping[str, Any]) -> bool:
    """Return True for a row of JSON-MIN, the short form of Label Studio."""
    return "annotation_id" in row and "annotator" in row


def _has_regions(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(region, Mapping) and "start" in region for region in value)
    )


def _task(row: Mapping[str, Any], place: str) -> Mapping[str, Any] | None:
    """Return text and spans of a task; None if it is not annotated."""
    given = [
        annotation
        for annotation in row[TASK_SPANS]
        if isinstance(annotation, Mapping) and not annotation.get("was_cancelled")
    ]
    if len(given) > 1:
        truths = [annotation for annotation in given if annotation.get("ground_truth")]
        if len(truths) != 1:
            reason = f"this task has {len(given)} annotations, {len(truths)} of them ground truth"
            raise InputError(f"{place}: {reason}; mark one as ground truth in Label Studio, or keep one")
        given = truths
    if not given:
        return None
    marks = [region for region in given[0].get("result") or [] if "labels" in str(region.get("type", ""))]
    if len({region.get("to_name") for region in marks}) > 1:
        raise InputError(f"{place}: the spans of this task are in several texts; write a row for each of them")
    spans = []
    for value in (region.get("value") for region in marks):
        if not isinstance(value, Mapping) or not all(isinstance(value.get(key), int) for key in ("start", "end")):
            raise InputError(f"{place}: expected a span with character offsets, got {value!r:.80}; export plain text")
        labels = next((names for key, names in value.items() if key.endswith("labels")), None)
        quote = {QUOTE: value[QUOTE]} if QUOTE in value else {}
        spans.append({"start": value["start"], "end": value["end"], "labels": labels or "", **quote})
    return {**row["data"], TASK_SPANS: spans}


def _is_doccano(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else None
    if isinstance(first, Mapping):
        return "start_offset" in first
    return isinstance(first, list) and len(first) == 3 and isinstance(first[2], str)
