"""Scores of predicted labels. Integer counts are summed over batches and processes and divided once.

Functions of label names take gold labels first, (y_true, y_pred), as scikit-learn and seqeval do; metrics and functions
of tensors take them second, (preds, target), as torchmetrics does.

accuracy.py       accuracy of tokens and sentences
segments.py       segment counts, precision, recall and F as tables and as single numbers
evaluation.py     all scores of a tagger; F1 of the best candidate of each n-best list
segment_errors.py kinds of errors by an optimal matching, scores of SemEval-2013
seqeval.py        scores, dictionary and report of seqeval, from label names
comparison.py     several systems on one text
significance.py   McNemar's test, tests over trainings and over documents
certified_recall.py  tests of whether recall reaches a goal, learn-then-test
calibration.py    how often confidences are right
abstention.py     scores when segments of low probability are dropped
"""

from structperc.chain.confidence import segment_confidence, token_confidence
from structperc.metrics.abstention import AbstentionPoint, abstention_curve
from structperc.metrics.accuracy import SentenceAccuracy, TokenAccuracy, sentence_counts, token_counts
from structperc.metrics.calibration import Calibration, Reliability, bin_sums
from structperc.metrics.certified_recall import fixed_sequence, highest_certified_recall, recall_p_value
from structperc.metrics.comparison import Comparison, Comparisons, compare, compare_all
from structperc.metrics.evaluation import Evaluation, OracleF1, oracle
from structperc.metrics.segment_errors import (
    ErrorKinds,
    SegmentPair,
    SemEvalScore,
    match_segments,
    segment_pairs,
    semeval_scores,
)
from structperc.metrics.segments import (
    SegmentCounts,
    SegmentF1,
    SegmentFScore,
    SegmentPrecision,
    SegmentRecall,
    SegmentScore,
    SegmentScores,
    f_measure,
    segment_counts,
)
from structperc.metrics.seqeval import (
    classification_report,
    segment_f1_score,
    segment_precision_score,
    segment_recall_score,
    seqeval_scores,
    strict_spans,
)
from structperc.metrics.significance import (
    Bootstrap,
    McNemar,
    SegmentIntervals,
    bootstrap_intervals,
    grouped_bootstrap_intervals,
    mcnemar,
    paired_bootstrap,
    paired_t_test,
    sum_by_document,
)

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
    "SegmentPair",
    "match_segments",
    "segment_pairs",
    "ErrorKinds",
    "SemEvalScore",
    "semeval_scores",
    "oracle",
    "OracleF1",
    "Evaluation",
    "McNemar",
    "mcnemar",
    "paired_t_test",
    "Bootstrap",
    "paired_bootstrap",
    "SegmentIntervals",
    "bootstrap_intervals",
    "grouped_bootstrap_intervals",
    "sum_by_document",
    "recall_p_value",
    "fixed_sequence",
    "highest_certified_recall",
    "Comparison",
    "compare",
    "Comparisons",
    "compare_all",
    "token_confidence",
    "segment_confidence",
    "AbstentionPoint",
    "abstention_curve",
    "bin_sums",
    "Calibration",
    "Reliability",
]
