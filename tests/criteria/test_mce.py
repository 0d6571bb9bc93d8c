"""Misclassification measures and smoothing of Suzuki, McDermott & Isozaki (2006): limits, identities, hard cases."""

import math

import pytest
import torch

from structperc.criteria import Logistic, MaxMeasure, MCELoss, PowerMean, Sigmoid, SoftMaxMeasure
from structperc.criteria.mce import PowerRatio
from structperc.criteria.wrong_paths import log_number_of_wrong_paths, log_sum_of_wrong_paths
from structperc.errors import InputError
from structperc.structures import Candidates, Lattice, Scored
from tests import oracle
from tests.criteria.batches import random_gold, random_lattice, row, scored_of


def sum_over_rivals(lattice, gold, b, psi):
    """log sum of exp(psi (s - s*)) over all labellings but gold, and how many there are."""
    n = int(lattice.lengths[b])
    own = tuple(gold[b, :n].tolist())
    best = oracle.score(lattice, b, own)
    leads = [psi * (score - best) for score, labelling in oracle.sorted_paths(lattice, b) if labelling != own]
    return (torch.tensor(leads, dtype=torch.float64).logsumexp(0).item() if leads else -math.inf), len(leads)


def lattices(kind, seed):
    lattice = random_lattice(seed, B=6, lengths=(4, 3, 1, 2, 0, 4))
    unary, edge, lengths = oracle.tables(lattice)
    if kind == "stationary":
        edge = edge[:1, :1]
    if kind == "expanded":
        edge = edge[:1, :1].expand_as(edge)
    if kind == "by token":
        edge = edge[:1]
    if kind == "by sequence":
        edge = edge[:, :1]
    if kind == "ties":
        unary, edge = unary.round(), edge.round()
    if kind == "poisoned":
        padding = torch.arange(4) >= lengths[:, None]
        unary[padding], edge[padding], edge[:, 0] = torch.nan, torch.nan, torch.nan
    gold = random_gold(lattice, seed)
    if kind == "impossible":  # gold stays possible
        keep = torch.zeros_like(unary, dtype=torch.bool).scatter_(2, gold[:, :, None], True)
        unary = unary.masked_fill((torch.rand(unary.shape) < 0.5) & ~keep, -torch.inf)
        before = torch.nn.functional.one_hot(gold.roll(1, 1), 3).bool()
        edge = edge.masked_fill((torch.rand(edge.shape) < 0.5) & ~(before[..., None] & keep[:, :, None]), -torch.inf)
    return Lattice(unary, edge, lengths), gold


@pytest.mark.parametrize("psi", [0.3, 4.0])
@pytest.mark.parametrize("kind", ["dense", "stationary", "by token", "by sequence", "ties", "poisoned", "impossible"])
def test_sums_over_rivals_equal_enumeration(kind, psi):
    torch.manual_seed(0)
    lattice, gold = lattices(kind, 0)
    expected = [sum_over_rivals(lattice, gold, b, psi) for b in range(6)]
    totals = log_sum_of_wrong_paths(lattice, gold, psi)
    torch.testing.assert_close(totals, torch.tensor([total for total, _ in expected], dtype=torch.float64))
    numbers = torch.tensor([float(number) for _, number in expected], dtype=torch.float64)
    torch.testing.assert_close(log_number_of_wrong_paths(lattice).exp(), numbers)


@pytest.mark.parametrize("kind", ["dense", "stationary", "expanded", "poisoned", "impossible"])
def test_gradient_equals_enumeration(kind):
    torch.manual_seed(1)
    lattice, gold = lattices(kind, 1)
    unary, edge = lattice.unary.clone().requires_grad_(), lattice.edge.clone().requires_grad_()
    if kind == "expanded":
        edge = lattice.edge[:1, :1].clone().requires_grad_()
    given = Lattice(unary, edge.expand_as(lattice.edge), lattice.lengths)
    SoftMaxMeasure(1.7)(scored_of(given, gold, MCELoss(SoftMaxMeasure(1.7)), 1))[0].sum().backward()
    expected_unary, expected_edge = torch.zeros_like(lattice.unary), torch.zeros(6, 4, 3, 3, dtype=torch.float64)
    for b in range(6):
        n = int(lattice.lengths[b])
        own = tuple(gold[b, :n].tolist())
        rivals = [(score, y) for score, y in oracle.sorted_paths(lattice, b) if y != own]
        weights = torch.tensor([1.7 * score for score, _ in rivals], dtype=torch.float64).softmax(0).tolist()
        if rivals:
            for p, y in [*zip(weights, [y for _, y in rivals], strict=True), (-1.0, own)]:
                for t in range(n):
                    expected_unary[b, t, y[t]] += p
                    if t:
                        expected_edge[b, t, y[t - 1], y[t]] += p
    torch.testing.assert_close(unary.grad, expected_unary)
    stationary = len(edge) == 1
    torch.testing.assert_close(edge.grad, expected_edge.sum((0, 1), keepdim=True) if stationary else expected_edge)


@pytest.mark.parametrize("edge", [torch.zeros(1, 1, 4, 4), torch.zeros(3, 0, 4, 4)], ids=["stationary", "dense"])
def test_no_tokens_and_no_rivals(edge):
    lattice = Lattice(torch.zeros(3, 0, 4), edge, torch.zeros(3, dtype=torch.int64))
    assert (log_sum_of_wrong_paths(lattice, torch.zeros(3, 0, dtype=torch.int64), 1.0) == -torch.inf).all()
    assert (log_number_of_wrong_paths(lattice) == -torch.inf).all()


@pytest.mark.parametrize(("stationary", "psi", "dtype"), [(True, 30.0, torch.float32), (False, 1.0, torch.float64)])
def test_gold_with_nearly_all_mass(stationary, psi, dtype):
    exact = random_lattice(6)
    exact = exact._replace(edge=exact.edge[:1, :1]) if stationary else exact
    gold = random_gold(exact, 6)
    lead = 50.0 * torch.nn.functional.one_hot(gold, 3)
    exact = exact._replace(unary=exact.unary + lead)
    unary = exact.unary.to(dtype).requires_grad_()
    lattice = Lattice(unary, exact.edge.to(dtype), exact.lengths)
    d, exists = SoftMaxMeasure(psi, normalised=False)(scored_of(lattice, gold, MCELoss(SoftMaxMeasure()), 1))
    expected = [sum_over_rivals(exact, gold, b, psi)[0] / psi for b in range(5)]
    assert exists.all()
    torch.testing.assert_close(d.double(), torch.tensor(expected, dtype=torch.float64), atol=2e-5, rtol=1e-6)
    d.sum().backward()
    assert unary.grad.isfinite().all()
    torch.testing.assert_close(unary.grad.sum(), unary.grad.new_zeros(()), atol=1e-5, rtol=0)
    assert (unary.grad.gather(2, gold[:, :, None]).sum(1) < -0.99).all()  # some label of the best rivals is not gold's


def test_a_rival_exists_or_the_loss_is_zero():
    unary = torch.zeros(3, 2, 2, dtype=torch.float64)
    unary[0, :, 1] = -torch.inf  # one labelling; two; none but the empty one
    unary[1, 0, 1] = -torch.inf
    unary.requires_grad_()
    lattice = Lattice(unary, torch.zeros(1, 1, 2, 2, dtype=torch.float64), torch.tensor([2, 2, 0]))
    gold = torch.zeros(3, 2, dtype=torch.int64)
    for measure in (MaxMeasure(), SoftMaxMeasure(), SoftMaxMeasure(3.0, normalised=False), PowerMean(), PowerRatio()):
        for smoothing in (Sigmoid(), Logistic()):
            losses, acts = MCELoss(measure, smoothing).losses_and_updates(scored_of(lattice, gold, MCELoss(), 3))
            assert acts.tolist() == [False, True, False]
            assert losses[0] == losses[2] == 0
            assert losses[1] > 0
            (gradient,) = torch.autograd.grad(losses.sum(), unary)
            assert gradient.isfinite().all()
            assert not gradient[::2].any()
            assert gradient[1].any()


def random_list(seed, K=4, B=6):
    """Total scores of gold and of candidates, in two parts; gold in the list (first), outside of it, invalid rows."""
    generator = torch.Generator().manual_seed(seed)
    lattice = Lattice(torch.zeros(B, 1, K + 1), torch.zeros(1, 1, K + 1, K + 1), torch.ones(B, dtype=torch.int64))
    labels = torch.arange(K).view(1, K, 1).repeat(B, 1, 1)
    valid = torch.rand(B, K, generator=generator) < 0.7
    valid[:, 0] = True
    valid[0, 1:] = False
    gold = torch.tensor([0, 0, 0, K, K, K]).unsqueeze(1)
    local, more = (torch.randn(B, K + 1, generator=generator, dtype=torch.float64) for _ in range(2))
    own = gold.squeeze(1)
    rows = torch.arange(B)
    candidates = Candidates(labels, local[:, :K], valid)
    return Scored(lattice, gold, candidates, local[rows, own], local[:, :K], more[rows, own], more[:, :K])


@pytest.mark.parametrize("psi", [0.5, 3.0])
def test_measures_of_lists_equal_naive_arithmetic(psi):
    scored = random_list(0)
    total = scored.candidate_scores + scored.candidate_nonlocal
    for b in range(6):
        gold = math.exp(scored.gold_scores[b] + scored.gold_nonlocal[b])
        listed = zip(scored.candidates.labels[b, :, 0].tolist(), scored.candidates.valid[b], total[b], strict=True)
        rivals = [math.exp(score) for label, valid, score in listed if valid and label != scored.gold[b, 0]]
        one = Scored(row(scored.lattice, b), *(x[b : b + 1] if torch.is_tensor(x) else None for x in scored[1:]))
        one = one._replace(candidates=Candidates(*(x[b : b + 1] for x in scored.candidates)))
        for measure in (MaxMeasure(), PowerMean(psi), PowerRatio(psi)):
            d, exists = measure(one)
            assert exists.item() == (len(rivals) > 0)
            if rivals:
                mean = (sum(g**psi for g in rivals) / len(rivals)) ** (1 / psi)
                expected = {
                    MaxMeasure: math.log(max(rivals) / gold),
                    PowerMean: (mean - gold) / (gold + sum(rivals)),
                    PowerRatio: mean / gold,
                }
                assert d.item() == pytest.approx(expected[type(measure)])
            torch.testing.assert_close(measure(scored)[0][b : b + 1], d)


@pytest.mark.parametrize("smoothing", [Sigmoid(), Sigmoid(5.0), Logistic()])
def test_a_hopeless_ratio_keeps_finite_gradients(smoothing):
    scored = random_list(0)
    for gold in (
        scored.gold_scores.float() - 1e4,
        torch.full((len(scored.gold),), -torch.inf),
    ):  # the latter is illegal
        own, others = gold.requires_grad_(), scored.candidate_scores.float().requires_grad_()
        losses = MCELoss(PowerRatio(), smoothing)(scored._replace(gold_scores=own, candidate_scores=others))
        assert losses.isfinite().all()
        assert all(x.isfinite().all() for x in torch.autograd.grad(losses.sum(), (own, others)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_smoothing_at_its_ends(dtype):
    d = torch.tensor([-torch.inf, -1e4, -1.0, 0.0, 1.0, 1e4, torch.inf], dtype=dtype, requires_grad=True)
    alpha, beta = 2.0, 0.5
    x = [-math.inf, -math.inf, -1.5, 0.5, 2.5, math.inf, math.inf]
    share = torch.tensor([1 / (1 + math.exp(-v)) if v > -math.inf else 0.0 for v in x], dtype=dtype)
    sigmoid, logistic = Sigmoid(alpha, beta), Logistic(alpha, beta)
    torch.testing.assert_close(sigmoid(d), share)
    torch.testing.assert_close(sigmoid.complement(d), 1 - share)
    torch.testing.assert_close(torch.autograd.grad(sigmoid(d).sum(), d)[0], alpha * share * (1 - share))
    inner = [math.log(1 + math.exp(v)) / alpha for v in x[2:5]]
    torch.testing.assert_close(logistic(d), torch.tensor([0, 0, *inner, 1e4 + beta / alpha, math.inf], dtype=dtype))
    torch.testing.assert_close(torch.autograd.grad(logistic(d).sum(), d)[0], share)


def test_smoothing_keeps_small_values():
    d = torch.tensor([-40.0, 40.0])
    assert Sigmoid()(d)[0].item() == pytest.approx(math.exp(-40))
    assert Sigmoid().complement(d)[1].item() == pytest.approx(math.exp(-40))
    assert Logistic()(d).tolist() == pytest.approx([math.exp(-40), 40.0])
    assert Logistic()(torch.tensor(25.0, dtype=torch.float64)).item() == pytest.approx(math.log1p(math.exp(25)), abs=0)


def test_bad_options_are_named():
    for make, name in (
        (lambda: Sigmoid(0.0), "Sigmoid: alpha"),
        (lambda: Logistic(-1.0), "Logistic: alpha"),
        (lambda: Logistic(math.nan), "Logistic: alpha"),
        (lambda: SoftMaxMeasure(0.0), "SoftMaxMeasure: psi"),
        (lambda: SoftMaxMeasure(math.inf), "SoftMaxMeasure: psi .* MaxMeasure"),
        (lambda: PowerMean(-1.0), "PowerMean: psi"),
        (lambda: PowerRatio(math.inf), "PowerRatio: psi"),
    ):
        with pytest.raises(InputError, match=name):
            make()


def test_min_candidates():
    lattice = random_lattice(0)
    assert [MCELoss(m).min_candidates for m in (None, SoftMaxMeasure(), PowerMean(), PowerRatio())] == [2, 0, 2, 2]
    with pytest.raises(ValueError, match=r"MCELoss .*K=1; .*search\.k >= 2"):
        MCELoss()(scored_of(lattice, random_gold(lattice), MCELoss(), 1))
