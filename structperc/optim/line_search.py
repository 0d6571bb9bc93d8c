"""Line searches as state machines: one trial per call; the state is numbers, so that a state dict can contain it.

A line search tries steps t along x + t d until one lowers the value phi(t) = f(x + t d) enough.
"""

import math
from dataclasses import dataclass
from enum import Enum

Probe = tuple[float, float, float]  # step, value, slope


class Outcome(Enum):
    """The result of a trial of a line search."""

    ACCEPTED = "accepted"
    AGAIN = "again"  # another step is to be tried
    FAILED = "failed"


@dataclass
class StrongWolfe:
    """Search for a step with phi(t) <= phi(0) + c1 t phi'(0) and |phi'(t)| <= c2 |phi'(0)|.

    Nocedal & Wright 2006, algorithms 3.5 (bracketing) and 3.6 (zoom) with cubic interpolation (3.59). Safeguards:
    a trial is at least a tenth of the bracket's width away from its ends, and halves the bracket if two trials have not
    shortened it by a third (Moré & Thuente 1994). After `limit` trials the lowest step that satisfies the first
    condition is tried once more and accepted. The search fails if there is none, or if the bracket is a single point.

    Args:
        c1, c2: 0 < c1 < c2 < 1.
        limit: largest number of trials.
        noise: values that differ by no more count as equal, since near a minimum values are rounded more than slopes
            (Hager & Zhang 2005, §3: approximate Wolfe conditions).
        value, slope: phi(0) and phi'(0) < 0.
        step: first trial step, later the next one.
    """

    c1: float
    c2: float
    limit: int
    noise: float
    value: float
    slope: float
    step: float
    low: Probe = (0.0, 0.0, 0.0)  # end of the bracket with the lower value; without a bracket, the last trial
    high: Probe | None = None  # the other end
    widths: tuple[float, float] = (math.inf, math.inf)  # widths of the two previous brackets
    trials: int = 0
    last: bool = False

    def __post_init__(self) -> None:
        if self.trials == 0:
            self.low = (0.0, self.value, self.slope)

    def observe(self, value: float, slope: float) -> Outcome:
        """Process phi and phi' at `step` and return the outcome; on AGAIN `step` is the next step to try."""
        self.trials += 1
        trial = (self.step, value, slope)
        if self.last:
            return Outcome.ACCEPTED
        enough = min(self.value + self.c1 * self.step * self.slope, self.low[1])
        lower = value <= enough + self.noise
        if lower and abs(slope) <= -self.c2 * self.slope:
            return Outcome.ACCEPTED
        if self.high is None:
            self._bracket(trial, lower)
        else:
            self._narrow(trial, lower)
        return self._next(trial)

    def _bracket(self, trial: Probe, lower: bool) -> None:
        if not lower:
            self.high = trial
        elif trial[2] >= 0:
            self.low, self.high = trial, self.low
        else:
            self.step = extrapolated(self.low, trial)
            self.low = trial

    def _narrow(self, trial: Probe, lower: bool) -> None:
        assert self.high is not None
        if not lower:
            self.high = trial
            return
        if trial[2] * (self.high[0] - self.low[0]) >= 0:
            self.high = self.low
        self.low = trial

    def _next(self, trial: Probe) -> Outcome:
        if self.high is not None:
            self.step = self._between(self.low, self.high)
        if self.trials < self.limit and self.step not in (self.low[0], math.inf):
            return Outcome.AGAIN
        if self.low[0] == 0.0:  # no step has met the first condition
            return Outcome.FAILED
        self.step, self.last = self.low[0], True
        return Outcome.ACCEPTED if self.low == trial else Outcome.AGAIN

    def _between(self, low: Probe, high: Probe) -> float:
        width = abs(high[0] - low[0])
        slow = width > 0.66 * self.widths[0]
        self.widths = (self.widths[1], width)
        middle, margin = (low[0] + high[0]) / 2, 0.1 * width
        if slow:
            return middle
        step = cubic_minimum(low, high)
        left, right = min(low[0], high[0]) + margin, max(low[0], high[0]) - margin
        return middle if step is None else min(max(step, left), right)


def extrapolated(before: Probe, trial: Probe) -> float:
    """Return the next trial step if phi still falls at the last one: by the cubic, at most ten times as far."""
    least, most = trial[0] + 0.01 * (trial[0] - before[0]), 10 * trial[0]
    step = cubic_minimum(before, trial)
    return most if step is None or step <= trial[0] else min(max(step, least), most)


def cubic_minimum(a: Probe, b: Probe) -> float | None:
    """Return the minimum of the cubic through both values and slopes, or None. Nocedal & Wright 2006, Eq. 3.59."""
    (t0, f0, s0), (t1, f1, s1) = a, b
    d1 = s0 + s1 - 3 * (f0 - f1) / (t0 - t1)
    square = d1 * d1 - s0 * s1
    if square < 0:
        return None
    d2 = math.copysign(math.sqrt(square), t1 - t0)
    below = s1 - s0 + 2 * d2
    return t1 - (t1 - t0) * (s1 + d2 - d1) / below if below else None


@dataclass
class Backtracking:
    """Search for a step that lowers the value by at least c1 times the predicted change. Andrew & Gao 2007, §3.2.

    Args:
        c1: 0 < c1 < 1.
        limit: largest number of trials.
        noise: values that differ by no more count as equal.
        value: phi(0).
        step: first trial step, later the next one, half of the previous one.
    """

    c1: float
    limit: int
    noise: float
    value: float
    step: float
    trials: int = 0

    def observe(self, value: float, predicted: float) -> Outcome:
        """Process phi at `step` and the change (< 0) that the slope at 0 predicts; return the outcome."""
        self.trials += 1
        if predicted < 0 and value <= self.value + self.c1 * predicted + self.noise:
            return Outcome.ACCEPTED
        self.step /= 2
        return Outcome.AGAIN if self.trials < self.limit else Outcome.FAILED
