"""Labels against gold -> scores. Integer counts are summed over batches and processes and divided once.

segments.py, accuracy.py     counts and their metrics
oracle.py                    the best of each k-best list
evaluation.py                all of them for a tagger
significance.py, comparison.py    two systems
sentences.py                 borders of sentences inside documents
"""

from structperc.metrics.accuracy import SentenceAccuracy, TokenAccuracy, sentence_counts, token_counts
from structperc.metrics.comparison import Comparison, compare
from structperc.metrics.evaluation import Evaluation
from structperc.metrics.oracle import OracleF1, oracle
from structperc.metrics.segments import SegmentCounts, SegmentF1, SegmentScore, SegmentScores, segment_counts
from structperc.metrics.significance import McNemar, mcnemar

__all__ = [
    "token_counts",
    "TokenAccuracy",
    "sentence_counts",
    "SentenceAccuracy",
    "SegmentCounts",
    "segment_counts",
    "SegmentScore",
    "SegmentScores",
    "SegmentF1",
    "oracle",
    "OracleF1",
    "Evaluation",
    "McNemar",
    "mcnemar",
    "Comparison",
    "compare",
]
