"""Texts with marked spans -> tokens with labels; spans that do not fit the tokens are counted and named together."""

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from structperc.errors import InputError
from structperc.text import Misfit, TextSpan, TokenizedText, align, in_characters, joined_sentences, tokenized
from structperc.text.alignment import Misaligned, Offsets, Overlaps
from structperc.text.sentences import SENTENCES
from structperc.text.tokenizer import TOKENIZERS

TYPES = ("label", "type", "entity_group", "entity", "tag", "labels")  # how records call the type of a span
STARTS, ENDS = ("start", "start_offset"), ("end", "end_offset")
COUNTED = {"characters": "characters", "utf-16": "UTF-16 code units, as JavaScript does,", "utf-8": "UTF-8 bytes"}
EXAMPLES = 3  # of misfits

logger = logging.getLogger("pytorch_lightning.structperc")


class Cutting(NamedTuple):
    """How texts become tokens and spans their labels.

    Args:
        tokens: a name of `text.tokenizer.TOKENIZERS`.
        sentences: a name of `text.sentences.SENTENCES`.
        misaligned: what becomes of spans that do not begin and end as tokens do, see `text.align`.
        overlaps: what becomes of spans that share a token.
        offsets: what those of spans count.
    """

    tokens: str = "conll"
    sentences: str = "rules"
    misaligned: Misaligned = "error"
    overlaps: Overlaps = "error"
    offsets: Offsets = "characters"

    def check(self) -> None:
        """Raise InputError for an unknown value of an option."""
        known = {
            "tokens": tuple(TOKENIZERS),
            "sentences": tuple(SENTENCES),
            "misaligned": get_args(Misaligned),
            "overlaps": get_args(Overlaps),
            "offsets": get_args(Offsets),
        }
        for option, values in known.items():
            if (value := getattr(self, option)) not in values:
                raise InputError(f"{option} must be one of {', '.join(values)}, not {value!r}")

    def cut(self, text: str) -> TokenizedText:
        """Return a text with its tokens and sentences."""
        return tokenized(text, TOKENIZERS[self.tokens], SENTENCES[self.sentences])


class Annotated(NamedTuple):
    """A text and what is marked in it; None: nothing is said about spans."""

    place: str
    text: str
    spans: list[TextSpan] | None


class Labelled(NamedTuple):
    """A text with its tokens and sentences, and the spans of tokens."""

    text: TokenizedText
    spans: list[tuple[int, int, str]]


class SpanReport(NamedTuple):
    """Spans of a table of annotated texts that do not fit the tokens, and how the table was read."""

    name: str
    cutting: Cutting
    texts: Sequence[Annotated]
    misfits: list[tuple[str, Misfit]]  # with their places
    joined: list[str]  # the places of the texts in which a boundary of sentences was inside of a span

    @property
    def total(self) -> int:
        """The number of all spans."""
        return sum(len(one.spans or []) for one in self.texts)

    def summary(self) -> str:
        """Return how many spans do not fit, by kinds, with a few examples."""
        number = len(self.misfits)
        kinds = Counter(misfit.kind for _, misfit in self.misfits)
        lines: dict[str, list[str]] = {kind: [] for kind in kinds}
        for place, one in self.misfits:
            lines[one.kind].append(f"{Path(place).name}: {one.message}")
        shown = {kind: "; ".join(own[: EXAMPLES if len(kinds) == 1 else 1]) for kind, own in lines.items()}
        counts = [f"{kind} {count:,}, such as {shown[kind]}" for kind, count in kinds.items()]
        found = ", ".join(counts) if len(kinds) > 1 else "".join(shown.values())
        if number > EXAMPLES:
            found += "; structperc check shows more of them"
        does = "does" if number == 1 else "do"
        return f"{self.name}: {number:,} of {self.total:,} spans {does} not fit the tokens: {found}"

    def better(self) -> dict[str, tuple[Cutting, int]]:
        """Return by option another value with which the fewest spans do not fit, and how many those are.

        Options with which no fewer do not fit are left out.
        """
        others = {
            "offsets": [self.cutting._replace(offsets=value) for value in get_args(Offsets)],
            "tokens": [self.cutting._replace(tokens=value) for value in TOKENIZERS],
        }
        own = self._count(self.cutting)
        found = {}
        for option, cuttings in others.items() if own else ():
            counts = {one: own if one == self.cutting else self._count(one) for one in cuttings}
            best = min(counts, key=lambda one: counts[one])
            if counts[best] < own:
                found[option] = (best, counts[best])
        return found

    def _count(self, cutting: Cutting) -> int:
        return sum(
            len(align(cutting.cut(one.text), in_characters(one.text, one.spans, cutting.offsets)).misfits)
            for one in self.texts
            if one.spans
        )

    def advice(self) -> str:
        """Return which options make more spans fit, or leave out those that do not."""
        found = []
        for option, (cutting, left) in self.better().items():
            value = getattr(cutting, option)
            how = f"counted in {COUNTED[value]}" if option == "offsets" else f"with the tokens of {value}"
            rest = "all fit" if not left else f"only {left:,} {'does' if left == 1 else 'do'} not fit"
            found.append(f"{how} {rest}: set data.{option}: {value}")
            if not left:
                return found[-1]
        if any(misfit.misaligned for _, misfit in self.misfits):
            found.append("correct what does not fit, or set data.misaligned: expand (to whole tokens) or skip")
        if any(not misfit.misaligned for _, misfit in self.misfits):
            found.append("leave out one of those that overlap, or set data.overlaps: longest")
        return "; ".join(found)


Tell = Callable[[SpanReport], None]


def refuse_misfits(report: SpanReport) -> None:
    """Raise InputError for misfits that no option corrects; what is corrected is said on standard error."""
    cutting = report.cutting
    refused = [
        (misfit.misaligned and cutting.misaligned == "error") or (not misfit.misaligned and cutting.overlaps == "error")
        for _, misfit in report.misfits
    ]
    if any(refused):
        raise InputError(f"{report.summary()}; {report.advice()}")
    if report.misfits:
        how = f"misaligned: {cutting.misaligned}, overlaps: {cutting.overlaps}"
        logger.warning("%s; read with %s", report.summary(), how)
        if (found := report.better()) and "offsets" in found and not found["offsets"][1]:
            logger.warning("%s: %s", report.name, report.advice())
    if report.joined:
        where = f"{len(report.joined):,} {'text' if len(report.joined) == 1 else 'texts'}, first in {report.joined[0]}"
        logger.info("%s: sentences are joined where a span crosses their boundary, in %s", report.name, where)


def label_texts(texts: Sequence[Annotated], cutting: Cutting, name: str, tell: Tell = refuse_misfits) -> list[Labelled]:
    """Return the tokens of texts with their spans; `tell` is called with what does not fit.

    No sentence ends inside of a span.
    """
    found: list[Labelled] = []
    report = SpanReport(name, cutting, texts, [], [])
    for place, value, spans in texts:
        text = cutting.cut(value)
        given = in_characters(value, spans or [], cutting.offsets)
        kept, misfits = align(text, given, cutting.misaligned, cutting.overlaps)
        report.misfits.extend((place, misfit) for misfit in misfits)
        joined = joined_sentences(text, kept)
        if len(joined.sentences) < len(text.sentences):
            report.joined.append(place)
        found.append(Labelled(joined, kept))
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
