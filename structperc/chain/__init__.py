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

from structperc.chain.decoders import Decoder, add_label_bias
from structperc.chain.kbest import KBest, LabelBias, kbest
from structperc.chain.lattices import compact, scatter, split_sentences
from structperc.chain.marginals import (
    cross_entropy,
    divergence,
    edge_marginals,
    entropy,
    locally_normalised,
    log_partition,
    marginals,
    next_marginals,
    previous_marginals,
    sample,
    step_log_probabilities,
)
from structperc.chain.minimum_risk import (
    MinimumSegmentRisk,
    MinimumTokenRisk,
    SegmentThreshold,
    minimum_segment_risk,
    minimum_token_risk,
    probable_segments,
    scale,
)
from structperc.chain.restrictions import Constraints, Restriction, allow, constrain
from structperc.chain.segment_scores import limit_lengths, segment_max_marginals, segment_probabilities
from structperc.chain.segments import (
    Segments,
    best_with,
    best_without,
    log_partition_with_segment,
    log_partition_without_segment,
    max_score_with_segment,
    max_score_without_segment,
    segment_marginals,
)
from structperc.chain.viterbi import (
    ExportableViterbi,
    Viterbi,
    best_before_and_after,
    exportable_marginals,
    exportable_viterbi,
    max_marginals,
    path_score,
    viterbi,
)

__all__ = [
    "compact",
    "scatter",
    "allow",
    "constrain",
    "Restriction",
    "Constraints",
    "locally_normalised",
    "split_sentences",
    "path_score",
    "viterbi",
    "Viterbi",
    "exportable_viterbi",
    "exportable_marginals",
    "ExportableViterbi",
    "kbest",
    "KBest",
    "Decoder",
    "LabelBias",
    "add_label_bias",
    "scale",
    "minimum_token_risk",
    "MinimumTokenRisk",
    "probable_segments",
    "minimum_segment_risk",
    "MinimumSegmentRisk",
    "SegmentThreshold",
    "log_partition",
    "marginals",
    "edge_marginals",
    "next_marginals",
    "previous_marginals",
    "step_log_probabilities",
    "entropy",
    "cross_entropy",
    "divergence",
    "sample",
    "max_marginals",
    "best_before_and_after",
    "Segments",
    "best_with",
    "best_without",
    "max_score_with_segment",
    "max_score_without_segment",
    "log_partition_with_segment",
    "log_partition_without_segment",
    "segment_marginals",
    "segment_probabilities",
    "segment_max_marginals",
    "limit_lengths",
]
