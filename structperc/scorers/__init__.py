"""Features or vectors -> Lattice. Everything that follows is the same for every scorer.

base.py            the contract
sparse_linear.py   weights of feature ids; bags.py sums them
neural.py          linear scores of an encoder's vectors
sum.py             several scorers in one lattice
"""

from structperc.scorers.base import LocalWeights, Scorer, Sum
from structperc.scorers.neural import Neural
from structperc.scorers.sparse_linear import SparseLinear

__all__ = ["LocalWeights", "Scorer", "SparseLinear", "Neural", "Sum"]
