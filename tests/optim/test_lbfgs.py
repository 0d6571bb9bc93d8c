"""L-BFGS and OWL-QN against scipy, textbook formulas and a proximal-gradient solver, in float64."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import minimize, rosen, rosen_der

from structperc.optim import LBFGS, OWLQN
from structperc.optim.lbfgs import CHUNK, LimitedMemory, dot, inner, pseudo_gradient


def logistic(seed=0, N=200, D=40):
    """Logistic regression on dependent features -> objective w (D,) -> scalar, without a prior."""
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(N, 6, generator=generator, dtype=torch.float64)
    X = (hidden @ torch.randn(6, D, generator=generator, dtype=torch.float64) > 1).double()
    y = torch.rand(N, generator=generator) < torch.sigmoid(2 * hidden[:, 0] + hidden[:, 1])

    def objective(w):
        scores = X @ w
        return (torch.nn.functional.softplus(scores) - y * scores).sum()

    return objective


def gaussian(objective, C):
    return lambda w: objective(w) + (w * w).sum() / (2 * C)


def value_and_gradient(objective, x):
    w = torch.tensor(x, requires_grad=True)
    value = objective(w)
    value.backward()
    return value.item(), w.grad.numpy()


def solve(optimizer, p, objective, limit=1000):
    """Steps until it is finished; -> the weights at every evaluation."""
    points = []

    def closure():
        points.append(p.detach().clone())
        optimizer.zero_grad()
        value = objective(p)
        value.backward()
        return value.detach()

    while optimizer.stop_reason is None and len(points) < limit:
        optimizer.step(closure)
    return points


def parameter(x):
    return torch.nn.Parameter(torch.tensor(x, dtype=torch.float64))


class Rosenbrock(torch.autograd.Function):
    """scipy's function and derivative."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.tensor(rosen(x.detach().numpy()))

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.tensor(rosen_der(ctx.saved_tensors[0].detach().numpy()))


def test_rosenbrock_as_scipy():
    start = [-1.2, 1.0] * 15
    p = parameter(start)
    optimizer = LBFGS([p], tolerance=0, epsilon=1e-9)
    points = solve(optimizer, p, Rosenbrock.apply)
    peer = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-9, "maxcor": 10})
    np.testing.assert_allclose(p.detach().numpy(), peer.x, atol=1e-6)
    assert len(points) <= 1.25 * peer.nfev
    assert "gradient" in optimizer.stop_reason


@pytest.mark.parametrize("history", [3, 100])
def test_logistic_regression_as_scipy(history):
    objective = gaussian(logistic(), 10.0)
    p = parameter([0.0] * 40)
    points = solve(LBFGS([p], history=history, tolerance=0, epsilon=1e-8), p, objective)
    options = {"ftol": 0, "gtol": 1e-8, "maxcor": history, "maxiter": 10_000, "maxfun": 10_000}
    peer = minimize(
        lambda x: value_and_gradient(objective, x), np.zeros(40), jac=True, method="L-BFGS-B", options=options
    )
    np.testing.assert_allclose(p.detach().numpy(), peer.x, atol=1e-6)
    assert len(points) <= 1.25 * peer.nfev + 10


def test_strong_wolfe_conditions():
    objective = gaussian(logistic(1), 100.0)
    p = parameter([0.0] * 40)
    c1, c2 = 1e-4, 0.4
    optimizer = LBFGS([p], c1=c1, c2=c2, tolerance=1e-6)
    points, accepted = [], [0]
    while optimizer.stop_reason is None:
        points += solve(optimizer, p, objective, limit=1)
        if optimizer.param_groups[0]["iteration"] == len(accepted):
            accepted.append(len(points) - 1)
    assert 10 < len(accepted) < len(points)
    for before, after in pairwise(accepted):
        f0, g0 = value_and_gradient(objective, points[before].numpy())
        f1, g1 = value_and_gradient(objective, points[after].numpy())
        step = (points[after] - points[before]).numpy()
        assert f1 <= f0 + c1 * g0 @ step + 1e-12 * f0
        assert abs(g1 @ step) <= c2 * abs(g0 @ step) * (1 + 1e-9)


def test_the_first_step_has_length_one():
    p = parameter([3.0, -4.0])
    optimizer = LBFGS([p])
    points = solve(optimizer, p, lambda w: 1000 * (w * w).sum(), limit=1)
    assert points[0].tolist() == [3.0, -4.0]
    torch.testing.assert_close(p.detach(), torch.tensor([2.4, -3.2], dtype=torch.float64))


def test_period_and_tolerance_of_crfsuite():
    objective = gaussian(logistic(2), 10.0)
    p = parameter([0.0] * 40)
    optimizer = LBFGS([p], tolerance=1e-4, period=3, epsilon=0)
    values = [objective(p).item()]
    while optimizer.stop_reason is None:
        solve(optimizer, p, objective, limit=1)
        if optimizer.param_groups[0]["iteration"] == len(values):
            values.append(optimizer.objective)
    falls = [(values[k - 3] - values[k]) / values[k] for k in range(3, len(values))]
    assert falls[-1] <= 1e-4 < min(falls[:-1])


def test_starting_at_the_minimum():
    p = parameter([0.0, 0.0])
    optimizer = LBFGS([p])
    assert len(solve(optimizer, p, lambda w: (w * w).sum())) == 1
    assert "gradient" in optimizer.stop_reason


def test_wrong_gradient():
    p = parameter([1.0, 2.0])
    optimizer = LBFGS([p], max_linesearch=5)
    points = solve(optimizer, p, lambda w: 5 + 2 * (w * w).detach().sum() - (w * w).sum())
    assert "line search failed" in optimizer.stop_reason
    assert len(points) == 1 + 5
    assert p.tolist() == [1.0, 2.0]


def test_failed_line_search():
    # after five evaluations the objective is another one, for which what is remembered leads astray
    first, second = gaussian(logistic(3), 1.0), gaussian(logistic(4), 1.0)
    p = parameter([0.0] * 40)
    optimizer = LBFGS([p], max_linesearch=3, tolerance=0, epsilon=1e-9)
    solve(optimizer, p, first, limit=5)
    pairs = [optimizer.param_groups[0]["pairs"]]
    kept = optimizer.state[p]["point"].clone()
    while optimizer.param_groups[0]["pairs"]:
        solve(optimizer, p, lambda w: second(w) + 1000, limit=1)
        pairs.append(optimizer.param_groups[0]["pairs"])
    assert pairs[0] > 0
    assert optimizer.stop_reason is None
    down = p.detach() - kept
    gradient = optimizer.state[p]["gradient"]
    torch.testing.assert_close(down, -gradient / gradient.norm())


@pytest.mark.parametrize(("pairs", "n"), [(0, 6), (3, 6), (7, 6), (4, CHUNK + 5)])
def test_two_loop_recursion(pairs, n):
    generator = torch.Generator().manual_seed(pairs)
    memory = LimitedMemory(torch.zeros(10, n, dtype=torch.float64), torch.zeros(10, 10, dtype=torch.float64), 0)
    point, gradient = torch.zeros(n, dtype=torch.float64), torch.zeros(n, dtype=torch.float64)
    kept = []
    for _ in range(pairs):
        s = torch.randn(n, generator=generator, dtype=torch.float64)
        y = s * (torch.rand(n, generator=generator) + 0.5) + 0.1 * s.mean()
        before, (point, gradient) = (point, gradient), (point + s, gradient + y)
        assert memory.remember((before[0], point), (before[1], gradient))
        assert not memory.remember((point, point), (gradient, gradient + s))  # leaves what is kept as it is
        kept.append((point - before[0], gradient - before[1]))
    q = v = torch.randn(n, generator=generator, dtype=torch.float64)
    alphas = []
    for s, y in reversed(kept[-4:]):
        alphas.append(s @ q / (s @ y))
        q = q - alphas[-1] * y
    if kept:
        q = q * (kept[-1][0] @ kept[-1][1]) / (kept[-1][1] @ kept[-1][1])
    for (s, y), alpha in zip(kept[-4:], reversed(alphas), strict=True):
        q = q + s * (alpha - y @ q / (s @ y))
    found, slope = memory.direction(v)
    torch.testing.assert_close(found, -q)
    assert slope == pytest.approx(-float(q @ v), rel=1e-10)


def test_pairs_without_curvature():
    memory = LimitedMemory(torch.zeros(6, 2), torch.zeros(6, 6, dtype=torch.float64), 0)
    zero = torch.zeros(2)
    for s, y in (([1.0, 0.0], [-1.0, 5.0]), ([1.0, 0.0], [0.0, 1.0]), ([0.0, 0.0], [0.0, 0.0])):
        assert not memory.remember((zero, torch.tensor(s)), (zero, torch.tensor(y)))
    assert memory.size == 0


def test_products_in_float64():
    # 1 + many values that are lost when they are added to it one by one in float32
    n = 40 * CHUNK
    a = torch.full((n,), 1e-8)
    a[0] = 1.0
    ones = torch.ones(n)
    exact, square = 1.0 + (n - 1) * float(a[1]), 1.0 + (n - 1) * float(a[1]) ** 2
    assert dot(a, ones) == pytest.approx(exact, rel=1e-12)
    torch.testing.assert_close(
        inner(torch.stack((a, ones)), torch.stack((ones, a, a))),
        torch.tensor([[exact, square, square], [n, exact, exact]], dtype=torch.float64),
        rtol=1e-11,
        atol=0,
    )


# -- L1 -------------------------------------------------------------------------------------------------------


def proximal(objective, size, strength, steps=4_000):
    """FISTA with a fixed step, -> the minimum of objective + strength * |w|_1."""
    w = previous = torch.zeros(size, dtype=torch.float64)
    z, t = w, 1.0
    curvature = torch.linalg.eigvalsh(torch.autograd.functional.hessian(objective, w))[-1].item()
    for _ in range(steps):
        _, gradient = value_and_gradient(objective, z.numpy())
        moved = z - torch.tensor(gradient) / curvature
        w = moved.sign() * (moved.abs() - strength / curvature).clamp(min=0)
        later = (1 + (1 + 4 * t * t) ** 0.5) / 2
        z, previous, t = w + (t - 1) / later * (w - previous), w, later
    return w


def test_l1_as_a_proximal_gradient_method():
    C = 1.0
    objective = logistic(5, N=100, D=20)  # the curvature is greatest at 0, where FISTA takes its step size from
    p = parameter([0.0] * 20)
    optimizer = OWLQN([p], C=C, tolerance=1e-14, epsilon=1e-8)
    solve(optimizer, p, objective)
    reference = proximal(objective, 20, 1 / C)
    assert torch.equal(p == 0, reference == 0)
    assert 0 < int((p == 0).sum()) < 20
    torch.testing.assert_close(p.detach(), reference, atol=1e-5, rtol=0)
    assert optimizer.lowest == pytest.approx(objective(p).item() + p.abs().sum().item() / C)


@pytest.mark.parametrize("start", [0.0, -1.0])
def test_no_step_leaves_the_orthant(start):
    objective = logistic(6)
    p = parameter([start] * 40)
    optimizer = OWLQN([p], C=1.0)
    while optimizer.stop_reason is None:
        solve(optimizer, p, objective, limit=1)
        kept = optimizer.state[p]["point"]
        assert not (p.detach() * kept < 0).any()
        uphill = pseudo_gradient(kept, optimizer.state[p]["gradient"], 1.0)
        assert not ((kept == 0) & (p.detach() * uphill > 0)).any() or optimizer.stop_reason
    assert optimizer.objective < objective(torch.full((40,), start, dtype=torch.float64)).item() + 40 * abs(start)


def test_pseudo_gradient_by_hand():
    point = torch.tensor([1.0, -1.0, 0.0, 0.0, 0.0, 0.0])
    gradient = torch.tensor([0.5, 0.5, 3.0, -3.0, 1.5, -2.0])
    expected = torch.tensor([2.5, -1.5, 1.0, -1.0, 0.0, 0.0])
    assert torch.equal(pseudo_gradient(point, gradient, 2.0), expected)


@pytest.mark.parametrize("make", [LBFGS, OWLQN])
def test_only_some_numbers_of_a_parameter_are_trained(make):
    objective, trained = gaussian(logistic(), 1.0), torch.arange(0, 40, 3)
    whole, part = parameter(np.full(40, 0.25)), parameter(np.full(len(trained), 0.25))

    def embedded(w):
        return objective(whole.detach().clone().index_copy(0, trained, w))

    optimizer = make([whole])
    optimizer.state[whole]["trained"] = trained
    solve(optimizer, whole, objective)
    solve(make([part]), part, embedded)
    torch.testing.assert_close(whole[trained], part)
    assert (whole.detach()[torch.arange(40) % 3 > 0] == 0.25).all()
