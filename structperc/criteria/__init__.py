"""Criteria, which compute losses from the scores of the gold sequences and the candidates.

base.py                contract of all criteria; CandidateLoss and PairwiseLoss: the gold sequence and one candidate
perceptron.py          perceptron, margin perceptron, cost-augmented hinge, exponential loss of boosting
local_and_nonlocal.py  margins of local and of total scores on n-best candidates
crf.py                 negative log-likelihoods: CRF, softmax-margin, MEMM, tokens, distillation; ratio of entities
risk.py                expected costs, of all label sequences or of n-best candidates
costs.py               costs of wrong labels, and of missed, spurious and wrong segments
mce.py, wrong_paths.py  minimum classification error, and sums over all wrong paths
mce_f.py               MCE-F: the F score of the corpus
priors.py              Gaussian and Laplacian priors of weights
"""

from structperc.criteria.base import (
    CandidateLoss,
    Criterion,
    Decision,
    PairwiseLoss,
    UpdateRule,
    empty_candidates,
    score_candidates,
    slice_candidates,
    without_autocast,
)
from structperc.criteria.costs import Costs, SegmentCosts, TokenCosts
from structperc.criteria.crf import (
    CRFLoss,
    DistillationLoss,
    EntityRatio,
    MEMMLoss,
    SoftmaxMarginLoss,
    TokenCrossEntropyLoss,
)
from structperc.criteria.local_and_nonlocal import LocalAndNonlocal
from structperc.criteria.mce import (
    Logistic,
    MaxMeasure,
    MCELoss,
    Measure,
    PowerMean,
    PowerRatio,
    Sigmoid,
    Smoothing,
    SoftMaxMeasure,
)
from structperc.criteria.mce_f import CorpusCriterion, MCEFLoss, SegmentCounts, SoftCounts, TokenCounts
from structperc.criteria.perceptron import ExponentialLoss, HingeLoss, MarginLoss, PerceptronLoss
from structperc.criteria.priors import Prior
from structperc.criteria.risk import NBestRiskLoss, RiskLoss

__all__ = [
    "Criterion",
    "CandidateLoss",
    "PairwiseLoss",
    "UpdateRule",
    "Decision",
    "score_candidates",
    "empty_candidates",
    "slice_candidates",
    "without_autocast",
    "PerceptronLoss",
    "MarginLoss",
    "HingeLoss",
    "ExponentialLoss",
    "LocalAndNonlocal",
    "CRFLoss",
    "SoftmaxMarginLoss",
    "RiskLoss",
    "NBestRiskLoss",
    "Costs",
    "TokenCosts",
    "SegmentCosts",
    "EntityRatio",
    "DistillationLoss",
    "MEMMLoss",
    "TokenCrossEntropyLoss",
    "MCELoss",
    "Measure",
    "MaxMeasure",
    "SoftMaxMeasure",
    "PowerMean",
    "PowerRatio",
    "Smoothing",
    "Sigmoid",
    "Logistic",
    "CorpusCriterion",
    "MCEFLoss",
    "SoftCounts",
    "SegmentCounts",
    "TokenCounts",
    "Prior",
]
