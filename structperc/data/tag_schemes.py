"""Tag schemes: labels of segments, legal label sequences, and segments from labels.

A label is "O", or a prefix and a type joined by a hyphen ("B-PER"); the type may contain hyphens ("B-creative-work") or
be missing ("B"). A `Notation` describes labels of another form ("PER_b"). In the scheme IO labels are types without a
prefix ("PER"; "I" for a missing type), and neighbours of one type are one segment.

`is_allowed_transition` defines legal label sequences, with O before the first and after the last token.
`starts_segment` defines the segments of any label sequence, legal or not: the rule of the conlleval script.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from structperc.errors import InputError
from structperc.spelling import INVISIBLE

Scheme = Literal["IOB1", "IOB2", "IOBES", "BILOU", "BMES", "BMEWO", "IO", "none"]  # none: not segments
OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(5)

# Letter -> meaning of the prefix, in the order in which the labels of a type are listed.
SCHEMES: dict[str, dict[str, int]] = {
    "IOB1": {"I": INSIDE, "B": BEGIN},
    "IOB2": {"B": BEGIN, "I": INSIDE},
    "IOBES": {"B": BEGIN, "I": INSIDE, "E": END, "S": SINGLE},
    "BILOU": {"B": BEGIN, "I": INSIDE, "L": END, "U": SINGLE},
    "BMES": {"B": BEGIN, "M": INSIDE, "E": END, "S": SINGLE},
    "BMEWO": {"B": BEGIN, "M": INSIDE, "E": END, "W": SINGLE},
    "IO": {"": INSIDE},
    "none": {},
}
SEGMENT_SCHEMES = tuple(scheme for scheme in SCHEMES if scheme != "none")
PREFIX_SCHEMES = tuple(scheme for scheme in SEGMENT_SCHEMES if scheme != "IO")
USUAL_FORM, BARE_FORM, USUAL_OUTSIDE = "B-TYPE", "TYPE", "O"
NO_TYPE = "I"  # label of a missing type without a prefix
TAG_SEPARATORS = "-_:/|."  # possible characters between prefix and type
_LETTERS = {letter: prefix for scheme in PREFIX_SCHEMES for letter, prefix in SCHEMES[scheme].items()}
BRACKETS = "brackets"  # labels such as (PER*, *, *) and (LOC) of files; they are read, see `bracket_spans`
_OPEN = r"\([^()*\s]+"
_BRACKETS = re.compile(rf"(?P<opening>({_OPEN})*)\*?(?P<closing>([^()*\s]*\))*)")
_CHAINS = re.compile(r"[-_]|(\([0-9]+\)?|[0-9]+\))(\|(\([0-9]+\)?|[0-9]+\)))*")  # of coreference, such as (12|(3)
_FORM = re.compile(
    rf"(?P<letter>[Bb])(?P<gap>[{TAG_SEPARATORS}])TYPE|TYPE(?P<last_gap>[{TAG_SEPARATORS}])(?P<last>[Bb])"
)


class Tag(NamedTuple):
    """A label of a segment scheme, divided into prefix and type."""

    prefix: int  # OUTSIDE, BEGIN, INSIDE, END or SINGLE
    type: str | None  # None outside


OUTSIDE_TAG = Tag(OUTSIDE, None)


class Span(NamedTuple):
    """A segment: tokens start <= t < end are an entity or chunk of the type."""

    type: str
    start: int
    end: int


class Notation(NamedTuple):
    """A tag scheme and the spelling of its labels.

    Its name consists of the scheme, the form of the labels unless it is "B-TYPE" ("TYPE" for IO), and the outside label
    unless it is "O" (or "o" with lower-case prefixes): "IOB2", "IOBES TYPE-B", "IOB2 b_TYPE O", "IO TYPE 0".

    Args:
        scheme: one of SCHEMES, or "" for the letters of all of them.
        lower: True: prefixes are lower-case letters.
        reversed: True: the type is before the prefix.
        gap: the character between prefix and type.
        outside: the label outside segments.
    """

    scheme: str
    lower: bool = False
    reversed: bool = False
    gap: str = "-"
    outside: str = USUAL_OUTSIDE

    @property
    def letters(self) -> dict[str, int]:
        """The meaning of each prefix."""
        letters = SCHEMES[self.scheme] if self.scheme else _LETTERS
        return {letter.lower(): prefix for letter, prefix in letters.items()} if self.lower else letters

    @property
    def name(self) -> str:
        """The name of the notation in options."""
        usual = USUAL_OUTSIDE.lower() if self.lower else USUAL_OUTSIDE
        parts = [self.scheme, self.label("B", "TYPE"), self.outside]
        usual_form = parts[1] in (USUAL_FORM, BARE_FORM)
        return " ".join(parts if self.outside != usual else parts[:1] if usual_form else parts[:2])

    def label(self, letter: str, kind: str) -> str:
        """Return the label of a letter of the scheme and a type, which may be empty."""
        letter = letter.lower() if self.lower else letter
        if self.scheme == "IO":
            return kind or NO_TYPE
        if not kind:
            return letter
        return f"{kind}{self.gap}{letter}" if self.reversed else f"{letter}{self.gap}{kind}"

    def split(self, label: str) -> tuple[str, str] | None:
        """Return prefix and type of a label in a segment; None if it is not of this notation."""
        if self.scheme == "IO":
            return ("", "" if label == NO_TYPE else label) if label else None
        if self.reversed:
            kind, gap, letter = label.rpartition(self.gap)
        else:
            letter, gap, kind = label.partition(self.gap)
        return (letter, kind) if letter in self.letters and bool(gap) == bool(kind) else None


_ANY = Notation("")


@lru_cache(maxsize=256)
def parse_notation(name: str) -> Notation:
    """Return the notation of a name, see `Notation`. Raises InputError for an unknown one."""
    scheme, *more = name.split(" ")
    check_scheme(scheme)
    if scheme == "IO" and more[:1] in ([], [BARE_FORM]) and len(more) <= 2:
        return Notation(scheme, outside=more[1] if len(more) == 2 else USUAL_OUTSIDE)
    form = _FORM.fullmatch(more[0] if more else USUAL_FORM)
    if form is None or len(more) > 2 or (more and scheme in ("IO", "none")):
        raise InputError(f"unknown notation {name!r}; write a scheme and the form of its labels, such as IOB2 TYPE-B")
    lower = (form["letter"] or form["last"]).islower()
    outside = more[1] if len(more) == 2 else USUAL_OUTSIDE.lower() if lower else USUAL_OUTSIDE
    return Notation(scheme, lower, form["last"] is not None, form["gap"] or form["last_gap"], outside)


def check_labels_option(name: str) -> str:
    """Return the name of the notation of labels in files, which may be "brackets". Raises InputError for others."""
    return name if name == BRACKETS else parse_notation(name).name


@lru_cache(maxsize=4096)
def parse_tag(label: str, scheme: str | None = None) -> Tag:
    """Split a label of a scheme or notation, or of any scheme in the usual form. Raises InputError for other labels."""
    notation = _ANY if scheme is None else parse_notation(scheme)
    if label == notation.outside:
        return OUTSIDE_TAG
    if (parts := notation.split(label)) is None:
        meant = suggest_label(label, scheme or "IOBES")
        advice = f"did you mean {meant!r}?" if meant is not None else f"correct it, or {_scheme_advice(label, scheme)}"
        raise InputError(f"{unknown_label_message(label, scheme or 'IOBES')}; {advice}")
    return Tag(notation.letters[parts[0]], parts[1])


def _scheme_advice(label: str, scheme: str | None) -> str:
    """Return advice for a label of another scheme."""
    if scheme is None:
        return "use labels of a scheme with prefixes, such as IOB2"
    if (wider := wider_scheme(label, scheme)) is not None:
        return f"set scheme {wider}, which also has this prefix"
    if _ANY.split(label) is not None:
        return "set another scheme"
    return "set scheme IO if neighbours with one label are a segment, none if labels are not segments"


def wider_scheme(label: str, scheme: str) -> str | None:
    """Return a scheme with the prefixes of a scheme or notation and that of a label; None if there is none."""
    notation = parse_notation(scheme)
    wider = (notation._replace(scheme=other) for other in PREFIX_SCHEMES)
    prefixes = SCHEMES[notation.scheme].keys()
    return next((form.name for form in wider if form.split(label) and prefixes <= SCHEMES[form.scheme].keys()), None)


def unknown_label_message(label: str, scheme: str) -> str:
    """Return the message that a label is not of a scheme or notation."""
    notation = parse_notation(scheme)
    wanted = ", ".join([notation.outside, *(notation.label(letter, "TYPE") for letter in SCHEMES[notation.scheme])])
    return f"label {label!r} is not of scheme {scheme} ({wanted})"


def suggest_label(label: str, scheme: str) -> str | None:
    """Return the label of a scheme or notation that an invalid one probably means, or None."""
    notation, text = parse_notation(scheme), INVISIBLE.sub("", label).strip()
    if text in ("O", "o", "0"):
        return notation.outside
    for gap in (*TAG_SEPARATORS, "\u2010", "\u2011", "\u2013", "\u2014", "\u2212"):
        for letter, kind in (text.partition(gap)[::2], text.rpartition(gap)[::-2]):
            if kind and letter.strip().upper() in SCHEMES[notation.scheme]:
                return notation.label(letter.strip().upper(), kind)
    return None


def label_type(label: str) -> str | None:
    """Return the type in a label of any scheme, None for "O"; labels without a hyphen are their own type."""
    return None if label == "O" else label.partition("-")[2] or label


def make_label(letter: str, kind: str) -> str:
    """Return the label of a letter and a type, which may be empty; the letter of the scheme IO is empty."""
    return "-".join(filter(None, (letter, kind))) or NO_TYPE


def is_allowed_transition(previous: Tag, tag: Tag, scheme: str) -> bool:
    """Return True if the scheme (or that of a notation) allows a tag after the previous one.

    OUTSIDE_TAG represents the beginning and the end of a sentence.
    """
    same = previous.type == tag.type
    scheme = scheme if scheme in SCHEMES else parse_notation(scheme).scheme
    if scheme in ("IO", "none"):
        return True
    if scheme == "IOB1":  # B only where I would continue the segment before
        return tag.prefix != BEGIN or same
    if scheme == "IOB2":
        return tag.prefix != INSIDE or same
    if previous.prefix in (BEGIN, INSIDE):
        return tag.prefix in (INSIDE, END) and same
    return tag.prefix not in (INSIDE, END)


def starts_segment(previous: Tag, tag: Tag) -> bool:
    """Return True if a tag begins a segment after the previous one, legal or not, by the rule of conlleval.

    Segments begin at B and S (U), after O, after E (L) and S (U), and where the type changes.
    """
    if tag.type is None:
        return False
    return tag.prefix in (BEGIN, SINGLE) or previous.prefix in (END, SINGLE) or previous.type != tag.type


def check_scheme(scheme: str) -> None:
    """Raise InputError for an unknown scheme."""
    if scheme not in SCHEMES:
        raise InputError(f"unknown label scheme {scheme!r}; choose one of {', '.join(SCHEMES)}")


def check_bare(labels: Iterable[str]) -> None:
    """Raise InputError if all labels have prefixes, unlike those of scheme IO."""
    names = [label for label in labels if label != USUAL_OUTSIDE]
    prefixed = all(_ANY.split(label) is not None for label in names)
    if prefixed and (begin := next((label for label in names if label.startswith("B-")), None)) is not None:
        raise InputError(f"label {begin!r} has a prefix, but those of scheme IO (O, TYPE) have none; set scheme IOB2")


# -- segments -------------------------------------------------------------------------------------------------


def spans(labels: Sequence[str], scheme: str | None = None) -> list[Span]:
    """Return the segments of a label sequence of a scheme, or of any scheme in the usual form.

    A segment begins at B and S (U), after O, after E (L) and S (U), and where the type changes, in legal and illegal
    sequences. Differs from conlleval, which has no rule for S and for B after E and joins such adjacent segments.
    `labels`: the labels of a sentence. `scheme`: tag scheme or notation, or "brackets"; None: any scheme with labels
    such as B-PER. Returns the segments in order.

    Raises:
        InputError: a label that is not of the scheme.

    Example:
        >>> spans(["B-PER", "I-PER", "O", "I-LOC"])
        [Span(type='PER', start=0, end=2), Span(type='LOC', start=3, end=4)]
    """
    if scheme == BRACKETS:
        return bracket_spans(labels)[0]
    segments: list[Span] = []
    previous = OUTSIDE_TAG
    for t, tag in enumerate(parse_tag(label, scheme) for label in labels):
        if starts_segment(previous, tag):
            segments.append(Span(tag.type or "", t, t + 1))
        elif tag.type is not None:
            segments[-1] = segments[-1]._replace(end=t + 1)
        previous = tag
    return segments


def are_brackets(labels: Iterable[str]) -> bool:
    """Return True if all labels are brackets such as (PER*, *, *) and (LOC), as in CoNLL-2005 and CoNLL-2012."""
    names = list(labels)
    marks = [match for name in names if name and (match := _BRACKETS.fullmatch(name))]
    return len(marks) == len(names) and any(match["opening"] for match in marks) and any("*" in name for name in names)


def are_chains(labels: Iterable[str]) -> bool:
    """Return True if all labels are of coreference chains, such as (12, 12), (3|4) and -."""
    names = list(labels)
    return all(map(_CHAINS.fullmatch, names)) and any(")" in name or "(" in name for name in names)


def bracket_types(label: str) -> list[str]:
    """Return the types of the segments that begin at a label with brackets."""
    match = _BRACKETS.fullmatch(label)
    return [opening[1:] for opening in re.findall(_OPEN, match["opening"])] if match else []


def bracket_spans(
    labels: Sequence[str], where: Callable[[int], str] = lambda t: f"token {t + 1}"
) -> tuple[list[Span], int]:
    """Return the outermost segments of a sentence with brackets, and the number of those inside them.

    `labels`: the labels of a sentence. `where`: returns the beginning of an error message from the index of a token.
    Raises InputError: another label, or a bracket without its counterpart.
    """
    outermost, inner = [], 0
    open_ones: list[tuple[str, int]] = []
    for t, label in enumerate(labels):
        if not label or (parts := _BRACKETS.fullmatch(label)) is None:
            raise InputError(f"{where(t)}: label {label!r} is not of brackets ((TYPE*, *, *), (TYPE)); correct it")
        open_ones += [(kind, t) for kind in bracket_types(label)]
        for closing in parts["closing"].split(")")[:-1]:
            if not open_ones or closing not in ("", open_ones[-1][0]):
                raise InputError(f"{where(t)}: {label!r} closes a bracket that is not open in its sentence; correct it")
            kind, start = open_ones.pop()
            if open_ones:
                inner += 1
            else:
                outermost.append(Span(kind, start, t + 1))
    if open_ones:
        t = open_ones[-1][1]
        raise InputError(f"{where(t)}: {labels[t]!r} opens a bracket that its sentence does not close; correct it")
    return outermost, inner


def convert(labels: Sequence[str], source: str, target: str) -> list[str]:
    """Convert labels to the target scheme or notation; "none" can only be converted to itself.

    In IO, adjacent segments of the same type become one. Labels can be converted from brackets, not to them.
    """
    if source == BRACKETS:
        return convert(encode_spans(spans(labels, source), len(labels), "IOB2"), "IOB2", target)
    schemes = parse_notation(source).scheme, parse_notation(target).scheme
    if schemes == ("none", "none"):
        return list(labels)
    if "none" in schemes:
        raise InputError(f"cannot convert {source} to {target}: scheme 'none' has no segments")
    return encode_spans(spans(labels, source), len(labels), target)


def to_iob2(labels: Sequence[str]) -> list[str]:
    """Convert labels of any scheme in the usual form to IOB2. Raises InputError for other labels."""
    return encode_spans(spans(labels), len(labels), "IOB2")


def first_violation(labels: Sequence[str], scheme: str) -> int | None:
    """Return the index of the first label that is illegal after its predecessor or at the end; None if there is none.

    Raises InputError for a label that is not of the scheme ("S-PER" in IOB2).
    """
    if parse_notation(scheme).scheme == "none":
        return None
    previous = OUTSIDE_TAG
    for t, label in enumerate(labels):
        tag = parse_tag(label, scheme)
        if not is_allowed_transition(previous, tag, scheme):
            return t
        previous = tag
    return None if is_allowed_transition(previous, OUTSIDE_TAG, scheme) else len(labels) - 1


def repair(labels: Sequence[str], scheme: str) -> tuple[list[str], int]:
    """Return legal labels of the same segments (see `spans`), and the number of changed labels."""
    if first_violation(labels, scheme) is None:
        return list(labels), 0
    legal = convert(labels, scheme, scheme)
    return legal, sum(a != b for a, b in zip(labels, legal, strict=True))


def rename(labels: Sequence[str], scheme: str, names: Mapping[str, str]) -> list[str]:
    """Return labels of the same segments with renamed types; adjacent segments are not merged, except in IO.

    Raises InputError for scheme "none".
    """
    if scheme == "none":
        raise InputError("scheme 'none' has no segments whose types could be renamed")
    renamed = (span._replace(type=names.get(span.type, span.type)) for span in spans(labels, scheme))
    return encode_spans(renamed, len(labels), scheme)


def encode_spans(segments: Iterable[Span], length: int, scheme: str) -> list[str]:
    """Return the labels of tokens for segments, in their order, that do not overlap."""
    notation = parse_notation(scheme)
    letter = {prefix: letter for letter, prefix in SCHEMES[notation.scheme].items()}
    labels = [notation.outside] * length
    previous: Span | None = None
    for span in segments:
        first, last = span.start, span.end - 1
        labels[first : span.end] = [notation.label(letter[INSIDE], span.type)] * (span.end - first)
        touches = previous is not None and (previous.type, previous.end) == (span.type, first)
        if BEGIN in letter and (notation.scheme != "IOB1" or touches):
            labels[first] = notation.label(letter[BEGIN], span.type)
        if END in letter:
            labels[last] = notation.label(letter[SINGLE if first == last else END], span.type)
        previous = span
    return labels
