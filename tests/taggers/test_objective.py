"""What an optimizer is given, against the objective of the whole corpus by plain loops or one dense batch, float64."""

import pytest
import torch

from structperc.criteria import CRFLoss, MCEFLoss, MCELoss, Prior, SoftMaxMeasure
from structperc.datamodules.encoded import PrecomputedBatches
from structperc.datamodules.sampler import LengthBatchSampler
from structperc.errors import InputError
from structperc.optim import GPD, LBFGS, OWLQN, SequentialOptimizers
from structperc.optim.base import TrainingProtocol
from structperc.optim.full_batch import DivergenceError
from tests.tiny import EDGE, ExplodesInBatches, Loops, Sentences, fit, make_tagger, sentences, weights_of, whole

C = 3.0


class Steps(torch.optim.Optimizer):
    """Gradient descent that notes value, weights and gradients of every step."""

    def __init__(self, params, lr=0.0):
        super().__init__(params, {"lr": lr})
        self.seen = []

    @torch.no_grad()
    def step(self, closure):
        with torch.enable_grad():
            value = float(closure())
        params = self.param_groups[0]["params"]
        self.sparse = any(p.grad.is_sparse for p in params)
        gradients = [p.grad.to_dense().clone() for p in params]
        self.seen.append((value, [p.double().clone() for p in params], gradients))
        for p, gradient in zip(params, gradients, strict=True):
            p.sub_(self.param_groups[0]["lr"] * gradient)
        return value


class WholeSteps(Steps, TrainingProtocol):
    full_batch = True


class ThreeSteps(WholeSteps):
    @property
    def stop_reason(self):
        return "that was enough" if len(self.seen) >= 3 else None


def make_data(n=11, **options):
    return Sentences(sentences(n), **{"batch_size": 4, **options})


def batches_of(data, batch_size):
    rows = data.encoded("train")
    return PrecomputedBatches(rows, LengthBatchSampler(rows.lengths, batch_size, shuffle=False)).batches


def naive(tagger, data, weights, which=None):
    """The criterion's part of the objective; weights (float64, with gradients) -> scalar."""
    rows, criterion = data.encoded("train"), tagger.criterion
    if isinstance(criterion, CRFLoss):
        return Loops(tagger, rows)(weights, which)
    scored = whole(tagger, rows, weights, which)
    if isinstance(criterion, MCEFLoss):
        return criterion.objective(criterion.counts(scored).sum(0))
    return criterion(scored).sum()


def penalty(weights, prior):
    return sum((w.abs() ** prior.phi).sum() for w in weights) / (prior.phi * prior.C)


def assert_objective(step, value, weights):
    """That the step was given this value, and its gradient."""
    seen, _, gradients = step
    assert seen == pytest.approx(float(value), rel=1e-5)
    assert_gradients(gradients, value, weights)


def assert_gradients(gradients, value, weights):
    expected = torch.autograd.grad(value, weights)
    assert any(gradient.any() for gradient in gradients)
    for gradient, right in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient.double(), right, rtol=1e-4, atol=1e-5)


def leaves(step):
    return [w.clone().requires_grad_() for w in step[1]]


CRITERIA = {
    "likelihood": (CRFLoss, 2),
    "mce": (MCELoss, 2),
    "soft mce": (lambda: MCELoss(SoftMaxMeasure(psi=2.0)), 1),
    "mce_f": (MCEFLoss, 2),
}


# -- one step per epoch --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shuffle", "edge"),
    [("likelihood", True, EDGE), ("mce", False, ()), ("soft mce", True, ()), ("mce_f", True, EDGE)],
)
def test_objective_and_gradient_of_the_corpus(name, shuffle, edge):
    make, phi = CRITERIA[name]
    data, prior = make_data(shuffle=shuffle), Prior(C, phi)
    tagger = make_tagger(data, make(), lambda p: WholeSteps(p, lr=0.1), edge=edge, prior=prior)
    trainer = fit(tagger, data, 3)
    seen = trainer.optimizers[0].seen
    assert len(seen) == 3
    for step in seen:
        weights = leaves(step)
        assert_objective(step, naive(tagger, data, weights) + penalty(weights, prior), weights)
    assert float(trainer.callback_metrics["train/objective"]) == pytest.approx(seen[-1][0], rel=1e-6)
    assert not torch.equal(seen[0][1][0], seen[-1][1][0])


@pytest.mark.parametrize("name", ["likelihood", "mce_f"])
def test_sparse_gradients_and_no_prior(name):
    data = make_data(shuffle=True)
    tagger = make_tagger(data, CRITERIA[name][0](), WholeSteps, edge=EDGE, sparse_grad=True)
    optimizer = fit(tagger, data, 1).optimizers[0]
    (step,) = optimizer.seen
    weights = leaves(step)
    assert_objective(step, naive(tagger, data, weights), weights)
    assert not optimizer.sparse


@pytest.mark.parametrize(("name", "size"), [("likelihood", 1), ("mce_f", 1), ("mce_f", 100)])
def test_objective_is_independent_of_mini_batches(name, size):
    data = make_data(shuffle=False, batch_size=size)
    tagger = make_tagger(data, CRITERIA[name][0](), WholeSteps, prior=Prior(C))
    (step,) = fit(tagger, data, 1).optimizers[0].seen
    weights = leaves(step)
    assert_objective(step, naive(tagger, data, weights) + penalty(weights, Prior(C)), weights)


def test_totals_of_an_epoch():
    data = make_data(shuffle=False)
    tagger = make_tagger(data, MCEFLoss(), WholeSteps)
    (step,) = fit(tagger, data, 1, limit_train_batches=2).optimizers[0].seen
    weights = leaves(step)
    which = torch.cat([batch.rows for batch in batches_of(data, 4)[:2]]).tolist()
    assert len(which) == 8
    assert_objective(step, naive(tagger, data, weights, which), weights)


def test_stop_of_the_optimizer(caplog):
    data = make_data()
    with caplog.at_level("INFO", logger="pytorch_lightning.structperc"):
        trainer = fit(make_tagger(data, CRFLoss(), ThreeSteps), data, 9)
    assert trainer.current_epoch == len(trainer.optimizers[0].seen) == 3
    assert "epoch 3: that was enough" in caplog.messages


# -- one step per mini-batch ---------------------------------------------------------------------------------


def test_prior_of_mini_batches():
    data, prior = make_data(shuffle=False), Prior(C)
    tagger = make_tagger(data, CRFLoss(), Steps, edge=EDGE, prior=prior)
    trainer = fit(tagger, data, 1)
    seen = trainer.optimizers[0].seen
    rows = [batch.rows.tolist() for batch in batches_of(data, 4)]
    assert [len(which) for which in rows] == [4, 4, 3]
    for step, which in zip(seen, rows, strict=True):
        weights = leaves(step)
        value = naive(tagger, data, weights, which) + penalty(weights, prior) * len(which) / 11
        assert_objective(step, value, weights)
    weights = weights_of(tagger)  # they have not moved
    value = naive(tagger, data, weights) + penalty(weights, prior)
    assert float(trainer.callback_metrics["train/objective"]) == pytest.approx(float(value), rel=1e-5)


def test_sparse_gradients_with_a_prior():
    data, prior = make_data(shuffle=False, batch_size=100), Prior(C)
    tagger = make_tagger(data, CRFLoss(), Steps, sparse_grad=True, prior=prior)
    (step,) = fit(tagger, data, 1).optimizers[0].seen
    weights = leaves(step)
    assert_objective(step, naive(tagger, data, weights) + penalty(weights, prior), weights)


def test_mini_batches_of_a_corpus_criterion():
    """One batch that is the corpus, and no memory: its estimates are the totals, and the gradient is exact."""
    data = make_data(batch_size=100)
    tagger = make_tagger(data, MCEFLoss(memory=0.0), Steps)
    (step,) = fit(tagger, data, 1).optimizers[0].seen
    weights = leaves(step)
    assert_gradients(step[2], naive(tagger, data, weights), weights)


def test_scale_of_totals():
    """With the last mini-batch alone: rates at 11 / 3 of its counts."""
    data = make_data(shuffle=False)
    tagger = make_tagger(data, MCEFLoss(memory=0.0), Steps)
    step = fit(tagger, data, 1).optimizers[0].seen[-1]
    weights = leaves(step)
    which = batches_of(data, 4)[-1].rows.tolist()
    counts = tagger.criterion.counts(whole(tagger, data.encoded("train"), weights, which)).sum(0)
    totals = (counts.detach() * 11 / len(which)).requires_grad_()
    rates = torch.autograd.grad(tagger.criterion.objective(totals), totals)[0]
    assert_gradients(step[2], counts @ rates, weights)
    assert tagger.criterion.totals is None


def test_phases():
    data, prior = make_data(), Prior(C)
    tagger = make_tagger(
        data, MCEFLoss(), lambda p: SequentialOptimizers(p, lambda q: Steps(q, lr=0.1), 2, WholeSteps), prior=prior
    )
    first, then = fit(tagger, data, 4).optimizers[0].optimizers
    assert (len(first.seen), len(then.seen)) == (6, 2)
    for step in then.seen:
        weights = leaves(step)
        assert_objective(step, naive(tagger, data, weights) + penalty(weights, prior), weights)


def test_prior_without_trainer():
    data, prior = make_data(), Prior(C)
    tagger = make_tagger(data, CRFLoss(), prior=prior)
    data.encode(tagger.encode, "fit")
    tagger.on_train_epoch_start()
    value = tagger.training_step(data.encoded("train")[list(range(11))])
    weights = weights_of(tagger)
    assert float(value) == pytest.approx(float(naive(tagger, data, weights) + penalty(weights, prior)), rel=1e-5)


# -- divergence ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("at", "message"), [(2, "the objective is nan"), (3, "the sum of the weights is nan")])
def test_divergence(at, message):
    """The third step is the last one of the first epoch: it must not end as if it had been good."""
    data = make_data()
    tagger = make_tagger(data, CRFLoss(), lambda p: ExplodesInBatches(p, lr=0.1, at=at))
    with pytest.raises(DivergenceError, match=f"^epoch 1: {message}: take another optimizer$"):
        fit(tagger, data, 2)


def test_advice_for_other_optimizers():
    data = make_data()
    with pytest.raises(DivergenceError, match=r"^epoch 1: .* lr "):
        fit(make_tagger(data, CRFLoss(), lambda p: torch.optim.SGD(p, 1e38)), data, 1)


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        (LBFGS, "which is not differentiable: remove model.prior and use OWLQN with C"),
        (lambda p: OWLQN(p, 1.0), "but OWLQN already applies the L1 penalty: remove model.prior"),
    ],
)
def test_a_prior_with_kinks_is_owlqns_own(optimizer, message):
    data = make_data()
    with pytest.raises(InputError, match=f"^model.prior.phi is 1, {message}$"):
        fit(make_tagger(data, CRFLoss(), optimizer, prior=Prior(1.0, 1)), data, 1)


def test_an_infinite_prior_is_a_divergence():
    data = make_data()
    with pytest.raises(DivergenceError, match=r"^epoch [12]: the "):
        fit(make_tagger(data, CRFLoss(), lambda p: GPD(p, 1e25, 1e9), prior=Prior(1e-8)), data, 3)
