"""The local scores of re-rankers against sums by hand."""

import pytest
import torch

from structperc.chain import path_score
from structperc.errors import InputError
from structperc.ragged import Ragged
from structperc.reranking import FirstScore, LocalFeatures, LocalSum
from structperc.scorers import SparseLinear
from structperc.structures import Batch, Words


def batch(lengths, features, T):
    """Random node features, the same for edges."""
    torch.manual_seed(0)
    n = sum(lengths)
    nodes = Ragged(torch.randint(features, (2 * n,), dtype=torch.int32), 2 * torch.arange(n + 1).int())
    empty = torch.zeros(len(lengths), T, dtype=torch.int64)
    rows, lengths = torch.arange(len(lengths)), torch.tensor(lengths)
    return Batch(nodes, nodes, lengths, None, empty, empty.bool(), empty.bool(), rows, Words(*[empty] * 4))


def test_first_score():
    module = FirstScore(unit=4.0)
    module.allocate(10, 0, 3)
    assert module.weight.tolist() == [0.0]
    with torch.no_grad():
        module.weight.fill_(-3)
    first = torch.tensor([[8.0, -2.0], [0.0, 1.0]])
    scores = module(batch([1, 1], 5, 1), torch.zeros(2, 2, 1).long(), first)
    assert scores.tolist() == [[-6.0, 1.5], [0.0, -0.75]]
    (scores[0, 0] - scores[0, 1]).backward()
    assert module.weight.grad.tolist() == [2.5]


def test_start_at_the_first_model():
    module = LocalSum([FirstScore(unit=8.0, start=8.0), LocalFeatures(SparseLinear())])
    module.allocate(7, 0, 3)
    first = torch.tensor([[8.0, -2.0], [0.5, 1.0]])
    assert torch.equal(module(batch([1, 1], 7, 1), torch.zeros(2, 2, 1).long(), first), first)
    with pytest.raises(InputError, match="start"):
        FirstScore(start=float("inf"))
    for unit in (0, float("nan")):
        with pytest.raises(InputError, match="unit"):
            FirstScore(unit)
    with pytest.raises(InputError, match="parts"):
        LocalSum([])


def test_local_features_are_path_scores():
    given = batch([3, 0, 5], 7, 5)
    module = LocalFeatures(SparseLinear(transitions=True))
    module.allocate(7, 7, 3)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    labels = torch.randint(3, (3, 4, 5))
    scores = module(given, labels, torch.full((3, 4), torch.nan))  # the first model's score plays no part
    assert torch.equal(scores, path_score(module.scorer(given), labels))
    naive = []
    node, edge, transition = (module.scorer.get_parameter(name) for name in ("node", "edge", "transition"))
    for b, k, (start, length) in ((0, 2, (0, 3)), (2, 1, (3, 5))):
        total, path = 0.0, labels[b, k].tolist()
        for t in range(length):
            ids = given.nodes.ids[2 * (start + t) : 2 * (start + t + 1)].tolist()
            total += sum(float(node[i, path[t]]) for i in ids)
            if t:
                pair = path[t - 1] * 3 + path[t]
                total += sum(float(edge[i, pair]) for i in ids) + float(transition[path[t - 1], path[t]])
        naive.append((float(scores[b, k]), total))
    for found, wanted in naive:
        assert found == pytest.approx(wanted, rel=1e-5)
    assert scores[1].tolist() == [0.0] * 4
