"""Learning sequence by sequence: each update is made before the next sequence is scored, in one compiled call.

learner.py               learning from a batch with a scorer and an optimizer
compiled.py              the loop over sequences: scores, rival, changed features, update
segment_learner.py       the same with scores of segments; compiled_segments.py has its loop
parameter_averaging.py   means of the weights that several processes have moved
"""

from structperc.online.learner import BatchResult, OnlineLearner, SequenceLearner, merge_results, update_local_weights
from structperc.online.segment_learner import SegmentLearner, update_segment_weights

__all__ = [
    "BatchResult",
    "SequenceLearner",
    "OnlineLearner",
    "SegmentLearner",
    "merge_results",
    "update_local_weights",
    "update_segment_weights",
]
