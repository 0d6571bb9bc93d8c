"""Analysis of saved models: weights, n-best lists, calibration, explanations.

pseudo_labels.py   labels for unknown ones of training data, for self-training
weight_ranking.py  the largest weights by name
nbest.py           quality of n-best lists of several lengths, from one search
calibration.py     confidence against accuracy
abstention.py      scores when segments of low probability are dropped
bias_fitting.py    temperature, and biases for recall or precision; bias_report.py shows them
certified_bias.py  thresholds whose recall reaches a goal with a given probability
error_analysis.py  errors by kind, type, document, length and novelty; error_report.py shows them
label_noise.py     gold labels that cross-validated models contradict
explanation.py     effect of non-local features on decisions; explanation_report.py shows it
decision_order.py  the order in which a guided tagger decides
selection.py       the texts of a pool to label next
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
