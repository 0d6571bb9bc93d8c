import oracle
import pytest
import torch

from structperc.chain import kbest, max_marginals, viterbi
from structperc.structures import Lattice


def test_matches_enumeration(lattice: Lattice) -> None:
    found = max_marginals(lattice)
    for b in range(len(found)):
        expected = torch.full_like(found[b], -torch.inf)
        for score, labelling in reversed(oracle.ranked(lattice, b)):
            expected[range(len(labelling)), labelling] = score
        torch.testing.assert_close(found[b], expected)


def test_second_best_is_the_best_other_label(documents: Lattice) -> None:
    found = max_marginals(documents)
    scores, labels = viterbi(documents)
    others = found.scatter(2, labels.unsqueeze(2), -torch.inf).flatten(1).amax(1)
    torch.testing.assert_close(others, kbest(documents, 2).scores[:, 1])
    assert found[0].amax(1)[:300].tolist() == pytest.approx([scores[0].item()] * 300)


def test_half_precision_is_upcast(documents: Lattice) -> None:
    half = Lattice(documents.unary.half(), documents.edge.half(), documents.lengths)
    assert max_marginals(half).dtype == torch.float32


def test_cuda_equals_cpu(documents: Lattice, cuda: torch.device) -> None:
    torch.testing.assert_close(max_marginals(Lattice(*(x.to(cuda) for x in documents))).cpu(), max_marginals(documents))
