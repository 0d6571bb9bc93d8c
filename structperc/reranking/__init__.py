"""Re-ranking: a second model chooses among the candidate lists of a first model.

reranker.py and global_reranker.py are the taggers. candidate_lists.py stores the lists, jackknife.py trains first
models and caches their lists, bayes_point.py averages the weights of many passes as the start of a training.

The second model of a `Reranker` adds a local score (local_score.py) and non-local features, trained with any criterion
on candidates. That of a `GlobalReranker` is a ranker (ranker.py) trained without gradients: boosting.py or
voted_perceptron.py.

first_labels.py turns the labels of a first model into an attribute for templates. minimum_risk.py decodes the
candidates of one or several taggers by least expected cost.
"""

from typing import TYPE_CHECKING

from structperc.lazy_imports import lazy_imports
from structperc.reranking.boosting import Boosting
from structperc.reranking.candidate_lists import CandidateLists, ListBatch
from structperc.reranking.local_score import FirstScore, LocalFeatures, LocalScore, LocalSum
from structperc.reranking.ranker import Examples, Ranker
from structperc.reranking.voted_perceptron import VotedPerceptron

if TYPE_CHECKING:
    from structperc.reranking.bayes_point import BayesPoint
    from structperc.reranking.first_labels import FirstLabels
    from structperc.reranking.global_reranker import GlobalReranker
    from structperc.reranking.jackknife import JackKnife
    from structperc.reranking.minimum_risk import CandidateCost, MinimumRisk, SegmentCost, TokenCost
    from structperc.reranking.reranker import Reranker

__all__ = [
    "CandidateLists",
    "ListBatch",
    "LocalScore",
    "FirstScore",
    "LocalFeatures",
    "LocalSum",
    "Examples",
    "Ranker",
    "Boosting",
    "VotedPerceptron",
    "Reranker",
    "GlobalReranker",
    "JackKnife",
    "FirstLabels",
    "BayesPoint",
    "CandidateCost",
    "SegmentCost",
    "TokenCost",
    "MinimumRisk",
]

__getattr__ = lazy_imports(  # these need Lightning
    __name__,
    {
        "structperc.reranking.reranker": ["Reranker"],
        "structperc.reranking.global_reranker": ["GlobalReranker"],
        "structperc.reranking.jackknife": ["JackKnife"],
        "structperc.reranking.first_labels": ["FirstLabels"],
        "structperc.reranking.bayes_point": ["BayesPoint"],
        "structperc.reranking.minimum_risk": ["CandidateCost", "MinimumRisk", "SegmentCost", "TokenCost"],
    },
)
