"""Criteria on sets of allowed labels, by enumeration."""

import math
from itertools import pairwise, product

import pytest
import torch

from structperc.chain import KBest, kbest
from structperc.criteria import (
    CRFLoss,
    EntityRatio,
    HingeLoss,
    LocalAndNonlocal,
    Logistic,
    MarginLoss,
    MaxMeasure,
    MCEFLoss,
    MCELoss,
    PerceptronLoss,
    SoftMaxMeasure,
)
from structperc.criteria.base import score_candidates
from structperc.data import LabelSet
from structperc.errors import InputError
from structperc.nn import ChainHead
from structperc.nn.candidate_scorer import best_allowed_by_total
from structperc.structures import Lattice

NAMES = ["O", "B-X", "I-X"]
L, LENGTHS = 3, [3, 1, 2]


@pytest.fixture
def given():
    """Return logits (3, 3, 3) float64, transitions and sets of labels, the second row complete."""
    generator = torch.Generator().manual_seed(1)
    logits, edge = torch.randn(3, 3, L, generator=generator).double(), torch.randn(L, L, generator=generator).double()
    allowed = torch.zeros(3, 3, L, dtype=torch.bool)
    allowed[0] = torch.tensor([[1, 1, 1], [1, 0, 1], [1, 1, 0]])
    allowed[1, 0, 1] = True
    allowed[2, :2] = torch.tensor([[0, 1, 1], [1, 1, 1]])
    return logits, edge, allowed


def head_of(criterion, edge, k=1):
    head = ChainHead(NAMES, criterion, search=KBest(k)).double()
    with torch.no_grad():
        head.transitions.copy_(edge)
    return head


def paths(logits, edge, allowed, b):
    """Return the scores of the legal paths of a row: allowed ones, and others, by path."""
    inside, outside = {}, {}
    for path in product(range(L), repeat=LENGTHS[b]):
        if path[0] == 2 or any(a == 0 and c == 2 for a, c in pairwise(path)):
            continue
        score = sum(logits[b, t, y] for t, y in enumerate(path)) + sum(edge[a, c] for a, c in pairwise(path))
        (inside if all(allowed[b, t, y] for t, y in enumerate(path)) else outside)[path] = float(score)
    return inside, outside


def test_partial_likelihood(given):
    logits, edge, allowed = given
    losses = head_of(CRFLoss(), edge)(logits, allowed, reduction="none").tolist()
    for b in range(3):
        inside, outside = (torch.tensor(list(one.values())).double() for one in paths(logits, edge, allowed, b))
        wanted = torch.cat([inside, outside]).logsumexp(0) - inside.logsumexp(0)
        assert losses[b] == pytest.approx(float(wanted), 1e-5)


def test_missed_entities_have_their_probability(given):
    logits, edge, allowed = given
    losses = head_of(CRFLoss(missed_share=0.25), edge)(logits, allowed, reduction="none").tolist()
    for b in range(3):
        inside, outside = paths(logits, edge, allowed, b)
        missed = [sum(y == 1 and bool(allowed[b, t, 0]) for t, y in enumerate(path)) for path in inside]
        scores = torch.tensor([*inside.values(), *outside.values()]).double()
        observed = torch.tensor([s + math.log(0.25) * n for s, n in zip(inside.values(), missed, strict=True)])
        assert losses[b] == pytest.approx(float(scores.logsumexp(0) - observed.double().logsumexp(0)), 1e-5)
    as_outside = torch.tensor([[0, 0, 0], [1, 0, 0], [1, 0, 0]])  # m = 0: unknown tokens are O
    found = head_of(CRFLoss(missed_share=0.0), edge)(logits, allowed, reduction="none").tolist()
    assert found[1] == pytest.approx(losses[1])
    assert found[0] == pytest.approx(head_of(CRFLoss(), edge)(logits[:1], as_outside[:1]).item(), 1e-5)


def expected(criterion, inside, outside):
    """Return the loss of the definition: best allowed path against the best path outside, with its cost."""
    gold = max(inside, key=inside.get)
    cost = getattr(criterion, "cost", 0.0)
    costs = {y: s + cost * sum(a != b for a, b in zip(y, gold, strict=True)) for y, s in outside.items()}
    gap = inside[gold] - max(costs.values())
    if isinstance(criterion, MarginLoss):
        return -gap if gap <= criterion.C else 0.0
    return max(0.0, -gap)


@pytest.mark.parametrize(("criterion", "k"), [(PerceptronLoss(), 1), (MarginLoss(C=2.0), 2), (HingeLoss(1.5), 1)])
def test_best_allowed_path_against_best_other_path(given, criterion, k):
    logits, edge, allowed = given
    for scale in (1.0, -1.0, 0.1):
        losses = head_of(criterion, edge, k)(scale * logits, allowed, reduction="none")
        wanted = [expected(criterion, *paths(scale * logits, edge, allowed, b)) for b in range(3)]
        assert losses.tolist() == pytest.approx(wanted, abs=1e-5)


def expected_with_nonlocal(criterion, local, total, right):
    """Return the steps of Algorithm 4.2 for the best allowed path by total score, or only (A) for a margin."""
    gold = max((path for path in total if path in right), key=total.get)
    wrong = [path for path in total if path not in right]
    gap = total[gold] - max(map(total.get, wrong))
    if gap <= criterion.C:
        return -gap
    local_gap = local[gold] - max(map(local.get, wrong))
    return -local_gap if isinstance(criterion, LocalAndNonlocal) and local_gap <= criterion.C_local else 0.0


@pytest.mark.parametrize("criterion", [MarginLoss(C=0.5), LocalAndNonlocal(C=0.2, C_local=3.0)])
def test_best_allowed_path_by_total_score(given, criterion):
    """Lists of all paths: local scores are those of the lattice, non-local ones random."""
    logits, edge, allowed = given
    generator = torch.Generator().manual_seed(2)
    head = head_of(criterion, edge, 27)
    padding = torch.arange(3) >= torch.tensor(LENGTHS)[:, None]
    for _ in range(4):
        lattice = head.constraints(Lattice(logits, edge[None, None], torch.tensor(LENGTHS)))
        candidates = kbest(lattice, 27)
        gold = candidates.labels[:, 0] * 0
        for b in range(3):  # any allowed path
            path = next(iter(paths(logits, edge, allowed, b)[0]))
            gold[b, : len(path)] = torch.tensor(path)
        more = 2 * torch.randn(3, 28, generator=generator).double()
        for b in range(3):  # the gold labels are one of the candidates
            more[b, 0] = more[b, 1 + (candidates.labels[b] == gold[b]).all(1).long().argmax()]
        scored = score_candidates(lattice, gold, candidates)._replace(
            gold_nonlocal=more[:, 0], candidate_nonlocal=more[:, 1:], allowed=allowed | padding[:, :, None]
        )
        losses = criterion(best_allowed_by_total(scored))
        for b in range(3):
            inside, outside = paths(logits, edge, allowed, b)
            local = inside | outside
            ids = {
                tuple(candidates.labels[b, k, : LENGTHS[b]].tolist()): k for k in range(int(candidates.valid[b].sum()))
            }
            total = {path: score + float(more[b, 1 + ids[path]]) for path, score in local.items()}
            assert float(losses[b]) == pytest.approx(expected_with_nonlocal(criterion, local, total, inside), abs=1e-9)


@pytest.mark.parametrize("criterion", [CRFLoss(), PerceptronLoss(), MarginLoss(C=2.0), HingeLoss()])
def test_complete_labels_give_the_same_losses(given, criterion):
    logits, edge, _ = given
    gold = torch.tensor([[1, 2, 0], [1, -100, -100], [0, 1, -100]])
    head = head_of(criterion, edge, 2)
    sets = torch.nn.functional.one_hot(gold.clamp(min=0), L).bool() & (gold >= 0)[:, :, None]
    known = head(logits, gold, reduction="none")
    assert head(logits, sets, reduction="none").tolist() == pytest.approx(known.tolist(), abs=1e-6)


def test_gradient_of_partial_likelihood_with_ratio(given):
    logits, edge, allowed = given
    head = head_of(CRFLoss(EntityRatio(ratio=0.1, margin=0.0, weight=2.0)), edge)
    marginals = head.marginals(logits, allowed.any(2))
    share = float(marginals[..., 1:].sum().detach()) / 6
    plain = head_of(CRFLoss(), edge)(logits, allowed, reduction="none")
    penalised = head(logits, allowed, reduction="none")
    assert (penalised - plain).tolist() == pytest.approx([2 * abs(share - 0.1)] * 3, abs=1e-5)

    def penalty(unary):
        return head.criterion.entity_ratio(Lattice(unary, edge[None, None], torch.tensor(LENGTHS)))

    assert torch.autograd.gradcheck(penalty, logits.requires_grad_())


@pytest.mark.parametrize("measure", [MaxMeasure(), SoftMaxMeasure(psi=2.0), SoftMaxMeasure(0.5, normalised=False)])
def test_classification_error_of_sets(given, measure):
    logits, edge, allowed = given
    losses = head_of(MCELoss(measure, Logistic()), edge, 2)(logits, allowed, reduction="none").tolist()
    for b in range(3):
        inside, outside = (torch.tensor(list(one.values())).double() for one in paths(logits, edge, allowed, b))
        if isinstance(measure, MaxMeasure):
            d = outside.max() - inside.max()
        else:
            d = (measure.psi * outside).logsumexp(0) - (measure.psi * inside).logsumexp(0)
            d -= math.log(len(outside) / len(inside)) if measure.normalised else 0
            d /= measure.psi
        assert losses[b] == pytest.approx(math.log1p(math.exp(d)), 1e-5)


def test_classification_error_of_sets_with_scores_by_token(given):
    """With psi = 1 and sums in place of means it is the partial likelihood; rows without a rival have no loss."""
    logits, edge, allowed = given
    edges = edge.expand(3, 3, L, L) + torch.randn(3, 3, L, L, generator=torch.Generator().manual_seed(3)).double()
    lattice = Lattice(logits.requires_grad_(), edges, torch.tensor(LENGTHS))
    allowed = allowed | (torch.arange(3) >= torch.tensor(LENGTHS)[:, None])[:, :, None]
    allowed[2] = True
    scored = score_candidates(lattice, torch.zeros(3, 3).long(), kbest(lattice, 2))._replace(allowed=allowed)
    found, wanted = (
        criterion(scored) for criterion in (MCELoss(SoftMaxMeasure(1.0, normalised=False), Logistic()), CRFLoss())
    )
    torch.testing.assert_close(found, wanted)
    gradients = [torch.autograd.grad(loss.sum(), logits, retain_graph=True)[0] for loss in (found, wanted)]
    torch.testing.assert_close(*gradients)
    assert found[2] == 0


def test_errors(given):
    logits, edge, allowed = given
    with pytest.raises(InputError, match="MCEFLoss"):
        head_of(MCEFLoss(), edge, 2)(logits, allowed)
    illegal = torch.zeros_like(allowed)
    illegal[1, :2] = torch.tensor([[1, 0, 0], [0, 0, 1]])
    with pytest.raises(InputError, match="row 1, position 1"):
        head_of(CRFLoss(), edge)(logits, illegal)
    with pytest.raises(InputError, match="EntityRatio"):
        CRFLoss(EntityRatio()).allocate(LabelSet(("NN", "VB"), "none"))
    with pytest.raises(InputError, match="ratio"):
        EntityRatio(ratio=2.0)
