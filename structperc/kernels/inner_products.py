"""Inner products of long vectors, for optimizers."""

import numpy as np

from structperc.kernels.jit import kernel, subkernel

BLOCK = 4096  # numbers of a vector that stay in the cache while all products with them are taken


@kernel
def inner_products(rows, columns, products):
    """Fill products (R, C) float64 with the inner products of rows (R, n) and columns (C, n), in one pass."""
    products[:] = 0.0
    for start in range(0, rows.shape[1], BLOCK):
        for r in range(len(rows)):
            for c in range(len(columns)):
                products[r, c] += _dot(rows[r, start : start + BLOCK], columns[c, start : start + BLOCK])


@subkernel(fastmath={"reassoc", "nsz", "contract"})  # several sums at a time
def _dot(a, b):
    total = 0.0
    for i in range(len(a)):
        total += np.float64(a[i]) * np.float64(b[i])
    return total
