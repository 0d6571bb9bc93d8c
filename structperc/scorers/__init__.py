"""Features or vectors -> Lattice. Everything downstream is the same for every scorer."""

from structperc.scorers.base import Scorer
from structperc.scorers.neural import Neural
from structperc.scorers.sparse_linear import SparseLinear
from structperc.scorers.sum import Sum

__all__ = ["Scorer", "SparseLinear", "Neural", "Sum"]
