"""Probabilities of the labels next to given ones, against the tables of pairs."""

from importlib import import_module

import pytest
import torch

from structperc.chain import edge_marginals, marginals, next_marginals, previous_marginals
from structperc.structures import Lattice


@pytest.mark.parametrize("many", [(1, 1), (3, 1), (3, 6)], ids=["one table", "one each", "one each token"])
@pytest.mark.parametrize("most", [0, 2**16], ids=["token by token", "tables"])
def test_they_are_shares_of_the_pairs(many: tuple[int, int], most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With impossible pairs and labels, any padding, a sequence without tokens; scores too large for sums of them."""
    monkeypatch.setattr(import_module("structperc.chain.marginals"), "MOST", most)
    torch.manual_seed(0)
    B, T, L = 3, 6, 4
    unary, edge = 5 * torch.randn(B, T, L) + 500, torch.randn(*many, L, L)
    edge[..., 1, 2], unary[0, 2, 3] = -torch.inf, -torch.inf
    lengths, labels = torch.tensor([6, 4, 0]), torch.randint(L, (B, T))
    labels[0, 2] = 3  # impossible
    unary[1, 4:] = torch.nan
    lattice = Lattice(unary, edge, lengths)
    whole = Lattice(unary.double(), edge.double(), lengths)
    pairs, nodes = edge_marginals(whole), marginals(whole)
    after, before = next_marginals(lattice, labels), previous_marginals(lattice, labels)
    for b, length in enumerate(lengths.tolist()):
        for t in range(T):
            own = labels[b, t]
            p = nodes[b, t, own]
            later = pairs[b, t + 1, own] / p if t + 1 < length and p else torch.zeros(L).double()
            earlier = pairs[b, t, :, own] / p if 0 < t < length and p else torch.zeros(L).double()
            torch.testing.assert_close(after[b, t], later)
            torch.testing.assert_close(before[b, t], earlier)
