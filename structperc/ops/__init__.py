"""Every dynamic program as one operator: one contract, an implementation for each device.

Lattices come as three tensors, unary (B, T, L), edge (B or 1, T or 1, L, L), lengths (B,): edges may be the same for
all sequences, for all tokens, or both. Tensors are of float32 or float64; shapes and values are checked by `chain`,
which is the users' face of these operators. All are custom operators of torch, so that they compile and export as one
node each, and have derivatives.

declare.py                  how an operator is declared, and which implementation runs
viterbi.py, kbest.py        the best labelling, the k best
best.py                     best scores before and after each label
expectations.py             sums over all labellings, probabilities of labels and pairs
sampling.py, following.py   labellings drawn; sums over the next label
paths.py                    scores of given labellings
tensors/, cpu/, cuda/       the implementations: the reference, numba, Triton
"""

from structperc.ops.best import best_before_and_after, push_back
from structperc.ops.expectations import expectations
from structperc.ops.following import following_shares, log_following
from structperc.ops.kbest import kbest
from structperc.ops.paths import path_counts, path_score
from structperc.ops.registration import implementation
from structperc.ops.sampling import sample
from structperc.ops.tensors.scans import any_invalid
from structperc.ops.viterbi import viterbi

__all__ = [
    "viterbi",
    "kbest",
    "best_before_and_after",
    "push_back",
    "expectations",
    "sample",
    "path_score",
    "path_counts",
    "log_following",
    "following_shares",
    "any_invalid",
    "implementation",
]
