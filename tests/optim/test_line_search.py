"""Line searches on functions of one variable, against the conditions they promise."""

import math
from dataclasses import asdict
from itertools import pairwise

import pytest

from structperc.optim.line_search import Backtracking, Outcome, StrongWolfe, cubic_minimum

FUNCTIONS = {  # phi and phi', with phi'(0) < 0
    "parabola": (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3)),
    "far": (lambda t: (t / 1000 - 1) ** 2, lambda t: 2 * (t / 1000 - 1) / 1000),
    "near": (lambda t: (t * 1000 - 1) ** 2, lambda t: 2000 * (t * 1000 - 1)),
    "quartic": (lambda t: (t - 0.3) ** 4 - 0.5 * t, lambda t: 4 * (t - 0.3) ** 3 - 0.5),
    "logarithm": (lambda t: t - 2 * math.log1p(t), lambda t: 1 - 2 / (1 + t)),
    "Moré-Thuente 1": (lambda t: -t / (t * t + 2), lambda t: (t * t - 2) / (t * t + 2) ** 2),
    "waves": (
        lambda t: 0.1 * t * t - t + 0.1 * math.sin(9 * t) - 0.9 * t,
        lambda t: 0.2 * t - 1.9 + 0.9 * math.cos(9 * t),
    ),
    "cliff": (lambda t: math.exp(min(8 * t, 90)) - 20 * t, lambda t: 8 * math.exp(min(8 * t, 90)) - 20),
}
C1 = 1e-4


def run(search, phi, slope):
    """-> outcome and the steps that were tried; the search goes through its numbers after every trial."""
    steps, outcome = [], Outcome.AGAIN
    while outcome is Outcome.AGAIN:
        steps.append(search.step)
        outcome = search.observe(phi(search.step), slope(search.step))
        search = type(search)(**asdict(search))
    return outcome, steps


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("c2", [0.9, 0.1])
@pytest.mark.parametrize("first", [1e-3, 1.0, 1000.0])
def test_strong_wolfe_conditions_hold(name, c2, first):
    phi, slope = FUNCTIONS[name]
    outcome, steps = run(StrongWolfe(C1, c2, 40, 0.0, phi(0.0), slope(0.0), first), phi, slope)
    assert outcome is Outcome.ACCEPTED
    assert phi(steps[-1]) <= phi(0) + C1 * steps[-1] * slope(0)
    assert abs(slope(steps[-1])) <= c2 * abs(slope(0))
    assert len(set(steps)) == len(steps)  # nothing is tried twice
    assert len(steps) <= 25


def test_the_cubic_finds_the_minimum_of_a_cubic():
    def phi(t):
        return t**3 - 6 * t**2 + 9 * t  # minimum at 3, maximum at 1

    def slope(t):
        return 3 * t**2 - 12 * t + 9

    for a, b in ((2.0, 5.0), (5.0, 2.0), (1.5, 3.5), (0.0, 4.0)):
        assert cubic_minimum((a, phi(a), slope(a)), (b, phi(b), slope(b))) == pytest.approx(3.0)
    assert cubic_minimum((0.0, 0.0, 1.0), (1.0, 2.0, 3.0)) == pytest.approx(-0.5)  # a parabola
    assert cubic_minimum((0.0, 0.0, -1.0), (1.0, -1.0, -1.0)) is None  # a line


def test_lowest_step_after_all_trials():
    phi, slope = FUNCTIONS["parabola"]
    outcome, steps = run(StrongWolfe(C1, 1e-3, 3, 0.0, 9.0, -6.0, 1.0), lambda t: phi(t) + (t > 2) * t, slope)
    assert outcome is Outcome.ACCEPTED
    assert len(steps) <= 4
    tried = {t: phi(t) + (t > 2) * t for t in steps}
    assert tried[steps[-1]] == min(tried.values()) < 9.0


def test_no_lower_step():
    outcome, steps = run(StrongWolfe(C1, 0.9, 7, 0.0, 0.0, -1.0, 1.0), lambda t: t, lambda t: 1.0)
    assert outcome is Outcome.FAILED
    assert len(steps) == 7
    assert all(a > b > 0 for a, b in pairwise(steps))


def test_empty_bracket():
    outcome, steps = run(StrongWolfe(C1, 0.9, 10**6, 0.0, 0.0, -1.0, 1.0), lambda t: t, lambda t: 1.0)
    assert outcome is Outcome.FAILED
    assert len(steps) < 10_000


def test_values_within_the_noise_count_as_equal():
    # the value rises by less than the noise, the slope says that the step is good
    for noise, outcome in ((1e-6, Outcome.ACCEPTED), (0.0, Outcome.AGAIN)):
        search = StrongWolfe(C1, 0.9, 20, noise, 1.0, -1e-9, 1.0)
        assert search.observe(1.0 + 5e-7, 1e-10) is outcome
        assert Backtracking(C1, 20, noise, 1.0, 1.0).observe(1.0 + 5e-7, -1e-9) is outcome


def test_backtracking_halves_the_step():
    # phi = (t - 3)^2 from 0: the promise of step t is -6 t
    outcome, steps = run(Backtracking(0.5, 10, 0.0, 9.0, 16.0), lambda t: (t - 3) ** 2, lambda t: -6 * t)
    assert (outcome, steps) == (Outcome.ACCEPTED, [16.0, 8.0, 4.0, 2.0])
    outcome, steps = run(Backtracking(0.5, 3, 0.0, 9.0, 16.0), lambda t: (t - 3) ** 2, lambda t: -6 * t)
    assert (outcome, steps) == (Outcome.FAILED, [16.0, 8.0, 4.0])


def test_backtracking_without_descent():
    assert Backtracking(C1, 3, 1.0, 0.0, 1.0).observe(0.0, 0.0) is Outcome.AGAIN
