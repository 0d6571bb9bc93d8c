"""Compared scores -> losses (B,). A criterion never searches and never writes weights.

compared.py                                    what is compared: gold and candidates with their scores
base.py                                        the contract, and that of criteria with one rival of gold
perceptron.py, margin.py, hinge.py             gold against the best labelling, with a margin, with a cost
local_and_nonlocal.py                          both kinds of features learned together
likelihood.py                                  the probability of a labelling
local_likelihood.py, token_likelihood.py       that of a label given the one before, or by itself
mce.py, measures.py, smoothing.py, rivals.py   minimum classification error: by how much gold loses, smoothly
corpus_level.py, mce_f.py, units.py            one objective for the whole corpus: the F-score of segments
exponential.py                                 the loss that boosting lowers
priors.py                                      what keeps weights small
"""

from structperc.criteria.base import (
    Criterion,
    Decision,
    PairwiseLoss,
    UpdateRule,
    compared,
    empty_candidates,
    full_precision,
    slice_candidates,
)
from structperc.criteria.crf import CRFLoss, MEMMLoss, TokenCrossEntropyLoss
from structperc.criteria.exponential import ExponentialLoss
from structperc.criteria.hinge import HingeLoss
from structperc.criteria.local_and_nonlocal import LocalAndNonlocal
from structperc.criteria.mce import Logistic, MCELoss, Sigmoid, Smoothing
from structperc.criteria.mce_f import CorpusCriterion, MCEFLoss, Pointwise, Segmentwise, Units
from structperc.criteria.misclassification import Measure, PowerMean, PowerRatio, SoftMax, Strongest
from structperc.criteria.perceptron import MarginLoss, PerceptronLoss
from structperc.criteria.priors import Prior

__all__ = [
    "Criterion",
    "PairwiseLoss",
    "UpdateRule",
    "Decision",
    "compared",
    "empty_candidates",
    "slice_candidates",
    "full_precision",
    "PerceptronLoss",
    "MarginLoss",
    "HingeLoss",
    "ExponentialLoss",
    "LocalAndNonlocal",
    "CRFLoss",
    "MEMMLoss",
    "TokenCrossEntropyLoss",
    "MCELoss",
    "Measure",
    "Strongest",
    "SoftMax",
    "PowerMean",
    "PowerRatio",
    "Smoothing",
    "Sigmoid",
    "Logistic",
    "CorpusCriterion",
    "MCEFLoss",
    "Units",
    "Segmentwise",
    "Pointwise",
    "Prior",
]
