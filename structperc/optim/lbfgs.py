"""Limited-memory quasi-Newton methods: L-BFGS for smooth objectives, OWL-QN for those with an L1 term."""

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structperc.errors import InputError
from structperc.optim.base import check_options
from structperc.optim.full_batch import FullBatch, has_converged
from structperc.optim.line_search import Backtracking, Outcome, StrongWolfe

CHUNK = 2**15  # numbers of a vector that are float64 at a time


def inner(rows: Tensor, columns: Tensor) -> Tensor:
    """Return inner products (R, C), added in float64, on the CPU, of rows (R, n) and columns (C, n), in one pass."""
    if rows.is_cpu and rows.dtype in (torch.float32, torch.float64):
        from structperc.kernels.inner_products import inner_products  # needs a compiler

        products = torch.empty(len(rows), len(columns), dtype=torch.float64)
        inner_products(rows.contiguous().numpy(), columns.contiguous().numpy(), products.numpy())
        return products
    total = torch.zeros(len(rows), len(columns), dtype=torch.float64, device=rows.device)
    for start in range(0, rows.shape[1], CHUNK):
        part = slice(start, start + CHUNK)
        total += rows[:, part].double() @ columns[:, part].double().T
    return total.cpu()


def dot(a: Tensor, b: Tensor) -> float:
    """Return the inner product of a (n,) and b (n,), added in float64."""
    return float(inner(a[None], b[None]))


class LimitedMemory:
    """Two-loop recursion of Nocedal 1980 (Liu & Nocedal 1989, §2) over a table of inner products.

    With s = x_{k+1} - x_k and y = g_{k+1} - g_k of the last m iterations, the product of the inverse Hessian with a
    vector v is a combination of the vectors s, y and v; its coefficients require only their inner products
    (Chen, Wang & Zhou 2014). An iteration thus makes two passes over the memory instead of 4 m over vectors: one
    for the products, one for the combination.

    Args:
        vectors: (2 m + 2, n), row 2 i is a step s and row 2 i + 1 its y; changed in place.
        table: (2 m + 2, 2 m + 2) float64 on any device, inner products of the rows; changed in place.
        pairs: number of pairs added so far; pair j has the index i = j mod (m + 1). The next pair is computed in the
            rows that are free.
    """

    def __init__(self, vectors: Tensor, table: Tensor, pairs: int) -> None:
        self.vectors, self.table, self.pairs = vectors, table, pairs

    @property
    def size(self) -> int:
        """The number of pairs that are kept."""
        return min(self.pairs, len(self.vectors) // 2 - 1)

    def remember(self, points: tuple[Tensor, Tensor], gradients: tuple[Tensor, Tensor]) -> bool:
        """Store the pair of the last step, in place of the oldest one, and return True.

        Return False unless s.y is well above 0: otherwise the inverse Hessian would not stay positive definite (Nocedal
        & Wright 2006, §6.1). `points`: (n,) each, x_k and x_{k+1}. `gradients`: (n,) each, g_k and g_{k+1}.
        """
        row = self._row(self.pairs)
        pair = self.vectors[row : row + 2]
        for (before, after), difference in zip((points, gradients), pair, strict=True):
            torch.sub(after, before, out=difference)
        products = self._products(self._rows(self.pairs + 1), pair)
        if not products[row, 1] > torch.finfo(pair.dtype).eps * products[row + 1, 1]:
            return False
        self.pairs += 1
        self.table[:, row : row + 2] = products.to(self.table.device)
        self.table[row : row + 2] = products.t().to(self.table.device)
        return True

    def direction(self, v: Tensor) -> tuple[Tensor, float]:
        """Return minus the product of the inverse Hessian with v (n,), and its inner product with v."""
        square = dot(v, v)
        if not self.size:
            return v.neg(), -square
        rows = self._rows(self.pairs)
        products = self._products(rows, v[None])[:, 0]
        factor, weights = self._coefficients(products.numpy())
        found = v * -factor
        for part in rows:
            found.addmv_(self.vectors[part].t(), weights[part].to(v), alpha=-1)
        return found, -(factor * square + float(weights @ products))

    def _row(self, pair: int) -> int:
        """Return the first row of a pair, given its number."""
        return 2 * (pair % (len(self.vectors) // 2))

    def _rows(self, pairs: int) -> list[slice]:
        """Return the rows of the last m pairs, given the number of pairs added."""
        if pairs < len(self.vectors) // 2:
            return [slice(0, 2 * pairs)]
        free = self._row(pairs)
        return [slice(0, free), slice(free + 2, None)]

    def _products(self, rows: list[slice], columns: Tensor) -> Tensor:
        """Return the inner products (2 m + 2, C) float64 of some rows with columns (C, n); 0 for other rows."""
        found = torch.zeros(len(self.vectors), len(columns), dtype=torch.float64)
        for part in rows:
            found[part] = inner(self.vectors[part], columns)
        return found

    def _coefficients(self, products: np.ndarray) -> tuple[float, Tensor]:
        """Return the factors of v and of the rows, (2 m + 2,) float64, given the inner products of v with the rows."""
        table = self.table.numpy(force=True)
        oldest_first = [self._row(pair) for pair in range(self.pairs - self.size, self.pairs)]
        weights, factor = np.zeros_like(products), 1.0
        alphas = {}
        for s in reversed(oldest_first):
            alphas[s] = (weights @ table[s] + factor * products[s]) / table[s, s + 1]
            weights[s + 1] -= alphas[s]
        newest = oldest_first[-1]
        scale = float(table[newest, newest + 1] / table[newest + 1, newest + 1])
        weights, factor = weights * scale, factor * scale
        for s in oldest_first:
            beta = (weights @ table[s + 1] + factor * products[s + 1]) / table[s, s + 1]
            weights[s] += alphas[s] - beta
        return factor, torch.from_numpy(weights)


class QuasiNewton(FullBatch):
    """Base class of quasi-Newton methods: line searches along -(inverse Hessian) times gradient.

    A step is one evaluation. The first trial step has length 1; later searches try the quasi-Newton step first. A line
    search that fails is repeated once along the steepest descent, with an empty history. Between steps the state of the
    first parameter contains the point (n,) where the line search began, its gradient, the direction and the history;
    the group contains the numbers. For the arguments see `LBFGS`. A subclass defines `search_type`, `_search_options`
    and `_measure`, and may define `_steepest_ascent`, `_direction` and `_trial_point`.
    """

    search_type: type[StrongWolfe | Backtracking]

    def __init__(
        self,
        params: Iterable[Any],
        options: dict[str, Any],
        history: int,
        max_linesearch: int,
        tolerance: float,
        period: int,
        epsilon: float,
    ) -> None:
        check_options(self, least=1, history=history, max_linesearch=max_linesearch, period=period)
        check_options(self, least=0, tolerance=tolerance, epsilon=epsilon)
        stops = {"max_linesearch": max_linesearch, "tolerance": tolerance, "period": period, "epsilon": epsilon}
        numbers = {"iteration": 0, "pairs": 0, "values": [], "search": None}
        super().__init__(params, {**options, "history": history, **stops, **numbers})

    @abstractmethod
    def _search_options(self, slope: float) -> dict[str, Any]:
        """Return options of the line search that only this method has, given the slope along the direction."""

    @abstractmethod
    def _measure(self, point: Tensor, gradient: Tensor) -> float:
        """Return what the line search needs at a trial point (n,) besides the objective."""

    def _steepest_ascent(self) -> Tensor:
        """Return the direction (n,) in which the objective rises most from the start of the line search."""
        return self._vectors["gradient"]

    def _direction(self, ascent: Tensor) -> tuple[Tensor, float]:
        """Return the direction (n,) of the next line search, and its inner product with the steepest ascent (n,)."""
        return self._memory.direction(ascent)

    def _trial_point(self, step: float) -> Tensor:
        """Return the trial point (n,) of a step."""
        return torch.add(self._vectors["point"], self._vectors["direction"], alpha=step)

    def _advance(self, objective: float, point: Tensor, gradient: Tensor) -> None:
        group = self.param_groups[0]
        if group["search"] is None:
            rows = 2 * group["history"] + 2
            table = torch.zeros(rows, rows, dtype=torch.float64)
            self._vectors.update(vectors=point.new_zeros(rows, len(point)), table=table)
            self._report("start")
            self._accept(objective, point, gradient)
            return
        search = self.search_type(**group["search"])
        step = search.step
        outcome = search.observe(objective, self._measure(point, gradient))
        group["search"] = asdict(search)
        self._report(f"iteration {group['iteration'] + 1}, step {step:.3g}: {outcome.value}")
        if outcome is Outcome.ACCEPTED:
            group["iteration"] += 1
            memory = self._memory
            memory.remember((self._vectors["point"], point), (self._vectors["gradient"], gradient))
            group["pairs"] = memory.pairs
            self._accept(objective, point, gradient)
        elif outcome is Outcome.AGAIN:
            self._set_point(self._trial_point(search.step))
        elif group["pairs"]:  # repeat the line search along the steepest descent
            group["pairs"] = 0
            self._begin(search.value, self._vectors["ascent"])
        else:
            self._stop("line search failed: no lower objective was found along the steepest descent")

    def _accept(self, objective: float, point: Tensor, gradient: Tensor) -> None:
        """End an iteration, and begin the next one unless it was the last."""
        self._vectors.update(point=point, gradient=gradient)
        ascent = self._vectors["ascent"] = self._steepest_ascent()
        reason = self._reason(objective, norm(ascent), norm(point))
        if reason is None:
            self._begin(objective, ascent)
        else:
            self._stop(reason)

    def _reason(self, objective: float, slope: float, size: float) -> str | None:
        """Return why this iteration was the last one, or None."""
        group = self.param_groups[0]
        if has_converged(group["values"], objective, group["period"], group["tolerance"]):
            return f"converged: in {group['period']} iterations the objective fell by less than {group['tolerance']:g}"
        if slope <= group["epsilon"] * max(1.0, size):
            return f"converged: the gradient's length is {slope:.3g} at weights of length {size:.3g}"
        return None

    def _begin(self, objective: float, ascent: Tensor) -> None:
        """Choose a direction from the current point, and the first trial point on it."""
        direction, slope = self._direction(ascent)
        if not slope < 0:  # rounding errors in the history
            self.param_groups[0]["pairs"] = 0
            direction, slope = self._direction(ascent)
        self._vectors["direction"] = direction
        step = 1.0 if self.param_groups[0]["pairs"] else 1 / norm(ascent)
        noise = 10 * torch.finfo(direction.dtype).eps * abs(objective)  # sums over a corpus lose about a digit
        common: dict[str, Any] = {"limit": self.param_groups[0]["max_linesearch"], "noise": noise}
        search = self.search_type(value=objective, step=step, **common, **self._search_options(slope))
        self.param_groups[0]["search"] = asdict(search)
        self._set_point(self._trial_point(step))

    @property
    def _memory(self) -> LimitedMemory:
        return LimitedMemory(self._vectors["vectors"], self._vectors["table"], self.param_groups[0]["pairs"])

    @property
    def _vectors(self) -> dict[str, Tensor]:
        return self.state[self._parameters()[0]]


def norm(vector: Tensor) -> float:
    """Return the Euclidean length of the vector (n,)."""
    return math.sqrt(dot(vector, vector))


class LBFGS(QuasiNewton):
    """L-BFGS optimizer for smooth objectives, with a line search for the strong Wolfe conditions. Liu & Nocedal 1989.

    It converges to a point of zero gradient, which is the minimum if the objective is convex. It stores 2 * history + 6
    vectors as long as all parameters together. It stops when over `period` iterations the objective f fell by no more
    than `tolerance` * |f| (the rule of CRFsuite), when |gradient| <= `epsilon` * max(1, |weights|) (the rule of
    liblbfgs), or when no line search finds a lower point.

    Args:
        history: number of pairs of vectors that approximate the Hessian.
        c1: sufficient decrease of a step.
        c2: curvature condition, c1 < c2 < 1.
        max_linesearch: largest number of evaluations of one line search.
        tolerance: minimal relative decrease of the objective.
        period: number of iterations for `tolerance`.
        epsilon: largest relative norm of the gradient at a minimum.
        supported_only: train only those weights of a label and a feature of tokens that occur together in the training
            data; others stay 0. Needs the scorer SparseLinear. Such weights are fewer, and often as accurate (supported
            features, Sutton & McCallum 2012).

    Raises:
        InputError: an option is out of range; more than one group of parameters.

    Example:
        >>> import torch
        >>> from structperc.optim import LBFGS
        >>> weight = torch.zeros(1, requires_grad=True)
        >>> optimizer = LBFGS([weight])
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     objective = ((weight - 3) ** 2).sum()
        ...     objective.backward()
        ...     return objective
        >>> while optimizer.stop_reason is None:
        ...     loss = optimizer.step(closure)
        >>> round(weight.item(), 3)
        3.0
    """

    search_type = StrongWolfe

    def __init__(
        self,
        params: Iterable[Any],
        history: int = 10,
        c1: float = 1e-4,
        c2: float = 0.9,
        max_linesearch: int = 20,
        tolerance: float = 1e-5,
        period: int = 10,
        epsilon: float = 1e-5,
        supported_only: bool = False,
    ) -> None:
        if not 0 < c1 < c2 < 1:
            raise InputError(f"LBFGS: c1 and c2 must be 0 < c1 < c2 < 1, got {c1} and {c2}")
        options = {"c1": c1, "c2": c2, "supported_only": supported_only}
        super().__init__(params, options, history, max_linesearch, tolerance, period, epsilon)

    def _search_options(self, slope: float) -> dict[str, Any]:
        return {"c1": self.param_groups[0]["c1"], "c2": self.param_groups[0]["c2"], "slope": slope}

    def _measure(self, point: Tensor, gradient: Tensor) -> float:
        """Return the slope along the direction."""
        return dot(gradient, self._vectors["direction"])


class OWLQN(QuasiNewton):
    """Orthant-wise limited-memory quasi-Newton optimizer (OWL-QN) for an L1 prior. Andrew & Gao 2007.

    It minimises f(w) + |w|_1 / C, so that many weights are exactly 0. The closure returns the smooth f and computes its
    gradient; the L1 term is added here, and `objective` and `lowest` include it. It is the term of a prior with phi =
    1, which must then not be part of f. A step stays within one orthant; weights that would leave it become 0. Differs:
    pairs without positive curvature are not stored. It stops as LBFGS does, with the subgradient of minimal norm in
    place of the gradient (the paper's pseudo-gradient, Eq. 4).

    Args:
        C: width of the L1 prior; smaller values make more weights 0.
        history: number of pairs of vectors that approximate the Hessian.
        c1: sufficient decrease of a step.
        max_linesearch: largest number of evaluations of one line search.
        tolerance: minimal relative decrease of the objective.
        period: number of iterations for `tolerance`.
        epsilon: largest relative norm of the pseudo-gradient at a minimum.
        supported_only: train only weights of pairs that occur in the training data, as in LBFGS.

    Raises:
        InputError: an option is out of range; more than one group of parameters.
    """

    divergence_hint = "set a smaller C"
    search_type = Backtracking

    def __init__(
        self,
        params: Iterable[Any],
        C: float = 1.0,
        history: int = 10,
        c1: float = 1e-4,
        max_linesearch: int = 20,
        tolerance: float = 1e-5,
        period: int = 10,
        epsilon: float = 1e-5,
        supported_only: bool = False,
    ) -> None:
        check_options(self, above=0, C=C)
        if not 0 < c1 < 1:
            raise InputError(f"OWLQN: c1 must be 0 < c1 < 1, got {c1}")
        options = {"C": C, "c1": c1, "supported_only": supported_only}
        super().__init__(params, options, history, max_linesearch, tolerance, period, epsilon)

    def _whole_objective(self, value: float, point: Tensor) -> float:
        return value + float(torch.linalg.vector_norm(point, 1, dtype=torch.float64)) / self.param_groups[0]["C"]

    def _search_options(self, slope: float) -> dict[str, Any]:
        return {"c1": self.param_groups[0]["c1"]}

    def _measure(self, point: Tensor, gradient: Tensor) -> float:
        """Return the change that the pseudo-gradient predicts for the step from start to trial point."""
        return dot(self._vectors["ascent"], point - self._vectors["point"])

    def _steepest_ascent(self) -> Tensor:
        return pseudo_gradient(self._vectors["point"], self._vectors["gradient"], 1 / self.param_groups[0]["C"])

    def _direction(self, ascent: Tensor) -> tuple[Tensor, float]:
        direction, _ = super()._direction(ascent)
        direction = within_orthant(direction, -ascent.sign())
        return direction, dot(direction, ascent)

    def _trial_point(self, step: float) -> Tensor:
        start, ascent = self._vectors["point"], self._vectors["ascent"]
        return within_orthant(super()._trial_point(step), start.sign() - is_zero(start) * ascent.sign())


def pseudo_gradient(point: Tensor, gradient: Tensor, strength: float) -> Tensor:
    """Return the pseudo-gradient (n,) of f + strength * |w|_1 at w = point (n,). Andrew & Gao 2007, Eq. 4.

    `gradient` (n,) is the gradient of f.
    """
    at_zero = gradient.clamp(-strength, strength).mul_(is_zero(point))  # the part that the L1 term balances
    return torch.add(gradient, point.sign(), alpha=strength).sub_(at_zero)


def within_orthant(vector: Tensor, signs: Tensor) -> Tensor:
    """Return the numbers of a vector (n,) that have the sign in `signs` (n,), which are -1, 0 and 1; 0 for others."""
    return (vector * signs).relu_().mul_(signs)


def is_zero(vector: Tensor) -> Tensor:
    """Return 1 where a vector (n,) is zero, else 0, in its dtype: on a CPU masks of dtype bool take 8 to 30 times."""
    return 1 - vector.sign().abs_()
