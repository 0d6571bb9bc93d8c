"""Exact dynamic programs on a Lattice: restrictions, best paths, candidates, probabilities.

lattices.py        checks and conversions of lattices
restrictions.py    tag schemes, allowed labels and forbidden spans: impossible label sequences
viterbi.py         the best label sequence, scores of given ones, max-marginals
kbest.py           the k best label sequences
marginals.py       log-partition, probabilities, samples, entropy, divergence; local normalisation
segments.py        the best label sequences, and sums over all, with and without a segment
segment_scores.py  scores of segments: lattices as segmentations, probabilities of segments
confidence.py      probabilities of the labels and segments of a label sequence
decoders.py        base class of searches for predicted labels, biases of labels
minimum_risk.py    labels with the highest expected number of correct tokens or segments

The argument `lattice` has the scores of B sequences, see `Lattice`; searches and sums raise InputError for
wrong shapes.
"""

from structperc.chain.decoders import Decoder
from structperc.chain.kbest import KBest, LabelBias, kbest
from structperc.chain.lattices import compact, scatter
from structperc.chain.marginals import entropy, locally_normalised, log_partition, marginals, sample
from structperc.chain.minimum_risk import MinimumSegmentRisk, MinimumTokenRisk, SegmentThreshold
from structperc.chain.restrictions import Constraints, Restriction, allow, constrain
from structperc.chain.segment_scores import limit_lengths, segment_probabilities
from structperc.chain.segments import Segments, best_without, segment_marginals
from structperc.chain.viterbi import ExportableViterbi, exportable_viterbi, max_marginals, path_score, viterbi

__all__ = [
    "compact",
    "scatter",
    "allow",
    "Restriction",
    "Constraints",
    "locally_normalised",
    "path_score",
    "viterbi",
    "exportable_viterbi",
    "ExportableViterbi",
    "kbest",
    "KBest",
    "Decoder",
    "LabelBias",
    "MinimumTokenRisk",
    "MinimumSegmentRisk",
    "SegmentThreshold",
    "log_partition",
    "marginals",
    "entropy",
    "sample",
    "max_marginals",
    "segment_marginals",
    "segment_probabilities",
    "constrain",
    "limit_lengths",
    "Segments",
    "best_without",
]
