"""Dynamic programs on lattices as custom operators of PyTorch.

operators.py          contracts, shapes and derivatives
segment_operators.py  the same for segments
registration.py       how an operator is registered, and which implementation runs
reference/, cpu/, cuda/    implementations in tensor operations, numba and Triton, in modules of the same names

They compile and export as one node each. `structperc.chain` checks arguments and is the interface for users.
"""

from structperc.ops.operators import (
    best_before_and_after,
    best_before_and_after_backward,
    forward_backward,
    kbest,
    local_log_partition,
    local_log_partition_backward,
    path_counts,
    path_score,
    sample,
    viterbi,
)
from structperc.ops.reference.scan import any_invalid
from structperc.ops.registration import implementation
from structperc.ops.segment_operators import (
    SemiMarkovScores,
    semi_markov_best,
    semi_markov_kbest,
    semi_markov_log_partition,
    semi_markov_sample,
    semi_markov_sums,
    semi_markov_viterbi,
)

__all__ = [
    "viterbi",
    "kbest",
    "best_before_and_after",
    "best_before_and_after_backward",
    "forward_backward",
    "sample",
    "path_score",
    "path_counts",
    "local_log_partition",
    "local_log_partition_backward",
    "SemiMarkovScores",
    "semi_markov_viterbi",
    "semi_markov_kbest",
    "semi_markov_log_partition",
    "semi_markov_sums",
    "semi_markov_best",
    "semi_markov_sample",
    "any_invalid",
    "implementation",
]
