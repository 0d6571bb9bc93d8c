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

from structperc.criteria.base import Criterion, PairwiseLoss
from structperc.criteria.costs import SegmentCosts, TokenCosts
from structperc.criteria.crf import (
    CRFLoss,
    DistillationLoss,
    EntityRatio,
    MEMMLoss,
    SoftmaxMarginLoss,
    TokenCrossEntropyLoss,
)
from structperc.criteria.local_and_nonlocal import LocalAndNonlocal
from structperc.criteria.mce import Logistic, MaxMeasure, MCELoss, PowerMean, Sigmoid, SoftMaxMeasure
from structperc.criteria.mce_f import CorpusCriterion, MCEFLoss
from structperc.criteria.perceptron import ExponentialLoss, HingeLoss, MarginLoss, PerceptronLoss
from structperc.criteria.priors import Prior
from structperc.criteria.risk import NBestRiskLoss, RiskLoss

__all__ = [
    "Criterion",
    "PairwiseLoss",
    "PerceptronLoss",
    "MarginLoss",
    "HingeLoss",
    "ExponentialLoss",
    "LocalAndNonlocal",
    "CRFLoss",
    "SoftmaxMarginLoss",
    "RiskLoss",
    "NBestRiskLoss",
    "TokenCosts",
    "SegmentCosts",
    "EntityRatio",
    "DistillationLoss",
    "MEMMLoss",
    "TokenCrossEntropyLoss",
    "MCELoss",
    "MaxMeasure",
    "SoftMaxMeasure",
    "PowerMean",
    "Sigmoid",
    "Logistic",
    "CorpusCriterion",
    "MCEFLoss",
    "Prior",
]
