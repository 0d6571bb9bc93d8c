"""Exact dynamic programs on a Lattice: constraints, local normalisation, paths, candidates, probabilities."""

from structperc.chain.constraints import allow, constrain
from structperc.chain.exportable import ExportableViterbi, exportable_viterbi
from structperc.chain.kbest import KBest, kbest
from structperc.chain.local_normalisation import locally_normalised
from structperc.chain.marginals import edge_marginals, entropy, log_partition, marginals, sample
from structperc.chain.masks import compact, scatter
from structperc.chain.max_marginals import best_before_and_after, max_marginals
from structperc.chain.path import path_score
from structperc.chain.segments import (
    Segments,
    best_with,
    best_without,
    score_with,
    score_without,
    segment_marginals,
)
from structperc.chain.viterbi import Viterbi, viterbi

__all__ = [
    "compact",
    "scatter",
    "allow",
    "constrain",
    "locally_normalised",
    "path_score",
    "viterbi",
    "Viterbi",
    "exportable_viterbi",
    "ExportableViterbi",
    "kbest",
    "KBest",
    "log_partition",
    "marginals",
    "edge_marginals",
    "entropy",
    "sample",
    "max_marginals",
    "best_before_and_after",
    "Segments",
    "best_with",
    "best_without",
    "score_with",
    "score_without",
    "segment_marginals",
]
