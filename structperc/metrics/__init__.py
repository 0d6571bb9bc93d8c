"""Scores of predicted labels. Integer counts are summed over batches and processes and divided once.

Functions of label names take gold labels first, (y_true, y_pred), as scikit-learn and seqeval do; metrics and functions
of tensors take them second, (preds, target), as torchmetrics does.

counts.py                counts of right and wrong labels, sentences and segments; the best candidate of a list
f_measure.py             precision, recall and F of segments
corpus_scores.py         all scores of labels of a corpus
torchmetrics_classes.py  the same as metrics of torchmetrics, for batches and several processes
segment_errors.py        kinds of errors by an optimal matching, scores of SemEval-2013
seqeval.py               scores, dictionary and report of seqeval, from label names
comparison.py            several systems on one text
significance.py          McNemar's test, tests over trainings and over documents
certified_recall.py      tests of whether recall reaches a goal, learn-then-test
confidence_bins.py       how often confidences are right
abstention_curve.py      scores when segments of low probability are dropped
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
