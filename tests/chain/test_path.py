import oracle
import pytest
import torch

from structperc.chain import path_score
from structperc.errors import InputError
from structperc.structures import Lattice


def some_labels(lattice: Lattice, *shape: int) -> torch.Tensor:
    B, T, L = lattice.unary.shape
    labels = torch.randint(L, (B, *shape, T))
    padding = torch.arange(T) >= lattice.lengths.view(-1, *[1] * (len(shape) + 1))
    return labels.where(~padding, -100)


def expected(lattice: Lattice, row: int, labels: torch.Tensor) -> float:
    return oracle.score(lattice, row, tuple(labels[: lattice.lengths[row]].tolist()))


def test_matches_naive_sum(lattice: Lattice) -> None:
    one, many = some_labels(lattice), some_labels(lattice, 3)
    for b in range(len(one)):
        assert path_score(lattice, one)[b].item() == pytest.approx(expected(lattice, b, one[b]))
        for k in range(3):
            assert path_score(lattice, many)[b, k].item() == pytest.approx(expected(lattice, b, many[b, k]))


def test_rows_name_the_sequence(lattice: Lattice) -> None:
    rows = torch.tensor([4, 1, 1, 0])
    labels = some_labels(lattice)[rows]
    scores = path_score(lattice, labels, rows)
    assert scores.tolist() == pytest.approx(
        [expected(lattice, r, y) for r, y in zip(rows.tolist(), labels, strict=True)]
    )


def test_gradients_count_what_is_used_and_stay_out_of_the_padding(lattice: Lattice) -> None:
    labels = some_labels(lattice)
    unary, edge = lattice.unary.clone().requires_grad_(), lattice.edge.clone().requires_grad_()
    path_score(Lattice(unary, edge, lattice.lengths), labels).sum().backward()
    nodes = torch.zeros_like(unary)
    pairs = nodes.new_zeros(*nodes.shape, nodes.shape[2])
    for b, n in enumerate(lattice.lengths.tolist()):
        for t in range(n):
            nodes[b, t, labels[b, t]] += 1
            if t > 0:
                pairs[b, t, labels[b, t - 1], labels[b, t]] += 1
    assert unary.grad.equal(nodes)
    assert edge.grad.equal(pairs.sum_to_size(edge.shape))


def test_gradient_of_a_stationary_edge_reaches_the_matrix() -> None:
    matrix = torch.zeros(2, 2, requires_grad=True)
    labels = torch.tensor([[0, 1, 1], [1, 1, -1]])
    path_score(Lattice(torch.zeros(2, 3, 2), matrix.expand(2, 3, 2, 2), torch.tensor([3, 2])), labels).sum().backward()
    assert matrix.grad.tolist() == [[0, 1], [0, 2]]


@pytest.mark.parametrize("label", [-100, -1, 3])
def test_label_outside_the_lattice(label: int) -> None:
    labels = torch.zeros(2, 4, dtype=torch.int64)
    labels[1, 2] = label
    lattice = Lattice(torch.zeros(2, 4, 3), torch.zeros(2, 4, 3, 3), torch.tensor([4, 3]))
    with pytest.raises(InputError, match=rf"label {label} at token 2 of sequence 1 is outside 0\.\.2"):
        path_score(lattice, labels)
    with pytest.raises(InputError, match="at token 2 of sequence 1"):
        path_score(lattice, labels.unsqueeze(1))
    assert path_score(lattice._replace(lengths=torch.tensor([4, 2])), labels).tolist() == [0, 0]


def test_half_precision_is_summed_in_float32() -> None:
    lattice = Lattice(torch.full((1, 3000, 1), 1.0).bfloat16(), torch.zeros(1, 3000, 1, 1), torch.tensor([3000]))
    assert path_score(lattice, torch.zeros(1, 3000, dtype=torch.int64)).item() == 3000


def test_cuda_equals_cpu(documents: Lattice, cuda: torch.device) -> None:
    labels = torch.randint(5, (6, 2, 310))
    moved = Lattice(*(x.to(cuda) for x in documents))
    torch.testing.assert_close(path_score(moved, labels.to(cuda)).cpu(), path_score(documents, labels))
