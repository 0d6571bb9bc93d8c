"""Where a running text can be cut such that its parts have the tokens and sentences that the whole has."""

import re
from collections.abc import Iterator

_EMPTY_LINE = re.compile(r"^[^\S\n]*\n", re.MULTILINE)
_LOOKED_AT = 16  # characters before an empty line: more than any of these takes
_LOOKS_ON = re.compile(  # the rules for these ask what comes next, beyond an empty line too
    r"(?:\$|(?:^|[\W_])[^\W\d_]\.|[Nn]o\.|(?:^|[\n\r])\d{1,2}\.)\Z"  # money, initials, No. 5, items of a list
)


def paragraph_ends(text: str) -> Iterator[int]:
    """Yield the places after empty lines across which neither tokens nor sentences look, `one_sentence` apart.

    The tokens are those of `conll_tokens` and `ud_tokens`. The text consists of whole lines.
    """
    for match in _EMPTY_LINE.finditer(text):
        before = _before(text, match.start())
        if before and not _LOOKS_ON.search(before):
            yield match.end()


def _before(text: str, at: int) -> str:
    """What stands before the white space before a place, at least its last word if that can matter."""
    while at and text[at - 1].isspace():
        at -= 1
    return text[max(0, at - _LOOKED_AT) : at]
