"""The queue of candidates, which says which one of each sentence comes next."""

import math

import torch
from torch import Tensor


class Queue:
    """Action scores of the candidates of S sentences, by place; -inf where no candidate waits.

    Places are s * width + i. They are kept in blocks of about sqrt(width) with the highest score of each, so that
    to find and to change one costs O(sqrt(width)).

    Args:
        sentences: S.
        places: how many each sentence needs; `width` is at least that.
        like: dtype and device of the scores.
    """

    def __init__(self, sentences: int, places: int, like: Tensor) -> None:
        self.block = math.isqrt(places)
        self.blocks = -(-places // self.block)
        self.width = self.block * self.blocks
        self.scores = like.new_full((sentences * self.blocks, self.block), -torch.inf)
        self.highest = like.new_full((sentences, self.blocks), -torch.inf)

    def put(self, places: Tensor, scores: Tensor | float) -> None:
        """Set the scores of places (n,); -inf takes a candidate out."""
        self.scores.view(-1)[places] = scores
        changed = places // self.block
        self.highest.view(-1)[changed] = self.scores[changed].amax(1)

    def best(self, sentences: Tensor) -> Tensor:
        """Return the place of the highest score in each of the sentences (n,), of equal ones the first.

        Each of the sentences must have a candidate that waits.
        """
        block = sentences * self.blocks + self.highest[sentences].max(1).indices
        return block * self.block + self.scores[block].max(1).indices

    def waiting(self, sentences: Tensor) -> Tensor:
        """Return the places of all candidates of sentences (n,)."""
        row, place = (self.scores.view(-1, self.width)[sentences] > -torch.inf).nonzero().unbind(1)
        return sentences[row] * self.width + place
