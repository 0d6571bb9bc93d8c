"""Exact dynamic programs on a Lattice: constraints, paths, candidates, probabilities.

lattices.py                     what is checked before an operator of `ops` is called
constraints.py, masks.py        what is impossible; masks with holes as lengths, and results back in their places
sentences.py                    the sentences of a document, independent of each other
path.py                         the score of a given labelling, the only place where gradients enter
viterbi.py, exportable.py       the best labelling; the same, and marginals, for torch.export
kbest.py, memory.py             the k best labellings; whether they fit into memory
marginals.py                    sums over all labellings: log-partition, probabilities, samples
entropies.py                    how spread labellings are, how far from those of another lattice
neighbours.py                   probabilities of the labels next to given ones
max_marginals.py, segments.py   the best labelling through a label; with and without a segment
segment_sums.py                 sums over the labellings with and without a segment
local_normalisation.py          each label's probability given the one before
"""

from structperc.chain.constraints import Constraints, allow, constrain
from structperc.chain.entropy import cross_entropy, divergence, entropy
from structperc.chain.kbest import KBest, kbest
from structperc.chain.lattices import compact, scatter
from structperc.chain.marginals import (
    edge_marginals,
    locally_normalised,
    log_partition,
    marginals,
    next_marginals,
    previous_marginals,
    sample,
)
from structperc.chain.max_marginals import best_before_and_after, max_marginals
from structperc.chain.segments import (
    Segments,
    best_with,
    best_without,
    log_sum_with,
    log_sum_without,
    score_with,
    score_without,
    segment_marginals,
)
from structperc.chain.sentences import sentences, separate
from structperc.chain.viterbi import (
    ExportableViterbi,
    Viterbi,
    exportable_marginals,
    exportable_viterbi,
    path_score,
    viterbi,
)

__all__ = [
    "compact",
    "scatter",
    "allow",
    "constrain",
    "Constraints",
    "locally_normalised",
    "separate",
    "sentences",
    "path_score",
    "viterbi",
    "Viterbi",
    "exportable_viterbi",
    "exportable_marginals",
    "ExportableViterbi",
    "kbest",
    "KBest",
    "log_partition",
    "marginals",
    "edge_marginals",
    "next_marginals",
    "previous_marginals",
    "entropy",
    "cross_entropy",
    "divergence",
    "sample",
    "max_marginals",
    "best_before_and_after",
    "Segments",
    "best_with",
    "best_without",
    "score_with",
    "score_without",
    "log_sum_with",
    "log_sum_without",
    "segment_marginals",
]
