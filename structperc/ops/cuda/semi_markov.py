"""Searches for segments and sums over segmentations on a GPU: in tensor operations, those of the reference."""

from structperc.ops.reference.semi_markov import (
    semi_markov_best,
    semi_markov_kbest,
    semi_markov_sample,
    semi_markov_sums,
    semi_markov_viterbi,
)

__all__ = ["semi_markov_best", "semi_markov_kbest", "semi_markov_sample", "semi_markov_sums", "semi_markov_viterbi"]
