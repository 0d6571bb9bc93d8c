"""Labels against gold -> scores. Integer counts are summed over batches and processes and divided once.

Functions of label names take gold first, (y_true, y_pred), as scikit-learn and seqeval do; metrics and functions of
tensors take it second, (preds, target), as torchmetrics does.

segments.py, f_measure.py, accuracy.py     counts and their metrics
segment_shares.py                          precision, recall and F as one number each, for loggers
seqeval.py, label_sequences.py             scores, dictionary and report of seqeval from label names, in its two modes
oracle.py                                  the best of each k-best list
evaluation.py                              all of them for a tagger
significance.py                            McNemar's test; tests over trainings and over documents
systems.py, comparison.py, all_pairs.py    what a system got right; two systems; any number of systems
confidence.py, calibration.py              how sure a model is, and how often it is right when it is so sure
sentences.py                               boundaries of sentences inside documents
"""

from structperc.metrics.accuracy import SentenceAccuracy, TokenAccuracy, sentence_counts, token_counts
from structperc.metrics.calibration import Calibration, Reliability, bin_sums, segment_confidence, token_confidence
from structperc.metrics.comparison import Comparison, Comparisons, compare, compare_all
from structperc.metrics.evaluation import Evaluation
from structperc.metrics.oracle import OracleF1, oracle
from structperc.metrics.segment_scores import SegmentFScore, SegmentPrecision, SegmentRecall
from structperc.metrics.segments import SegmentCounts, SegmentF1, SegmentScore, SegmentScores, f_measure, segment_counts
from structperc.metrics.seqeval import (
    classification_report,
    segment_f1_score,
    segment_precision_score,
    segment_recall_score,
    seqeval_scores,
    strict_spans,
)
from structperc.metrics.significance import Bootstrap, McNemar, mcnemar, paired_bootstrap, paired_t_test

__all__ = [
    "token_counts",
    "TokenAccuracy",
    "sentence_counts",
    "SentenceAccuracy",
    "SegmentCounts",
    "segment_counts",
    "f_measure",
    "SegmentScore",
    "SegmentScores",
    "SegmentF1",
    "SegmentFScore",
    "SegmentPrecision",
    "SegmentRecall",
    "seqeval_scores",
    "segment_f1_score",
    "segment_precision_score",
    "segment_recall_score",
    "classification_report",
    "strict_spans",
    "oracle",
    "OracleF1",
    "Evaluation",
    "McNemar",
    "mcnemar",
    "paired_t_test",
    "Bootstrap",
    "paired_bootstrap",
    "Comparison",
    "compare",
    "Comparisons",
    "compare_all",
    "token_confidence",
    "segment_confidence",
    "bin_sums",
    "Calibration",
    "Reliability",
]
