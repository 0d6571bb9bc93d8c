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

from structperc.criteria.base import Criterion, Decision, RivalCriterion, Rule
from structperc.criteria.compared import compared, full_precision, no_candidates, some_of
from structperc.criteria.corpus_level import CorpusCriterion
from structperc.criteria.exponential import Exponential
from structperc.criteria.hinge import Hinge
from structperc.criteria.likelihood import Likelihood
from structperc.criteria.local_and_nonlocal import LocalAndNonlocal
from structperc.criteria.local_likelihood import LocalLikelihood
from structperc.criteria.margin import Margin
from structperc.criteria.mce import MCE
from structperc.criteria.mce_f import MCEF
from structperc.criteria.measures import Measure, PowerMean, PowerRatio, SoftMax, Strongest
from structperc.criteria.perceptron import Perceptron
from structperc.criteria.priors import Prior
from structperc.criteria.smoothing import Logistic, Sigmoid, Smoothing
from structperc.criteria.token_likelihood import TokenLikelihood
from structperc.criteria.units import Pointwise, Segmentwise, Units

__all__ = [
    "Criterion",
    "RivalCriterion",
    "Rule",
    "Decision",
    "compared",
    "no_candidates",
    "some_of",
    "full_precision",
    "Perceptron",
    "Margin",
    "Hinge",
    "Exponential",
    "LocalAndNonlocal",
    "Likelihood",
    "LocalLikelihood",
    "TokenLikelihood",
    "MCE",
    "Measure",
    "Strongest",
    "SoftMax",
    "PowerMean",
    "PowerRatio",
    "Smoothing",
    "Sigmoid",
    "Logistic",
    "CorpusCriterion",
    "MCEF",
    "Units",
    "Segmentwise",
    "Pointwise",
    "Prior",
]
