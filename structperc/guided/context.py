"""Scores of a label by the labels that its neighbours already have: features of the context of an action."""

from itertools import accumulate

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from structperc.data.words import word_hashes
from structperc.errors import InputError
from structperc.guided import compiled
from structperc.guided.arrays import Weights
from structperc.guided.templates import OFFSETS, parse_context
from structperc.nonlocal_features.strings import combined

SIDES = ({False}, {True}, {False, True})  # whether the labels that a template sees come after the token


class ContextFeatures(nn.Module):
    """A row of L weights for each combination of neighbouring labels, and words, that a template asks for.

    A template fires only where all its labels are known. Combinations of labels alone have rows of their own, L**k
    for k labels. With words they are hashed: all such templates share `size` rows, and combinations that meet in
    one row share its weights. Row 0 stays zero; it stands for templates that do not fire. Weights start at zero.

    Below, F is the number of templates, those without words first, and H of those with words. A window is the labels
    at the offsets -2, -1, 1 and 2 from the token that is labelled, UNKNOWN where they are not decided.

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
        """Return numbers (B, T, H) of what templates with words see of the words (B, T), which are 0 in the padding."""
        with_words = self.parsed[self.exact :]
        seeds = word_hashes(map(str, with_words)).tolist()
        columns = [
            combined(torch.full_like(words, seed), *(_shifted(words, i) for i in template.words))
            for template, seed in zip(with_words, seeds, strict=True)
        ]
        return torch.stack(columns, -1) if columns else words.new_zeros(*words.shape, 0)

    def rows(self, windows: Tensor, keys: Tensor) -> Tensor:
        """Return the rows (n, F) of the table for windows (n, 4) and keys (n, H); 0 where a template does not fire."""
        none = np.zeros((0, self.table.shape[1]), np.float32)
        return torch.from_numpy(compiled.rows(windows.numpy(), keys.numpy(), self.weights(none, none)))

    def weights(self, node: np.ndarray, table: np.ndarray) -> Weights:
        """Return weights of features of tokens (R, L) and of contexts together, as compiled functions read them."""
        sides = [{offset > 0 for offset in template.labels} for template in self.parsed]
        before, after, around = (
            np.array([f for f, side in enumerate(sides) if side == own], np.int64) for own in SIDES
        )
        radix, first = self.radix.cpu().numpy(), self.first.cpu().numpy()
        return Weights(node, table, radix, first, self.size, before, after, around)


def _shifted(words: Tensor, offset: int) -> Tensor:
    """What stands `offset` tokens from each of words (B, T), 0 outside."""
    reach = abs(offset)
    return F.pad(words, (reach, reach))[:, reach + offset :][:, : words.shape[1]]
