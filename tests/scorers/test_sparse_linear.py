"""The sparse scorer against one dot product at a time, and its gradient against autograd on dense tables."""

import pytest
import torch
from pytorch_lightning.utilities import move_data_to_device

from structperc.ragged import Ragged
from structperc.scorers import SparseLinear
from structperc.scorers.sparse_linear import sum_features
from structperc.structures import Batch, Words


def ragged(lists):
    offsets = torch.tensor([0, *torch.tensor([len(x) for x in lists]).cumsum(0).tolist()], dtype=torch.int32)
    return Ragged(torch.tensor([i for x in lists for i in x], dtype=torch.int32), offsets)


NODES = [[0, 3], [], [2, 2, 1], [4], [1, 3], [0]]
EDGES = [[1], [0, 2], [], [2], [1, 1], [0]]


def batch(edges=True):
    lengths, zeros = torch.tensor([3, 0, 1, 2]), torch.zeros(4, 3, dtype=torch.int64)
    return Batch(
        ragged(NODES),
        ragged(EDGES) if edges else None,
        lengths,
        None,
        zeros,
        zeros.bool(),
        zeros.bool(),
        torch.arange(4),
        Words(*[zeros] * 4),
    )


def scorer(transitions=True, n_edge=3, sparse_grad=True):
    torch.manual_seed(1)
    module = SparseLinear(transitions, sparse_grad)
    module.allocate(5, n_edge, 2)
    for p in module.parameters():
        torch.nn.init.normal_(p)
    return module


def naive(module, given):
    B, T = 4, 3
    unary, edge = torch.zeros(B, T, 2), torch.zeros(B, T, 2, 2)
    token = 0
    for b, n in enumerate(given.lengths.tolist()):
        for t in range(n):
            for f in NODES[token]:
                unary[b, t] += module.node[f]
            for f in EDGES[token]:
                if given.edges is not None:
                    edge[b, t] += module.edge[f].view(2, 2)
            token += 1
    if module.transition is not None:
        edge = edge + module.transition
    return unary, edge


@pytest.mark.parametrize("transitions", [True, False])
@pytest.mark.parametrize("edges", [True, False])
def test_scores_are_sums_of_weights(transitions, edges):
    module = scorer(transitions, 3 if edges else 0)
    given = batch(edges)
    lattice = module(given)
    unary, edge = naive(module, given)
    torch.testing.assert_close(lattice.unary, unary)
    torch.testing.assert_close(lattice.edge.expand_as(edge), edge)
    assert lattice.lengths is given.lengths


def test_stationary_edges_are_one_matrix():
    lattice = scorer(transitions=True, n_edge=0)(batch(edges=False))
    assert lattice.edge.shape == (1, 1, 2, 2)


def test_sparse_gradient():
    features = ragged(NODES)
    upstream = torch.zeros(6, 4)
    upstream[0, 1], upstream[2, 3] = 2.0, -1.0  # a token with features 0, 3 and one with 2, 2, 1
    dense = torch.nn.Parameter(torch.randn(5, 4))
    lean = torch.nn.Parameter(dense.detach().clone())
    sum_features(dense, features, sparse_grad=False).backward(upstream)
    sum_features(lean, features).backward(upstream)
    assert lean.grad.is_sparse
    assert lean.grad._nnz() == 2 + 3
    torch.testing.assert_close(lean.grad.to_dense(), dense.grad)


def test_gradient_of_equal_paths_is_empty():
    module = scorer()
    lattice = module(batch())
    chosen = lattice.unary[0, 0, 1] + lattice.edge[0, 1, 1, 0]
    (chosen - chosen).backward()
    assert module.node.grad._nnz() == 0
    assert module.edge.grad._nnz() == 0


def test_no_tokens_at_all():
    module = scorer()
    none = torch.zeros(2, 0, dtype=torch.int64)
    lengths = torch.zeros(2, dtype=torch.int64)
    boundaries = none.bool(), none.bool()
    empty = Batch(ragged([]), ragged([]), lengths, None, none, *boundaries, torch.arange(2), Words(*[none] * 4))
    lattice = module(empty)
    assert lattice.unary.shape == (2, 0, 2)
    assert lattice.edge.shape == (2, 0, 2, 2)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("sparse_grad", [True, False])
@pytest.mark.parametrize("transposed", [True, False])
def test_same_on_cuda(transposed, sparse_grad):
    given = batch()
    if transposed:
        given = given._replace(nodes=given.nodes.transpose(), edges=given.edges.transpose())
    results = []
    for device in ("cpu", "cuda"):
        module = scorer(sparse_grad=sparse_grad).to(device)
        lattice = module(move_data_to_device(given, torch.device(device)))
        (lattice.unary.square().sum() + lattice.edge.square().sum()).backward()
        results.append([lattice.unary, lattice.edge, *(p.grad.to_dense() for p in module.parameters())])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b.cpu())
