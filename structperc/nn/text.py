"""The chains of a batch as criteria and non-local features read them, with the words of their tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor

from structperc.data.words import word_numbers
from structperc.errors import InputError
from structperc.nn.places import Places
from structperc.ragged import Ragged
from structperc.structures import Batch, Words

Text = Sequence[Sequence[str]]  # of each row, the words of its tokens


def batch_of(places: Places, gold: Tensor | None, sentences: Tensor | None, words: Text | None) -> Batch:
    """Return chains as a Batch without features.

    gold: (B, T) of positions, in which what is no token may have any label. sentences: (B, T) of positions, the number
    of each token's sentence; None: each row is one. words: of the tokens; None: they are not looked at.
    """
    real, (B, T) = places.real, places.order.shape
    number = torch.zeros_like(places.order) if sentences is None else places.chain(sentences.long())
    steps = torch.arange(T, device=real.device)
    first = real & ((steps == 0) | (number != number.roll(1, 1)))
    last = real & ((steps == places.lengths[:, None] - 1) | first.roll(-1, 1))
    return Batch(
        nodes=_nothing(places),
        edges=None,
        lengths=places.lengths,
        gold=None if gold is None else places.chain(gold).where(real, 0),
        sentences=(first.cumsum(1) - 1).where(real, 0),
        first=first,
        last=last,
        rows=torch.arange(B, device=real.device),
        words=Words(*places.order.new_zeros(4, B, T)) if words is None else looks(words, places),
    )


def looks(words: Text, places: Places) -> Words:
    """Return the numbers of the words of each row's tokens. Raises InputError for a row with more or fewer of them."""
    lengths = places.lengths.tolist()
    if isinstance(words, str) or len(words) != len(lengths):
        raise InputError(f"words: there must be a list of words for each of the {len(lengths)} rows, got {len(words)}")
    for row, (own, length) in enumerate(zip(words, lengths, strict=True)):
        if isinstance(own, str) or len(own) != length:
            raise InputError(f"words: row {row} has {len(own)} words, but its mask (or gold) keeps {length} positions")
    numbers = torch.from_numpy(word_numbers([word for own in words for word in own])).to(places.order.device)
    padded = numbers.new_zeros(4, *places.order.shape)
    padded[:, places.real] = numbers
    return Words(*padded)


def _nothing(places: Places) -> Ragged:
    none = places.order.new_zeros(0)
    return Ragged(none, none.new_zeros(1), longest=0)
