"""Exact dynamic programs on a SegmentLattice: best segmentations, candidates, probabilities (Sarawagi & Cohen 2004).

lattices.py    checks of lattices, longest segments of each type
search.py      the best segmentations, scores of given ones, max-marginals
marginals.py   log-partition, probabilities of segments, samples, entropy
labels.py      segmentations as labels of a tag scheme, and back

The functions are named as those of `chain`. A segmentation is a sequence of labels: label c begins a segment of type
c, and label C + c continues it.
"""

from structperc.semi_markov.labels import segmentation_of_labels, to_labels
from structperc.semi_markov.lattices import limit_lengths
from structperc.semi_markov.marginals import entropy, log_partition, marginals, sample
from structperc.semi_markov.search import kbest, max_marginals, path_score, viterbi

__all__ = [
    "limit_lengths",
    "viterbi",
    "kbest",
    "path_score",
    "max_marginals",
    "log_partition",
    "marginals",
    "sample",
    "entropy",
    "to_labels",
    "segmentation_of_labels",
]
