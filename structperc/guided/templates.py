"""Templates of context features: which neighbouring labels, with which words, make one feature of an action.

context:
  - shen2007_c          # a list of Table 2 of Shen et al. 2007
  - "t[-2] t[-1]"       # the labels of the two tokens before
  - "t[-1] t[1] w[0]"   # the labels on both sides, and the word itself
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from structperc.errors import InputError

OFFSETS = (-2, -1, 1, 2)  # of the neighbours in a window
UNKNOWN = -1  # label that is not decided yet


class ContextTemplate(NamedTuple):
    """Offsets of the labels and words of a feature, relative to the token."""

    labels: tuple[int, ...]  # ascending
    words: tuple[int, ...]  # ascending

    def __str__(self) -> str:
        return " ".join([*(f"t[{i}]" for i in self.labels), *(f"w[{i}]" for i in self.words)])


_A = ["t[-1]", "t[-2] t[-1]"]
_B = [*_A, "t[1]", "t[-1] t[1]", "t[1] t[2]"]
_C = [*_B, "t[-2]", "t[2]", "t[-2] w[0]", "t[-1] w[0]", "t[1] w[0]", "t[2] w[0]"]
_C += ["t[-2] t[-1] w[0]", "t[-1] t[1] w[0]", "t[1] t[2] w[0]"]

# Table 2 of Shen et al. 2007 without features of words alone, which sets D and E add.
SETS = {f"shen2007_{name}": items for name, items in zip("abcde", [_A, _B, _C, _C, _C], strict=True)}

_PART = re.compile(r"([tw])\[([+-]?[0-9]{1,3})\]")


def parse_context(items: Iterable[object]) -> tuple[ContextTemplate, ...]:
    """Return the templates of a list of items, in order, without duplicates.

    An item is a template such as "t[-1] w[0]" or the name of a list in `SETS`.

    Raises:
        InputError: an item is invalid.
    """
    if isinstance(items, str | dict):
        raise InputError(f"context: expected a list of templates, got {items!r}; put it in brackets")
    return tuple(dict.fromkeys(template for item in items for template in _expand(item)))


def _expand(item: object) -> list[ContextTemplate]:
    if not isinstance(item, str):
        raise _error(item, "is not a string")
    return [_template(text) for text in SETS.get(item, [item])]


def _template(text: str) -> ContextTemplate:
    matches = [_PART.fullmatch(part) for part in text.split()]
    parts = [(match[1], int(match[2])) for match in matches if match]
    if not matches or len(set(parts)) < len(matches):
        raise _error(text, "is invalid")
    labels, words = (tuple(sorted(offset for name, offset in parts if name == kind)) for kind in "tw")
    if not set(labels) <= set(OFFSETS):
        raise _error(text, "has an unsupported label offset: use t[-2], t[-1], t[1] and t[2]")
    if not labels:
        raise _error(text, "has no label: put it among the node templates of the feature extractor")
    return ContextTemplate(labels, words)


def _error(item: object, why: str) -> InputError:
    return InputError(
        f'context: template {item!r} {why}; an item is "t[-1]", "t[-2] t[-1] w[0]" or one of {", ".join(SETS)}'
    )
