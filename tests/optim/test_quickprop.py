"""QuickProp and GPD against naive loops over single weights."""

import pytest
import torch

from structperc.optim import GPD, QuickProp


def naive_quickprop(gradient_of, w, lr, growth, decay, steps):
    """Fahlman's program for one weight after the other; -> the weights at every evaluation."""
    shrink = growth / (1 + growth)
    slopes, moves, history = [None] * len(w), [0.0] * len(w), []
    for _ in range(steps):
        history.append(list(w))
        gradient = gradient_of(w)
        for i in range(len(w)):
            s, p, d, move = gradient[i] + decay * w[i], slopes[i], moves[i], 0.0
            if d < 0:
                if s > 0:
                    move -= lr * s
                move += growth * d if s >= shrink * p else d * s / (p - s)
            elif d > 0:
                if s < 0:
                    move -= lr * s
                move += growth * d if s <= shrink * p else d * s / (p - s)
            else:
                move -= lr * s
            slopes[i], moves[i] = s, move
        w = [a + b for a, b in zip(w, moves, strict=True)]
    return history


def objective(w):
    """Not convex: parabolas open both ways; the weights depend on each other; the fourth has no slope."""
    a, b, c, _ = w
    return torch.cos(a) + a * a / 8 + (b - 1) ** 4 + a * b / 5 + torch.cosh(c + b / 3)


def gradient_of(w):
    x = torch.tensor(w, dtype=torch.float64, requires_grad=True)
    return torch.autograd.grad(objective(x), x)[0].tolist()


@pytest.mark.parametrize(("lr", "growth", "decay"), [(0.001, 1.75, 0.0), (0.01, 1.1, 0.1), (0.05, 1.75, 0.1)])
def test_every_weight_as_in_a_naive_loop(lr, growth, decay):
    start = [0.1, -1.0, 2.0, 0.0]
    history = naive_quickprop(gradient_of, start, lr, growth, decay, 25)
    p = torch.nn.Parameter(torch.tensor(start, dtype=torch.float64))
    optimizer = QuickProp([p], lr=lr, growth=growth, decay=decay, period=100)

    def closure():
        optimizer.zero_grad()
        value = objective(p)
        value.backward()
        return value.detach()

    for expected in history:
        torch.testing.assert_close(p.detach(), torch.tensor(expected, dtype=torch.float64))
        optimizer.step(closure)


def test_parabola():
    # f = (w - 5)^2, first step 0.2 * 10 = 2: slopes -10 and -6, parabola 2 * 6 / 4 = 3, and 0.2 * 6 in addition
    p = torch.nn.Parameter(torch.zeros(1))
    optimizer = QuickProp([p], lr=0.2)
    seen = []
    for _ in range(3):
        p.grad = 2 * (p.detach() - 5)
        optimizer.step(lambda: (p.detach() - 5).square().sum())
        seen.append(p.item())
    # slopes -6 and 2.4 around the minimum: to it at once
    assert seen == pytest.approx([2.0, 2.0 + 3.0 + 1.2, 5.0])


def train(p, optimizer, steps, gradient):
    for _ in range(steps):
        p.grad = gradient(p.detach())
        optimizer.step(lambda: p.detach().square().sum())


def test_long_step():
    p = torch.nn.Parameter(torch.tensor([1.0, 3.0]))
    optimizer = QuickProp([p], lr=1e3, period=3)
    train(p, optimizer, 4, lambda w: torch.tensor([-1.0, -1.0]))  # it rises along this gradient
    assert optimizer.stop_reason is None  # the start does not count
    train(p, optimizer, 1, lambda w: torch.tensor([-1.0, -1.0]))
    assert "smaller lr" in optimizer.stop_reason
    assert p.tolist() == [1.0, 3.0]


def test_fall_after_a_jump():
    p = torch.nn.Parameter(torch.ones(1))
    optimizer = QuickProp([p], lr=0.1, period=3)
    p.grad = torch.ones(1)
    for value in (1.0, 9.0, 8.0, 7.0, 6.0, 5.0, 6.0, 7.0):
        assert optimizer.stop_reason is None
        optimizer.step(lambda value=value: torch.tensor(value))
    optimizer.step(lambda: torch.tensor(8.0))
    assert "no progress in 3 evaluations" in optimizer.stop_reason
    assert p.item() == 1.0


def test_convergence():
    p = torch.nn.Parameter(torch.tensor([1.0, 3.0]))
    optimizer = QuickProp([p], lr=0.1, period=4)
    train(p, optimizer, 50, lambda w: 2 * w)
    assert "converged" in optimizer.stop_reason
    torch.testing.assert_close(p.detach(), torch.zeros(2), atol=1e-3, rtol=0)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_gpd_steps_by_hand(layout):
    p = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
    optimizer = GPD([p], lr=0.5, decay_steps=4)
    gradients = [[1.0, 0.0, 2.0], [0.0, 0.0, -1.0], [4.0, 0.0, 0.0]]
    for gradient in gradients:
        grad = torch.tensor(gradient, dtype=torch.float64)
        p.grad = grad.to_sparse() if layout == "sparse" else grad
        optimizer.step()
    rates = [0.5, 0.5 / 1.25, 0.5 / 1.5]
    expected = [1 - rates[0] - 4 * rates[2], 2.0, 3 - 2 * rates[0] + rates[1]]
    torch.testing.assert_close(p.detach(), torch.tensor(expected, dtype=torch.float64))
    assert optimizer.evaluation_state() == {}
