"""Negative log-likelihoods: CRF, MEMM and token cross-entropy."""

import math

import pytest
import torch
from torch.nn.functional import cross_entropy

from structperc.chain import kbest, log_partition, marginals, viterbi
from structperc.chain.restrictions import constrain
from structperc.criteria import DistillationLoss, MEMMLoss, TokenCrossEntropyLoss
from structperc.criteria.base import score_candidates
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.structures import Lattice
from tests import oracle
from tests.criteria.batches import random_gold, random_lattice, scored_of

IOB2 = LabelSet(("O", "B-X", "I-X", "B-Y", "I-Y"))


def sums_of_cross_entropies(lattice, gold):
    """One softmax per token, with the edges from the gold label before."""
    rows = torch.arange(len(gold))[:, None]
    steps = torch.arange(gold.shape[1])
    along = lattice.edge.expand(*lattice.unary.shape, -1)[rows, steps, gold.roll(1, 1)]
    scores = lattice.unary + along.where(steps[:, None] > 0, 0)
    losses = cross_entropy(scores.flatten(0, 1), gold.flatten(), reduction="none").view(gold.shape)
    return losses.where(steps < lattice.lengths[:, None], 0).sum(1)


def criterion_losses(lattice, gold):
    """As a tagger asks for them."""
    return MEMMLoss()(scored_of(lattice, gold, MEMMLoss(), 1))


def constrained(seed, stationary):
    """A random lattice under IOB2, and its best labelling, which is legal, as gold."""
    lattice = random_lattice(seed, T=6, L=5, lengths=(6, 3, 1, 0, 5))
    lattice = lattice._replace(edge=lattice.edge[:1, :1]) if stationary else lattice
    lattice = constrain(lattice, IOB2.start, IOB2.transition, IOB2.end)
    return lattice, kbest(lattice, 1).labels[:, 0]


@pytest.mark.parametrize("stationary", [True, False])
def test_memm_loss_is_a_sum_of_cross_entropies(stationary):
    lattice, gold = constrained(0, stationary)
    losses = criterion_losses(lattice, gold)
    torch.testing.assert_close(losses, sums_of_cross_entropies(lattice, gold))


@pytest.mark.parametrize("stationary", [True, False])
def test_gradients_of_cross_entropies(stationary):
    lattice, gold = constrained(5, stationary)
    legal = lattice.unary > -torch.inf, lattice.edge > -torch.inf
    gradients = []
    for losses_of in (criterion_losses, sums_of_cross_entropies):
        inputs = [torch.ones_like(mask, dtype=torch.float64).cumsum(-1).requires_grad_() for mask in legal]
        unary, edge = (x.where(mask, -torch.inf) for x, mask in zip(inputs, legal, strict=True))
        losses_of(Lattice(unary, edge, lattice.lengths), gold).sum().backward()
        gradients.append([x.grad for x in inputs])
    torch.testing.assert_close(*gradients)
    assert gradients[0][1].any()


def test_scores_are_log_probabilities():
    lattice, gold = constrained(1, False)
    scored = scored_of(lattice, gold, MEMMLoss(), 5**6)
    shares = scored.candidate_scores.exp().where(scored.candidates.valid, 0)
    torch.testing.assert_close(shares.sum(1), torch.ones(5).double())
    torch.testing.assert_close(log_partition(scored.lattice), torch.zeros(5).double(), rtol=0, atol=1e-12)
    torch.testing.assert_close(scored.gold_scores, -MEMMLoss()(scored))


def test_impossible_gold():
    unary = torch.zeros(1, 2, 2).masked_fill(torch.tensor([[[False, False], [False, True]]]), -torch.inf)
    unary.requires_grad_()
    lattice = Lattice(unary, torch.zeros(1, 1, 2, 2), torch.tensor([2]))
    loss = criterion_losses(lattice, torch.tensor([[0, 1]]))
    assert loss.item() == math.inf
    loss.sum().backward()
    assert unary.grad.isfinite().all()


def test_token_decoding_ignores_edges():
    lattice = random_lattice(1)
    read = TokenCrossEntropyLoss().transform_lattice(lattice._replace(edge=100 * lattice.edge))
    _, labels = viterbi(read)
    real = torch.arange(4) < lattice.lengths[:, None]
    assert torch.equal(labels, lattice.unary.argmax(2).where(real, 0))


def test_probabilities_are_softmaxes():
    lattice = random_lattice(2)
    read = TokenCrossEntropyLoss().transform_lattice(lattice)
    real = (torch.arange(4) < lattice.lengths[:, None])[:, :, None]
    torch.testing.assert_close(marginals(read).where(real, 0), lattice.unary.softmax(2).where(real, 0))
    torch.testing.assert_close(log_partition(read), torch.zeros(5).double(), rtol=0, atol=1e-12)


def test_start_constraint_and_half_precision():
    labels = LabelSet(("O", "B-X", "I-X"))
    lattice = random_lattice(3)
    barred = constrain(lattice, labels.start, labels.transition, labels.end)
    assert TokenCrossEntropyLoss().transform_lattice(barred).unary[0, 0].exp().tolist()[2] == 0
    half = lattice._replace(unary=lattice.unary.bfloat16(), edge=lattice.edge.bfloat16())
    assert TokenCrossEntropyLoss().transform_lattice(half).unary.dtype == torch.float32


def taught(student, teacher, k):
    """What a tagger gives the criterion: the k best of a teacher, with the scores of the student."""
    return score_candidates(student, random_gold(student), kbest(teacher, k))


def test_cross_entropy_of_a_teacher():
    """With all label sequences in the list it is the cross-entropy of the two distributions."""
    student, teacher = random_lattice(0), random_lattice(1)
    losses = DistillationLoss()(taught(student, teacher, 3**4))
    for b in range(5):
        scores, log_z = (
            {path: score for score, path in oracle.sorted_paths(student, b)},
            oracle.log_partition(student, b),
        )
        expected = sum(p * (log_z - scores[path]) for p, path in oracle.probabilities(teacher, b))
        assert losses[b].item() == pytest.approx(expected)


def test_gradients_of_distillation():
    student, teacher = random_lattice(0), random_lattice(1)

    def losses(unary, edge):
        return DistillationLoss(gold_share=0.2)(taught(student._replace(unary=unary, edge=edge), teacher, 7))

    assert torch.autograd.gradcheck(losses, (student.unary.requires_grad_(), student.edge.requires_grad_()))


def test_invalid_share_of_gold():
    with pytest.raises(InputError, match="gold_share"):
        DistillationLoss(gold_share=1.5)
