"""Which pieces of words are the first ones, and which stand for no word."""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from structperc.errors import InputError


def first_pieces(word_ids: Iterable[Sequence[int | None]]) -> Tensor:
    """Return a mask (B, T) bool, True at the first piece of each word.

    word_ids: for each row the number of each position's word, None where there is none, as `word_ids(row)` of a
    tokenizer's `BatchEncoding` gives them. Raises InputError for rows of different lengths.
    """
    rows = [list(row) for row in word_ids]
    if len({len(row) for row in rows}) > 1:
        raise InputError(f"word_ids: rows have {sorted({len(row) for row in rows})} positions; pad them to one length")
    first = [[word is not None and word != before for before, word in zip([None, *row], row)] for row in rows]  # noqa: B905
    return torch.tensor(first, dtype=torch.bool).view(len(rows), -1)
