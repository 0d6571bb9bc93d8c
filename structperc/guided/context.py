"""Scores of a label by the labels that its neighbours already have: features of the context of an action."""

from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from structperc.data.words import word_hashes
from structperc.errors import InputError
from structperc.guided.templates import OFFSETS, parse_context
from structperc.nonlocal_features.hashes import combined
from structperc.ragged import Ragged
from structperc.scorers.bags import bag_sum

UNKNOWN = -1  # in place of a label that is not decided yet


class ContextFeatures(nn.Module):
    """A row of L weights for each combination of neighbouring labels, and words, that a template asks for.

    A template fires only where all its labels are known. Combinations of labels alone have rows of their own, L**k
    for k labels. With words they are hashed: all such templates share `size` rows, and combinations that meet in
    one row share its weights. Row 0 stays zero; it stands for templates that do not fire. Weights start at zero.

    Below, F is the number of templates, those without words first. A window is the labels at the offsets -2, -1, 1
    and 2 from the token that is labelled, UNKNOWN where they are not decided.

    Args:
        templates: see `parse_context`.
        size: rows for the templates with words.

    Raises:
        InputError: a template is not understood, or size < 1.
    """

    table: nn.Parameter  # (R, L)
    radix: Tensor  # (F, 4) int64, by what a label counts in the number of a combination
    first: Tensor  # (F,) int64, first row

    def __init__(self, templates: list, size: int = 2**18) -> None:
        super().__init__()
        if size < 1:
            raise InputError(f"context.size: {size} rows are too few for the templates with words; 1 is the least")
        self.templates, self.size = templates, size
        self.parsed = tuple(sorted(parse_context(templates), key=lambda template: bool(template.words)))
        self.exact = sum(not template.words for template in self.parsed)  # how many are without words

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

    def keys(self, words: Tensor) -> Tensor:
        """Return the numbers (B, T, F) of what each template sees of the words (B, T), which are 0 in the padding."""
        seeds = word_hashes(map(str, self.parsed)).tolist()
        columns = [
            combined(torch.full_like(words, seed), *(_shifted(words, i) for i in template.words))
            for template, seed in zip(self.parsed, seeds, strict=True)
        ]
        return torch.stack(columns, -1) if columns else words.new_zeros(*words.shape, 0)

    def rows(self, windows: Tensor, keys: Tensor) -> Tensor:
        """Return the rows (n, F) of the table for windows (n, 4) and keys (n, F); 0 where a template does not fire."""
        labels = windows.double().masked_fill(windows == UNKNOWN, -(2.0**52))  # whatever else is seen, the sum is < 0
        found = labels @ self.radix.double().T
        numbers = found.clamp(min=0).long()
        hashes = combined(keys[:, self.exact :] + numbers[:, self.exact :]).remainder(self.size)
        return (torch.cat([numbers[:, : self.exact], hashes], 1) + self.first).where(found >= 0, 0)

    def forward(self, windows: Tensor, keys: Tensor) -> Tensor:
        """Return the sums (n, L) of the rows that fire for windows (n, 4) and keys (n, F)."""
        rows = self.rows(windows, keys)
        offsets = torch.arange(len(rows) + 1, device=rows.device) * rows.shape[1]
        return bag_sum(self.table, Ragged(rows.flatten(), offsets))


def _shifted(words: Tensor, offset: int) -> Tensor:
    """What stands `offset` tokens from each of words (B, T), 0 outside."""
    reach = abs(offset)
    return F.pad(words, (reach, reach))[:, reach + offset :][:, : words.shape[1]]
