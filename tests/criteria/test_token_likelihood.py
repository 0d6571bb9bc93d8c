"""The softmax head against torch's cross-entropy."""

import torch
from torch.nn.functional import cross_entropy

from structperc.chain import constrain, log_partition, marginals, viterbi
from structperc.criteria import TokenCrossEntropyLoss
from structperc.data.labels import LabelSet
from structperc.structures import Lattice
from tests.criteria.batches import random_gold, random_lattice, scored_of


def test_loss_is_a_sum_of_cross_entropies_and_has_their_gradient():
    lattice = random_lattice(0, lengths=(4, 3, 1, 0, 2))
    gold, real = random_gold(lattice), torch.arange(4) < lattice.lengths[:, None]
    unary = lattice.unary.clone().requires_grad_()
    losses = TokenCrossEntropyLoss()(
        scored_of(Lattice(unary, lattice.edge, lattice.lengths), gold, TokenCrossEntropyLoss(), 1)
    )
    (ours,) = torch.autograd.grad(losses.sum(), unary)
    apart = cross_entropy(unary.flatten(0, 1), gold.flatten(), reduction="none").view(gold.shape).where(real, 0)
    torch.testing.assert_close(losses, apart.sum(1))
    torch.testing.assert_close(ours, torch.autograd.grad(apart.sum(), unary)[0])
    assert losses[3] == 0


def test_each_label_is_the_best_of_its_token_whatever_the_edges_are():
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


def test_a_label_that_cannot_begin_has_no_share_and_half_precision_is_upcast():
    labels = LabelSet(("O", "B-X", "I-X"))
    lattice = random_lattice(3)
    barred = constrain(lattice, labels.start, labels.transition, labels.end)
    assert TokenCrossEntropyLoss().transform_lattice(barred).unary[0, 0].exp().tolist()[2] == 0
    half = lattice._replace(unary=lattice.unary.bfloat16(), edge=lattice.edge.bfloat16())
    assert TokenCrossEntropyLoss().transform_lattice(half).unary.dtype == torch.float32
