"""What every optimizer of the package promises, found by walking the package."""

import copy
import importlib
import io
import math
import pkgutil
from functools import partial

import pytest
import torch

import structperc.optim
from structperc.errors import InputError
from structperc.optim import GPD, LBFGS, BaseOptimizer, Perceptron, QuickProp, SequentialOptimizers
from structperc.optim.base import training_protocol
from structperc.optim.full_batch import DivergenceError, FullBatch, check_finite

OPTIONS = {
    "Perceptron": {"lr": 0.05},
    "PassiveAggressive": {"C": 0.05},
    "GPD": {"lr": 0.05, "decay_steps": 20, "average": True},
    "LBFGS": {},
    "OWLQN": {"C": 50.0},
    "QuickProp": {"lr": 0.05},
    "Averaging": {"optimizer": partial(torch.optim.SGD, lr=0.05)},
    "SequentialOptimizers": {"first": partial(GPD, lr=0.05, decay_steps=20), "first_epochs": 3, "second": LBFGS},
}
BASES = {"BaseOptimizer", "AveragedOptimizer", "FullBatch", "QuasiNewton", "_Wrapper"}


def walk():
    found = {}
    for module in pkgutil.iter_modules(structperc.optim.__path__, "structperc.optim."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, BaseOptimizer) and value.__module__ == module.name:
                found[value.__name__] = value
    return found


FOUND = walk()
LEAVES = sorted(FOUND.keys() - BASES)
FULL_BATCH = [name for name in LEAVES if issubclass(FOUND[name], FullBatch)]
leaves = pytest.mark.parametrize("name", LEAVES)
full_batch = pytest.mark.parametrize("name", FULL_BATCH)


def make(name, params, **options):
    return FOUND[name](params, **{**OPTIONS[name], **options})


def parameters(dtype=torch.float32):
    """Two of different shape with gradients, one that never has one."""
    generator = torch.Generator().manual_seed(5)
    return [torch.nn.Parameter(torch.randn(*size, generator=generator).to(dtype)) for size in ((4, 3), (5,), (2,))]


def objective(params):
    """Convex, not quadratic, with its minimum where the weights are 0.7 and 0 times their places, plus 2."""
    a, b, _ = params
    scale = torch.arange(1.0, 13, dtype=a.dtype).view(4, 3) / 4
    return 2 + (scale * (torch.cosh(a - 0.7) - 1)).sum() + (b * b).sum() + (a[0, 0] - 0.7) * b[0]


def closure_of(optimizer, params, sparse=False):
    def closure():
        optimizer.zero_grad()
        value = objective(params)
        value.backward()
        if sparse:
            for p in params[:2]:
                p.grad = p.grad.to_sparse()
        return value.detach()

    return closure


def train(optimizer, params, epochs, sparse=False):
    for epoch in epochs:
        if isinstance(optimizer, SequentialOptimizers):
            optimizer.begin_epoch(epoch)
        optimizer.step(closure_of(optimizer, params, sparse))


def values(params):
    return [p.detach().clone() for p in params]


def assert_same(a, b):
    assert len(a) == len(b)
    assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def saved_and_loaded(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def test_the_walk_finds_them():
    assert FOUND.keys() - BASES == OPTIONS.keys()
    assert FULL_BATCH == ["LBFGS", "OWLQN", "QuickProp"]
    assert set(LEAVES) <= set(structperc.optim.__all__)


@leaves
def test_objective_falls(name):
    params, calls = parameters(), []
    optimizer = make(name, params)
    before = objective(params).item()
    for epoch in range(30):
        if isinstance(optimizer, SequentialOptimizers):
            optimizer.begin_epoch(epoch)
        inner = closure_of(optimizer, params)
        returned = optimizer.step(lambda inner=inner: (calls.append(1), inner())[1])
        assert isinstance(returned, torch.Tensor)
        assert len(calls) == epoch + 1
    with optimizer.evaluation_weights():
        assert objective(params).item() < 2 + 0.5 * (before - 2)


@leaves
def test_parameter_without_gradient(name):
    params = parameters()
    optimizer = make(name, params, **({"C": 1e30} if name == "OWLQN" else {}))  # no L1 term, which moves all
    last = params[2].detach().clone()
    train(optimizer, params, range(8))
    assert torch.equal(params[2].detach(), last)


@leaves
def test_sparse_gradients(name):
    results = []
    for sparse in (False, True):
        params = parameters(torch.float64)
        train(make(name, params), params, range(8), sparse)
        results.append(values(params))
    for dense, sparse in zip(*results, strict=True):
        torch.testing.assert_close(dense, sparse)


@leaves
@pytest.mark.parametrize("stop", [0, 2, 5])
def test_resume_equals_going_on(name, stop):
    params = parameters()
    optimizer = make(name, params)
    train(optimizer, params, range(stop))
    weights, state = values(params), saved_and_loaded(optimizer.state_dict())
    kept = copy.deepcopy(state)
    train(optimizer, params, range(stop, 10))

    resumed_params = [torch.nn.Parameter(w) for w in weights]
    resumed = make(name, resumed_params)
    resumed.load_state_dict(state)
    train(resumed, resumed_params, range(stop, 10))
    assert_same(values(params), values(resumed_params))
    with optimizer.evaluation_weights(), resumed.evaluation_weights():
        assert_same(values(params), values(resumed_params))
    assert optimizer.status == resumed.status
    assert str(state) == str(kept)  # what was loaded is not written to


@leaves
def test_evaluation_weights(name):
    params = parameters()
    optimizer = make(name, params)
    assert isinstance(optimizer, BaseOptimizer)
    assert optimizer.evaluation_state() == {}
    train(optimizer, params, range(5))
    raw = values(params)
    with optimizer.evaluation_weights():
        assert not torch.equal(params[0], raw[0])
    assert_same(values(params), raw)
    with pytest.raises(RuntimeError, match="inside"), optimizer.evaluation_weights():
        raise RuntimeError("inside")
    assert_same(values(params), raw)


@full_batch
def test_evaluation_weights_have_the_lowest_objective(name):
    params = parameters()
    optimizer, history = make(name, params, tolerance=0), []
    assert optimizer.lowest is optimizer.objective is optimizer.status is optimizer.stop_reason is None
    for _ in range(25):
        before = values(params)
        train(optimizer, params, [0])
        history.append((optimizer.objective, before))
        lowest, best = min(history, key=lambda one: one[0])
        assert optimizer.lowest == lowest
        with optimizer.evaluation_weights():
            assert_same(values(params), best)
        assert f"evaluation {len(history)}" in optimizer.status or optimizer.stop_reason


@full_batch
def test_best_weights_after_the_last_step(name):
    params = parameters()
    optimizer = make(name, params, tolerance=1e-3)
    steps = 0
    while optimizer.stop_reason is None:
        train(optimizer, params, [0])
        steps += 1
        assert steps < 500
    assert "converged" in optimizer.stop_reason
    final, lowest = values(params), optimizer.lowest
    train(optimizer, params, range(3))
    with optimizer.evaluation_weights():
        assert_same(values(params), final)
    assert_same(values(params), final)
    assert optimizer.lowest == lowest
    extra = sum(p.detach().abs().sum().item() for p in params) / 50 if name == "OWLQN" else 0.0
    assert objective(params).item() + extra == pytest.approx(lowest)


@full_batch
@pytest.mark.parametrize(("bad", "where"), [(math.nan, "objective"), (-math.inf, "objective"), (math.inf, "gradient")])
def test_divergence_restores_the_best_weights(name, bad, where):
    params = parameters()
    optimizer = make(name, params)
    train(optimizer, params, range(6))
    lowest = optimizer.lowest
    with optimizer.evaluation_weights():
        best = values(params)

    def closure():
        value = closure_of(optimizer, params)()
        params[1].grad[2] = bad if where == "gradient" else 0.0
        return torch.tensor(bad) if where == "objective" else value

    with pytest.raises(DivergenceError, match=f"{name}, evaluation 7: .*{where} .*(C|lr)") as caught:
        optimizer.step(closure)
    assert "\n" not in str(caught.value)
    assert_same(values(params), best)
    assert optimizer.lowest == lowest


@full_batch
def test_divergence_at_the_first_evaluation(name):
    params = parameters()
    before = values(params)
    with pytest.raises(DivergenceError, match="evaluation 1"):
        make(name, params).step(lambda: torch.tensor(math.nan))
    assert_same(values(params), before)


@full_batch
def test_full_batch_needs_closure_and_one_group(name):
    params = parameters()
    with pytest.raises(RuntimeError, match="closure"):
        make(name, params).step()
    with pytest.raises(InputError, match="one group"):
        make(name, [{"params": params[:1]}, {"params": params[1:]}])
    assert make(name, params).full_batch


@full_batch
def test_many_parameters_in_float32(name):
    generator = torch.Generator().manual_seed(0)
    n = 20_000
    target, scale = torch.randn(n, generator=generator), torch.rand(n, generator=generator) + 0.5
    p = torch.nn.Parameter(torch.zeros(n))
    optimizer = make(name, [p], tolerance=1e-6, **({"C": 1e6} if name == "OWLQN" else {}))

    def closure():
        difference = p.detach() - target
        p.grad = scale * difference
        return (scale * difference.square()).double().sum() / 2

    for _ in range(200):
        optimizer.step(closure)
    assert "converged" in optimizer.stop_reason
    assert p.dtype == torch.float32
    torch.testing.assert_close(p.detach(), target, atol=1e-2, rtol=0)


@pytest.mark.parametrize("name", sorted(set(LEAVES) - set(FULL_BATCH) - {"SequentialOptimizers"}))
def test_others_take_several_groups(name):
    params = parameters()
    optimizer = make(name, [{"params": params[:1]}, {"params": params[1:]}])
    assert not optimizer.full_batch
    together = parameters()
    train(optimizer, params, range(4))
    train(make(name, together), together, range(4))
    assert_same(values(params), values(together))


@pytest.mark.parametrize(
    ("make_one", "named"),
    [
        (lambda p: LBFGS(p, history=0), "history"),
        (lambda p: LBFGS(p, max_linesearch=0), "max_linesearch"),
        (lambda p: LBFGS(p, period=0), "period"),
        (lambda p: LBFGS(p, tolerance=-1), "tolerance"),
        (lambda p: LBFGS(p, epsilon=math.nan), "epsilon"),
        (lambda p: LBFGS(p, c1=0.95), "c1 and c2"),
        (lambda p: LBFGS(p, c2=1), "c1 and c2"),
        (lambda p: FOUND["OWLQN"](p, C=0), "OWLQN: C"),
        (lambda p: FOUND["OWLQN"](p, c1=1), "c1"),
        (lambda p: QuickProp(p, lr=0), "lr"),
        (lambda p: QuickProp(p, lr=1, growth=0), "growth"),
        (lambda p: QuickProp(p, lr=1, decay=-1), "decay"),
        (lambda p: QuickProp(p, lr=1, tolerance=-1), "tolerance"),
        (lambda p: QuickProp(p, lr=1, period=0), "period"),
        (lambda p: GPD(p, lr=-1, decay_steps=1), "lr"),
        (lambda p: GPD(p, lr=1, decay_steps=0), "decay_steps"),
        (lambda p: SequentialOptimizers(p, Perceptron, 0, Perceptron), "first_epochs"),
        (
            lambda p: SequentialOptimizers(
                p, Perceptron, 1, partial(SequentialOptimizers, first=Perceptron, first_epochs=1, second=LBFGS)
            ),
            "SequentialOptimizers",
        ),
        (lambda p: SequentialOptimizers(p, Perceptron, 1, partial(QuickProp, lr=-1)), "QuickProp: lr"),
    ],
)
def test_bad_options_are_named(make_one, named):
    with pytest.raises(InputError, match=named):
        make_one([torch.nn.Parameter(torch.zeros(1))])


@pytest.mark.parametrize("value", [math.nan, math.inf, torch.tensor(math.nan), torch.tensor([1.0, -math.inf])])
def test_errors_for_values_not_finite(value):
    with pytest.raises(DivergenceError, match=r"^epoch 3, batch 7: .*loss .*(nan|inf|not finite).* lr$"):
        check_finite(value, "epoch 3, batch 7", "set a smaller lr", "loss")


@pytest.mark.parametrize("value", [0.0, 1e300, torch.tensor(3e38), torch.zeros(4)])
def test_finite_values(value):
    check_finite(value, "here", "nothing")


@leaves
def test_training_protocol_of_every_optimizer(name):
    optimizer = make(name, parameters())
    assert training_protocol(optimizer) is optimizer
    assert optimizer.stop_reason is optimizer.status is None
    assert optimizer.can_stop == (name in FULL_BATCH or name == "SequentialOptimizers")
    assert optimizer.full_batch == (name in FULL_BATCH)
    assert "smaller" in optimizer.divergence_hint


def test_training_protocol_of_other_optimizers():
    params = parameters()
    optimizer = torch.optim.SGD(params, lr=0.1)
    train(optimizer, params, range(2))
    answers, raw = training_protocol(optimizer), values(params)
    answers.begin_epoch(3)
    assert not answers.full_batch
    assert not answers.can_stop
    assert answers.stop_reason is answers.status is None
    assert answers.divergence_hint == "set a smaller lr of the optimizer"
    with answers.evaluation_weights():
        assert_same(values(params), raw)
    assert answers.evaluation_state() == {}
