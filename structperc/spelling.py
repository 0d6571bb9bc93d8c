"""Suggestions for names that are almost right."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return "; did you mean NAME?" with the known name closest to the given one; "" where none is close."""
    by_folded = {name.lower(): name for name in known}
    close = get_close_matches(given.lower(), by_folded, n=1)
    return f"; did you mean {by_folded[close[0]]}?" if close else ""
