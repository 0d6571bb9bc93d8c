"""Features or vectors -> Lattice. Everything downstream is the same for every scorer."""

from structperc.scorers.sparse_linear import SparseLinear

__all__ = ["SparseLinear"]
