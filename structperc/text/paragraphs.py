"""Where a running text can be cut such that its parts have the tokens and sentences that the whole has."""

import re
from collections.abc import Iterator

from structperc.text.invisible import invisible_characters

_EMPTY_LINE = re.compile(r"^[^\S\n]*\n", re.MULTILINE)
_LOOKED_AT = 16  # characters before an empty line: more than any of these takes
_LOOKS_ON = re.compile(  # the rules for these ask what comes next, beyond an empty line too
    r"(?:\$|(?:^|[\W_])[^\W\d_]\.|[Nn]o\.|(?:^|[\n\r])\d{1,2}\.)\Z"  # money, initials, No. 5, items of a list
)


def paragraph_ends(text: str) -> Iterator[int]:
    """Yield the places after empty lines across which neither tokens nor sentences look, `one_sentence` apart.

    The tokens are those of `conll_tokens` and `ud_tokens`. The text consists of whole lines.
    """
    hidden = invisible_characters(text)
    for match in _EMPTY_LINE.finditer(text):
        before = _before(text, match.start(), hidden)
        if before and not _LOOKS_ON.search(before):
            yield match.end()


def _before(text: str, at: int, hidden: str) -> str:
    """The visible characters before the white space before a place, at least its last word if that can matter."""
    found: list[str] = []
    while at and len(found) < _LOOKED_AT:
        at -= 1
        if text[at] not in hidden and (found or not text[at].isspace()):
            found.append(text[at])
    return "".join(reversed(found))
