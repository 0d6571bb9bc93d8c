"""Text of messages: suggestions for misspelt names, numbers with nouns, invisible characters as escapes."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

MAX_LENGTH = 60  # characters of a quotation
# Invisible characters for which `str.isprintable` is True: joiners, fillers, selectors of variants.
_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
_FORMAT = "\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0001\U000e0020-\U000e007f"
INVISIBLE = re.compile(f"[{_UNSEEN}{_FORMAT}]")
_BLANK = re.compile(rf"[\s{_UNSEEN}{_FORMAT}]*")


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return "; did you mean NAME?" with the known name closest to the given one; "" where none is close."""
    name = closest(given, known)
    return f"; did you mean {name}?" if name else ""


def closest(given: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to the given one, ignoring capitals; None where none is close."""
    by_folded = {name.lower(): name for name in known}
    close = get_close_matches(given.lower(), by_folded, n=1)
    return by_folded[close[0]] if close else None


def visible(text: str) -> str:
    r"""Return the text with invisible characters as escapes.

    Example:
        >>> print(visible("B-PER\u200b"))
        B-PER\u200b
    """
    return text if text.isascii() else INVISIBLE.sub(_escape, text)


def quoted(text: str) -> str:
    """Return the text in quotation marks, with escapes for unprintable characters, and without a long end."""
    return visible(repr(text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 3]}..."))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def is_blank(text: str) -> bool:
    """Return True if a text has only white space and invisible characters, such as a byte-order mark."""
    return _BLANK.fullmatch(text) is not None


def _escape(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]
