"""A conditional random field with the interface of pytorch-crf."""

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from structperc.chain import log_partition, path_score, viterbi
from structperc.chain.lattices import full_precision
from structperc.errors import InputError
from structperc.nn.inputs import TokenPositions
from structperc.structures import Lattice

CRFReduction = Literal["none", "sum", "mean", "token_mean"]


class CRF(nn.Module):
    """Conditional random field with the interface of `torchcrf.CRF` of pytorch-crf 0.7.2.

    It has the same arguments, parameters, results and errors, so that models change only their import and load their
    saved weights. Differences: searches are those of this library, scores of half precision are summed in float32, and
    tags in the padding are arbitrary. Across holes of a mask, a chain connects successive tokens; pytorch-crf scores
    transitions from masked tags there. In new models use `ChainHead`.

    Args:
        num_tags: number of tags, L.
        batch_first: if True, tensors are (B, T, ...); otherwise (T, B, ...).

    Raises:
        InputError: num_tags is not positive.

    Example:
        >>> import torch
        >>> from structperc.nn import CRF
        >>> crf = CRF(num_tags=2, batch_first=True)
        >>> emissions = torch.tensor([[[0.0, 1.0], [2.0, 0.0]]])
        >>> crf.decode(emissions)
        [[1, 0]]
        >>> loss = -crf(emissions, tags=torch.tensor([[1, 0]]))
    """

    def __init__(self, num_tags: int, batch_first: bool = False) -> None:
        if num_tags <= 0:
            raise InputError(f"invalid number of tags: {num_tags}")
        super().__init__()
        self.num_tags, self.batch_first = num_tags, batch_first
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all transition scores uniformly from -0.1 to 0.1."""
        for scores in (self.start_transitions, self.end_transitions, self.transitions):
            nn.init.uniform_(scores, -0.1, 0.1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_tags={self.num_tags})"

    def forward(self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "sum") -> Tensor:
        """Return the log-likelihood log p(tags | emissions).

        Returns (B,) with reduction "none", else (). It is 0 for a row in which all sequences of tags have score -inf.

        Args:
            emissions: (B, T, L) scores of tags, or (T, B, L) unless batch_first.
            tags: (B, T) or (T, B) int64.
            mask: (B, T) or (T, B), on at tokens; the first position of each row must be a token. By default all are.
            reduction: "none"; "sum" or "mean" over rows; or "token_mean", the sum divided by the number of tokens.

        Raises:
            InputError: wrong shapes, an unknown reduction, a row with a masked first position.
        """
        self._check(emissions, tags, mask)
        if reduction not in get_args(CRFReduction):
            raise InputError(f"invalid reduction: {reduction}")
        places, lattice = self._lattice(emissions, mask)
        gold = places.gather(self._rows(tags)).where(places.mask, 0)
        log_z = log_partition(lattice)
        log_likelihoods = (path_score(lattice, gold) - log_z).where(log_z != -torch.inf, 0)
        if reduction == "none":
            return log_likelihoods
        if reduction == "token_mean":
            return log_likelihoods.sum() / places.lengths.sum()
        return log_likelihoods.sum() if reduction == "sum" else log_likelihoods.mean()

    @torch.no_grad()
    def decode(self, emissions: Tensor, mask: Tensor | None = None) -> list[list[int]]:
        """Return the best tags of each row's tokens.

        `emissions`: (B, T, L) scores of tags, or (T, B, L) unless batch_first. `mask`: (B, T) or (T, B), on at tokens;
        the first position of each row must be a token. By default all are.

        Raises:
            InputError: wrong shapes, a row with a masked first position.
        """
        self._check(emissions, None, mask)
        places, lattice = self._lattice(emissions, mask)
        labels = viterbi(lattice)[1].tolist()
        return [row[:length] for row, length in zip(labels, places.lengths.tolist(), strict=True)]

    def _lattice(self, emissions: Tensor, mask: Tensor | None) -> tuple[TokenPositions, Lattice]:
        logits = self._rows(emissions)
        kept = torch.ones_like(logits[:, :, 0], dtype=torch.bool) if mask is None else self._rows(mask) != 0
        places = TokenPositions.from_mask(kept)
        unary, steps = full_precision(places.gather(logits)), torch.arange(kept.shape[1], device=kept.device)
        start, end = full_precision(self.start_transitions), full_precision(self.end_transitions)
        last = (steps == places.lengths[:, None] - 1)[:, :, None]
        unary = unary + torch.where((steps == 0)[:, None], start, 0) + torch.where(last, end, 0)
        return places, Lattice(unary, self.transitions[None, None], places.lengths)

    def _rows(self, values: Tensor) -> Tensor:
        return values if self.batch_first else values.transpose(0, 1)

    def _check(self, emissions: Tensor, tags: Tensor | None, mask: Tensor | None) -> None:
        """Raise InputError with the messages of pytorch-crf."""
        if emissions.dim() != 3:
            raise InputError(f"emissions must have dimension of 3, got {emissions.dim()}")
        if emissions.shape[2] != self.num_tags:
            raise InputError(f"expected last dimension of emissions is {self.num_tags}, got {emissions.shape[2]}")
        for name, tensor in (("tags", tags), ("mask", mask)):
            if tensor is not None and tensor.shape != emissions.shape[:2]:
                both = f"{tuple(emissions.shape[:2])} and {tuple(tensor.shape)}"
                raise InputError(f"the first two dimensions of emissions and {name} must match, got {both}")
        if mask is not None and not bool((self._rows(mask)[:, 0] != 0).all()):
            raise InputError("mask of the first timestep must all be on")
