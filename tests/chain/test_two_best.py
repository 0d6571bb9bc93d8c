import oracle
import pytest
import torch

from structperc.chain import kbest
from structperc.chain.two_best import two_best
from structperc.structures import Lattice


def test_matches_enumeration(lattice: Lattice) -> None:
    found = two_best(lattice)
    for b, n in enumerate(lattice.lengths.tolist()):
        ranked = oracle.ranked(lattice, b)[:2]
        size = len(ranked)
        assert found.valid[b].sum() == size
        assert found.scores[b, :size].tolist() == pytest.approx([s for s, _ in ranked], abs=1e-9)
        labellings = [tuple(y) for y in found.labels[b, :size, :n].tolist()]
        assert [oracle.score(lattice, b, y) for y in labellings] == pytest.approx([s for s, _ in ranked], abs=1e-9)
        assert len(set(labellings)) == size
        assert not found.labels[b, :, n:].any()
        assert not found.labels[b, size:].any()
        assert (found.scores[b, size:] == -torch.inf).all()


def test_long_sequences_agree_with_longer_lists(documents: Lattice) -> None:
    found, longer = two_best(documents), kbest(documents, 3)
    torch.testing.assert_close(found.scores, longer.scores[:, :2])
    assert found.labels.equal(longer.labels[:, :2])
    assert found.valid.equal(longer.valid[:, :2])


def test_cuda_equals_cpu(documents: Lattice, cuda: torch.device) -> None:
    assert two_best(Lattice(*(x.to(cuda) for x in documents))).labels.cpu().equal(two_best(documents).labels)
