"""Candidate lists -> one candidate: the second models of re-ranking.

lists.py holds what a first model says about every sequence of a corpus: its n best labellings, their scores and
that of gold. A second model adds a local score (local_score.py: the first model's score as one feature, or local
features with weights of their own) and the scores of non-local features; any criterion on candidates trains it.
"""

from structperc.rerankers.lists import CandidateLists, Listed
from structperc.rerankers.local_score import FirstScore, LocalFeatures, LocalScore

__all__ = ["CandidateLists", "Listed", "LocalScore", "FirstScore", "LocalFeatures"]
