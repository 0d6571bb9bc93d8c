"""Tag schemes: what a label says about a segment, and which label may follow which; the only place that knows "B-".

A label of a segment scheme is "O", or a prefix and a type joined by a hyphen ("B-PER"); the type may hold
further hyphens ("B-creative-work") or be missing ("B"). Two relations describe all the rest. `follows` says what a
scheme allows: a labelling is legal when each label may follow its predecessor, with an outside label before the first
and after the last token. `opens` says how any labelling is read: where a segment begins.
"""

from functools import lru_cache
from typing import Literal, NamedTuple

from structperc.errors import InputError

Scheme = Literal["IOB1", "IOB2", "IOBES", "BILOU", "none"]  # none: labels that are no segments
OUTSIDE, BEGIN, INSIDE, END, SINGLE = range(5)

# Letter -> meaning of its prefix, in the order in which the labels of a type are listed.
SCHEMES: dict[str, dict[str, int]] = {
    "IOB1": {"I": INSIDE, "B": BEGIN},
    "IOB2": {"B": BEGIN, "I": INSIDE},
    "IOBES": {"B": BEGIN, "I": INSIDE, "E": END, "S": SINGLE},
    "BILOU": {"B": BEGIN, "I": INSIDE, "L": END, "U": SINGLE},
    "none": {},
}
SEGMENT_SCHEMES = tuple(scheme for scheme in SCHEMES if scheme != "none")
_LETTERS = {letter: prefix for letters in SCHEMES.values() for letter, prefix in letters.items()}


class Tag(NamedTuple):
    """A label of a segment scheme, divided into prefix and type."""

    prefix: int  # OUTSIDE, BEGIN, INSIDE, END or SINGLE
    type: str | None  # None outside


NO_TAG = Tag(OUTSIDE, None)


@lru_cache(maxsize=4096)
def read_tag(label: str, scheme: str | None = None) -> Tag:
    """Divide a label at its first hyphen; without a scheme, letters of any scheme are understood."""
    letters = _LETTERS if scheme is None else SCHEMES[scheme]
    if label == "O":
        return NO_TAG
    letter, hyphen, kind = label.partition("-")
    if letter not in letters or (hyphen and not kind):
        wanted = ", ".join(["O", *(f"{known}-TYPE" for known in letters)])
        raise InputError(f"label {label!r} is not of scheme {scheme or 'IOBES'} ({wanted}); set the scheme")
    return Tag(letters[letter], kind)


def named_type(label: str) -> str | None:
    """Return the type that a label of any scheme names, None for "O"; labels without a hyphen name themselves."""
    return None if label == "O" else label.partition("-")[2] or label


def follows(previous: Tag, tag: Tag, scheme: str) -> bool:
    """Return whether the scheme allows a tag after the previous one.

    NO_TAG stands before the first and after the last.
    """
    same = previous.type == tag.type
    if scheme == "none":
        return True
    if scheme == "IOB1":  # B only where I would continue the segment before
        return tag.prefix != BEGIN or same
    if scheme == "IOB2":
        return tag.prefix != INSIDE or same
    if previous.prefix in (BEGIN, INSIDE):
        return tag.prefix in (INSIDE, END) and same
    return tag.prefix not in (INSIDE, END)


def opens(previous: Tag, tag: Tag) -> bool:
    """Return whether a tag begins a segment after the previous one, allowed or not, by the rule of conlleval.

    It does at B and at S (U), after O, after E (L) and S (U), and wherever the type changes.
    """
    if tag.type is None:
        return False
    return tag.prefix in (BEGIN, SINGLE) or previous.prefix in (END, SINGLE) or previous.type != tag.type


def label_of(letter: str, kind: str) -> str:
    """Return the label of a letter and a type, which may be empty."""
    return f"{letter}-{kind}" if kind else letter


def check_scheme(scheme: str) -> None:
    """Raise InputError for a name that is none of SCHEMES."""
    if scheme not in SCHEMES:
        raise InputError(f"unknown label scheme {scheme!r}; choose one of {', '.join(SCHEMES)}")
