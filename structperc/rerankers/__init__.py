"""Candidate lists -> one candidate: the second models of re-ranking.

lists.py holds what a first model says about every sequence of a corpus: its n best labellings, their scores and
that of gold. A second model adds a local score (local_score.py: the first model's score as one feature, or local
features with weights of their own) and the scores of non-local features; any criterion on candidates trains it.

ranker.py is the other kind of second model, which needs no gradients: boosting.py and voted_perceptron.py (the vote
itself is in votes.py) learn from lists of candidates with sparse binary features, examples.py.
"""

from structperc.rerankers.boosting import Boosting
from structperc.rerankers.examples import Examples
from structperc.rerankers.lists import CandidateLists, Listed
from structperc.rerankers.local_score import FirstScore, LocalFeatures, LocalScore
from structperc.rerankers.ranker import Ranker
from structperc.rerankers.voted_perceptron import VotedPerceptron

__all__ = [
    "CandidateLists",
    "Listed",
    "LocalScore",
    "FirstScore",
    "LocalFeatures",
    "Examples",
    "Ranker",
    "Boosting",
    "VotedPerceptron",
]
