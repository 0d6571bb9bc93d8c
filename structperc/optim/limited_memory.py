"""The inverse Hessian that L-BFGS keeps: pairs of steps and gradient changes, and their table of inner products."""

from collections.abc import Sequence

import torch
from torch import Tensor

CHUNK = 2**15  # numbers of a vector that are float64 at a time


def inner(rows: Tensor, columns: Sequence[Tensor]) -> Tensor:
    """Return inner products (R, C) in float64, on the CPU, of rows (R, n) and C columns (n,).

    One pass over the rows.
    """
    total = torch.zeros(len(rows), len(columns), dtype=torch.float64, device=rows.device)
    for start in range(0, rows.shape[1], CHUNK):
        part = slice(start, start + CHUNK)
        total += rows[:, part].double() @ torch.stack([column[part] for column in columns]).double().T
    return total.cpu()


def dot(a: Tensor, b: Tensor) -> float:
    """Return the inner product of a (n,) and b (n,), added in float64."""
    return float(inner(a[None], [b]))


class LimitedMemory:
    """Two-loop recursion of Nocedal 1980 (Liu & Nocedal 1989, §2) over a table of inner products.

    With s = x_{k+1} - x_k and y = g_{k+1} - g_k of the last m iterations, the product of the inverse Hessian with a
    vector v is a combination of the vectors s, y and v; its coefficients need nothing but their inner products
    (Chen, Wang & Zhou 2014). An iteration thus makes two passes over the memory in place of 4 m over vectors: one
    for the products, one for the combination.

    Args:
        vectors: (2 m, n), row 2 i a step s and row 2 i + 1 its y; written in place.
        table: (2 m, 2 m) float64 on any device, inner products of the rows; written in place.
        pairs: how many were ever remembered. Pair j lies at i = j mod m.
    """

    def __init__(self, vectors: Tensor, table: Tensor, pairs: int) -> None:
        self.vectors, self.table, self.pairs = vectors, table, pairs

    @property
    def size(self) -> int:
        """The number of pairs that are kept."""
        return min(self.pairs, len(self.vectors) // 2)

    def remember(self, s: Tensor, y: Tensor) -> bool:
        """Take a pair (n,), (n,) in place of the oldest one; return False, and take none, unless s.y is safely above 0.

        Without s.y > 0 the inverse Hessian would not stay positive definite (Nocedal & Wright 2006, §6.1).
        """
        if not dot(s, y) > torch.finfo(y.dtype).eps * dot(y, y):
            return False
        row = self.pairs % (len(self.vectors) // 2) * 2
        self.vectors[row], self.vectors[row + 1] = s, y
        self.pairs += 1
        used = 2 * self.size
        products = inner(self.vectors[:used], [s, y]).to(self.table.device)
        self.table[:used, row : row + 2] = products
        self.table[row : row + 2, :used] = products.t()
        return True

    def inverse_times(self, v: Tensor) -> Tensor:
        """Return the inverse Hessian times v, (n,); v itself where nothing is remembered."""
        if not self.size:
            return v.clone()
        used = self.vectors[: 2 * self.size]
        own, weights = self._coefficients(inner(used, [v])[:, 0])
        return (weights.to(v) @ used).add_(v, alpha=own)

    def _coefficients(self, products: Tensor) -> tuple[float, Tensor]:
        """Inner products (2 m',) of the rows with v -> factor of v, factors (2 m',) float64 of the rows."""
        table = self.table[: len(products), : len(products)].cpu()
        oldest_first = [2 * (j % (len(self.vectors) // 2)) for j in range(self.pairs - self.size, self.pairs)]
        weights, own = torch.zeros_like(products), 1.0
        alphas = {}
        for s in reversed(oldest_first):
            alphas[s] = (weights @ table[s] + own * products[s]) / table[s, s + 1]
            weights[s + 1] -= alphas[s]
        newest = oldest_first[-1]
        scale = float(table[newest, newest + 1] / table[newest + 1, newest + 1])
        weights, own = weights * scale, own * scale
        for s in oldest_first:
            beta = (weights @ table[s + 1] + own * products[s + 1]) / table[s, s + 1]
            weights[s] += alphas[s] - beta
        return own, weights
