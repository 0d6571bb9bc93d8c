"""Features of decided labels next to a token: templates of labels and words, and the table of their weights.

context:
  - shen2007_c          # a list of Table 2 of Shen et al. 2007
  - "t[-2] t[-1]"       # the labels of the two tokens before
  - "t[-1] t[1] w[0]"   # the labels on both sides, and the word itself
"""

import re
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from structperc.data.words import word_hashes
from structperc.errors import InputError
from structperc.guided.training_arrays import OFFSETS, UNKNOWN, WeightArrays
from structperc.nonlocal_features.strings import combined, mixed


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
    templates: dict[ContextTemplate, None] = {}
    for item in items:
        if not isinstance(item, str):
            raise _error(item, "is not a string")
        templates |= dict.fromkeys(map(_template, SETS.get(item, [item])))
    return tuple(templates)


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


SIDES = ({False}, {True}, {False, True})  # whether the labels of a template are after the token


class ContextFeatures(nn.Module):
    """Features of the labels, and words, next to a token. Shen, Satta & Joshi 2007, Table 2.

    A template such as "t[-1] t[1] w[0]" has a row of L weights for each combination of its labels and words. It fires
    only if all its labels are known. A template of k labels has L**k rows. Templates with words are hashed: they share
    `size` rows, and combinations with the same row share its weights. Row 0 stays zero, for templates that do not
    fire. Weights are initially zero.

    F is the number of templates, templates without words first, and H the number of templates with words. A window is
    the labels at the offsets -2, -1, 1 and 2 from the token, UNKNOWN if they are not decided.

    Args:
        templates: templates such as "t[-1] w[0]", and names of lists of templates, "shen2007_a" to "shen2007_e".
        size: number of rows for the templates with words.

    Raises:
        InputError: a template is invalid, or size < 1.

    Example:
        >>> from structperc.guided import ContextFeatures
        >>> context = ContextFeatures(["t[-1]", "t[-1] t[1]", "t[-1] w[0]"], size=1000)
        >>> context.allocate(n_labels=3)
        >>> context.table.shape  # 1 + 3 + 3 * 3 + 1000 rows
        torch.Size([1013, 3])
    """

    table: nn.Parameter  # (R, L)
    radix: Tensor  # (F, 4) int64, factors of the labels in the number of a combination
    first: Tensor  # (F,) int64, first row

    def __init__(self, templates: list, size: int = 2**18) -> None:
        super().__init__()
        if size < 1:
            raise InputError(f"context.size: expected >= 1, got {size}")
        self.templates, self.size = templates, size
        self.parsed = tuple(sorted(parse_context(templates), key=lambda template: bool(template.words)))
        self.exact = sum(not template.words for template in self.parsed)  # without words

    def allocate(self, n_labels: int) -> None:
        """Create the table of weights once the labels are known."""
        offsets = [template.labels for template in self.parsed]
        sizes = [n_labels ** len(at) for at in offsets[: self.exact]]
        *first, hashed = accumulate(sizes, initial=1)
        first += [hashed] * (len(offsets) - self.exact)
        radix = [n_labels ** at.index(i) if i in at else 0 for at in offsets for i in OFFSETS]
        self.register_buffer("radix", torch.tensor(radix, dtype=torch.int64).view(-1, len(OFFSETS)), persistent=False)
        self.register_buffer("first", torch.tensor(first, dtype=torch.int64), persistent=False)
        rows = hashed + self.size * (self.exact < len(offsets))
        self.table = nn.Parameter(torch.zeros(rows, n_labels))

    def keys(self, words: Tensor, lengths: Tensor) -> Tensor:
        """Return hashes (n, H) of the words of each template with words.

        Args:
            words: word ids (n,) int64 of the concatenated sentences; positions outside a sentence count as 0.
            lengths: (B,) int64, lengths of the sentences.
        """
        with_words = self.parsed[self.exact :]
        seeds = word_hashes(map(str, with_words)).tolist()
        ends = lengths.cumsum(0).repeat_interleave(lengths)
        starts = ends - lengths.repeat_interleave(lengths)
        columns = [
            combined(torch.full_like(words, seed), *(_shifted(words, starts, ends, i) for i in template.words))
            for template, seed in zip(with_words, seeds, strict=True)
        ]
        return torch.stack(columns, -1) if columns else words.new_zeros(len(words), 0)

    def rows(self, windows: Tensor, keys: Tensor) -> Tensor:
        """Return the rows (n, F) of the table for windows (n, 4) and keys (n, H); 0 where a template does not fire."""
        radix = self.radix.cpu()
        unknown = ((windows[:, None] == UNKNOWN) & (radix != 0)).any(2)
        numbers = (windows[:, None] * radix).sum(2)
        hashed = mixed(keys + numbers[:, self.exact :]) % self.size
        numbers = torch.cat([numbers[:, : self.exact], hashed], 1)
        return (self.first.cpu() + numbers).masked_fill(unknown, 0)

    def weights(self, node: np.ndarray, table: np.ndarray) -> WeightArrays:
        """Return the arguments of compiled functions, given weights of token features (R, L) and contexts (C, L)."""
        sides = [{offset > 0 for offset in template.labels} for template in self.parsed]
        before, after, around = (
            np.array([f for f, side in enumerate(sides) if side == own], np.int64) for own in SIDES
        )
        radix, first = self.radix.cpu().numpy(), self.first.cpu().numpy()
        return WeightArrays(node, table, radix, first, self.size, before, after, around)


def _shifted(words: Tensor, starts: Tensor, ends: Tensor, offset: int) -> Tensor:
    """Return the words at an offset from each token (n,), 0 outside the sentence starts:ends of the token."""
    places = torch.arange(len(words)) + offset
    return words.roll(-offset).where((places >= starts) & (places < ends), 0)
