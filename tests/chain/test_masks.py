import torch

from structperc.chain import compact, scatter

MASK = torch.tensor([[0, 1, 1, 0, 1], [0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [1, 1, 0, 1, 1]]).bool()


def test_moves_masked_tokens_to_the_left() -> None:
    values = torch.arange(20).view(4, 5)
    compacted, lengths = compact(values, MASK)
    assert compacted.tolist() == [[1, 2, 4, 0], [0, 0, 0, 0], [13, 14, 0, 0], [15, 16, 18, 19]]
    assert lengths.tolist() == [3, 0, 2, 4]


def test_scatter_undoes_compact() -> None:
    values = torch.randn(4, 5, 2, 3)
    compacted, _ = compact(values, MASK)
    back = scatter(compacted, MASK, fill=-7)
    assert back[MASK].equal(values[MASK])
    assert (back[~MASK] == -7).all()


def test_scatter_takes_values_padded_further() -> None:
    labels = torch.tensor([[5, 6, 7, 9, 9, 9], [9] * 6, [5, 6, 9, 9, 9, 9], [5, 6, 7, 8, 9, 9]])
    expected = [[0, 5, 6, 0, 7], [0] * 5, [0, 0, 0, 5, 6], [5, 6, 0, 7, 8]]
    assert scatter(labels, MASK).tolist() == expected


def test_gradients_and_poison() -> None:
    values = torch.randn(4, 5).masked_fill(~MASK, torch.nan).requires_grad_()
    compacted, _ = compact(values, MASK)
    compacted.sum().backward()
    assert values.grad.equal(MASK.float())


def test_nothing_masked_in() -> None:
    compacted, lengths = compact(torch.randn(2, 3, 4), torch.zeros(2, 3, dtype=torch.bool))
    assert compacted.shape == (2, 0, 4)
    assert lengths.tolist() == [0, 0]
    assert scatter(compacted, torch.zeros(2, 3, dtype=torch.bool)).equal(torch.zeros(2, 3, 4))
