"""Candidate lists -> one candidate: second models, and how both models are trained.

lists.py holds what a first model says about every sequence of a corpus: its n best labellings, their scores and
that of gold. A second model adds a local score (local_score.py: the first model's score as one feature, local
features with weights of their own, or both) and the scores of non-local features; any criterion on candidates trains
it.

ranker.py is the other kind of second model, which needs no gradients: boosting.py and voted_perceptron.py (the vote
itself is in votes.py) learn from lists of candidates with sparse binary features, examples.py.

reranker.py and global_reranker.py are both kinds as taggers. jackknife.py trains first models so that none lists what
it has learned from, list_cache.py keeps their lists, list_features.py reads global features off them; first_labels.py
makes an attribute for templates of what such models say. bayes_point.py starts a training from the mean of many.

minimum_risk.py learns nothing: of the candidates that one tagger or several list it chooses the one that is wrong least
on the average, by the costs of candidate_cost.py.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
