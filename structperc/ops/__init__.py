"""Dynamic programs on lattices as custom operators of PyTorch.

operators.py          contracts, shapes and derivatives
segment_operators.py  the same for segments
registration.py       how an operator is registered, and which implementation runs
reference/, cpu/, cuda/    implementations in tensor operations, numba and Triton, in modules of the same names

They compile and export as one node each. `structperc.chain` checks arguments and is the interface for users.
"""

from structperc.ops import operators as operators  # registers the operators
from structperc.ops import segment_operators as segment_operators
