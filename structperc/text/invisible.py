"""Characters that show nothing by themselves: they belong to the visible character beside them.

These are marks that combine with the character before them (accents, vowel signs, variation selectors), characters of
format (zero-width spaces and joiners, direction marks, soft hyphens, byte-order marks), control characters and the
skin tones of emoji. No token consists of them alone.
"""

import re
import unicodedata
from typing import NamedTuple

_CATEGORIES = ("Mn", "Mc", "Me", "Cf", "Cc")
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters by their category
_SKIN_TONES = "\U0001f3fb-\U0001f3ff"
_EMOJI = "\u2190-\u2bff\U0001f000-\U0001faff"  # what a joiner makes one picture of
_PLAIN_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x7f]")


class Condensed(NamedTuple):
    """A text without its invisible characters, and where its V characters stand in that text.

    A character extends from its start to its end, which include the invisible characters that belong to it: those
    after it, and before the first one after white space those between.
    """

    text: str
    starts: list[int]  # V
    ends: list[int]  # V


def invisible_characters(text: str) -> str:
    """Return the distinct invisible characters of a text, in their order by number.

    Example:
        >>> invisible_characters("e\\u0301 \\u200b!")
        '\\u0301\\u200b'
    """
    if text.isascii() and not _PLAIN_CONTROLS.search(text):
        return ""
    return "".join(sorted(char for char in set(text) if _is_invisible(char)))


def without_invisible(text: str) -> str:
    """Return the text without its invisible characters."""
    hidden = invisible_characters(text)
    return text.translate(dict.fromkeys(map(ord, hidden))) if hidden else text


def condense(text: str) -> Condensed | None:
    """Return a text without its invisible characters; None where it has none.

    Pictures that joiners connect (families, professions) become their first one.

    Example:
        >>> condense("a\\u200b b")
        Condensed(text='a b', starts=[0, 2, 3], ends=[2, 3, 4])
    """
    hidden = invisible_characters(text)
    if not hidden:
        return None
    some = f"[{re.escape(hidden)}]"
    picture = f"[{_EMOJI}](?:\u200d[{_EMOJI}]|{some})*"
    characters = re.compile(rf"{some}*(?:(\s)|((?!{some})(?:{picture}|\S{some}*)))")
    kept, starts, ends = [], [], []
    attached = text.rstrip(hidden)  # without those at the end that follow nothing visible: no match would end there
    for match in characters.finditer(text if attached and not attached[-1].isspace() else attached):
        start, end = match.span(1) if match[1] else match.span()
        kept.append(match[1] or match[2][0])
        starts.append(start)
        ends.append(end)
    return Condensed("".join(kept), starts, ends)


def _is_invisible(char: str) -> bool:
    if char.isspace():
        return False
    return unicodedata.category(char) in _CATEGORIES or char in _FILLERS or _SKIN_TONES[0] <= char <= _SKIN_TONES[2]
