"""Inner products of long vectors, for optimizers."""

import numpy as np

from structperc.kernels.jit import kernel

BLOCK = 4096  # numbers of a vector that stay in the cache while all products with them are taken


@kernel(fastmath={"reassoc", "nsz", "contract"})  # several sums at a time
def inner_products(rows, columns, products):
    """Fill products (R, C) float64 with the inner products of rows (R, n) and columns (C, n), in one pass."""
    products[:] = 0.0
    for start in range(0, rows.shape[1], BLOCK):
        for r in range(len(rows)):
            for c in range(len(columns)):
                total = 0.0
                for i in range(start, min(start + BLOCK, rows.shape[1])):
                    total += np.float64(rows[r, i]) * np.float64(columns[c, i])
                products[r, c] += total
