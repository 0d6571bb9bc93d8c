"""Positions of quoted mentions in their text."""

import unicodedata
from collections.abc import Iterator, Sequence

from structperc.text.tokenizer import Offsets

_QUOTES = "\u2018\u2019\u201a\u201b\u02bc`\u00b4\u201c\u201d\u201e\u201f\u00ab\u00bb"
_HYPHENS = "\u2010\u2011\u2012\u2013\u2014\u2015"
_SAME = str.maketrans(_QUOTES + _HYPHENS, "'" * 7 + '"' * 6 + "-" * 6)


def find_quotes(text: str, quotes: Sequence[str]) -> list[Offsets | None]:
    """Find mentions in a text, in their order as far as possible.

    A mention is the next occurrence after the one before it, else the first one. Each occurrence is found once, so that
    repeated mentions are one after the other; it does not begin or end inside a word, and is not a part of another
    mention if there is a choice. White space, case and the forms of quotation marks and hyphens are ignored if there is
    no exact match. `quotes`: the mentions. Returns the offsets (start, end) of each mention; None if there is no
    further occurrence.

    Example:
        >>> find_quotes("Anna met Bo. Then ANNA  LIND left.", ["Anna", "Anna Lind", "Bonn"])
        [(0, 4), (18, 28), None]
    """
    exact = {quote: list(_occurrences(text, quote.strip())) for quote in quotes}
    similar = {quote: [one for one in _similar(text, quote) if one not in exact[quote]] for quote in exact}
    inside = {
        quote: {
            own
            for own in (*exact[quote], *similar[quote])
            for other in exact
            if len(other) > len(quote)
            for start, end in (*exact[other], *similar[other])
            if start <= own[0] and own[1] <= end
        }
        for quote in exact
    }
    found: list[Offsets | None] = []
    taken: set[Offsets] = set()
    at = 0
    for quote in quotes:
        free = [
            [one for one in places if all(one[1] <= start or end <= one[0] for start, end in taken)]
            for places in (exact[quote], similar[quote])
        ]
        ranked = [
            *([one for one in places if one not in inside[quote]] for places in free),
            *free,
            *([one for one in places if one not in taken] for places in (exact[quote], similar[quote])),
        ]
        places = next(filter(None, ranked), None)
        chosen = places and next((one for one in places if one[0] >= at), places[0])
        found.append(chosen or None)
        if chosen:
            taken.add(chosen)
            at = chosen[1]
    return found


def _occurrences(text: str, quote: str) -> Iterator[Offsets]:
    """Yield the places of a string that do not begin or end inside a word."""
    start = text.find(quote) if quote else -1
    while start >= 0:
        end = start + len(quote)
        if not _is_inside_word(text, start) and not _is_inside_word(text, end):
            yield start, end
        start = text.find(quote, start + 1)


def _is_inside_word(text: str, at: int) -> bool:
    """Return True between two letters of a script with capitals, or digits; others may have no spaces between words."""
    pair = text[at - 1 : at + 1] if at else ""
    return len(pair) == 2 and all(char.isdigit() or char.lower() != char.upper() for char in pair)


def _similar(text: str, quote: str) -> Iterator[Offsets]:
    """Yield the places of a string that ignore white space, case, quotation marks and hyphens."""
    plain, origin = _fold(text)
    origin.append(len(text))
    for start, end in _occurrences(plain, _fold(quote)[0].strip()):
        if (start == 0 or origin[start - 1] != origin[start]) and origin[end - 1] != origin[end]:
            yield origin[start], origin[end - 1] + 1


def _fold(text: str) -> tuple[str, list[int]]:
    """Return a simplified text, and the position in the text of each of its characters."""
    kept: list[str] = []
    origin: list[int] = []
    for i, char in enumerate(text):
        piece = unicodedata.normalize("NFD", char).casefold().translate(_SAME)
        if char.isspace():
            piece = " " if kept[-1:] != [" "] else ""
        elif unicodedata.category(char) == "Cf":  # such as soft hyphens
            piece = ""
        kept += piece
        origin += [i] * len(piece)
    return "".join(kept), origin
