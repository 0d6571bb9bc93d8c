"""Re-ranking: a re-ranker chooses among the candidate lists of a first model.

reranker.py            tagger with a local score and non-local features, trained with any criterion on candidates
global_reranker.py     tagger with a ranker, which is trained without gradients
local_score.py         local scores of a `Reranker`
ranker.py              base class of rankers: boosting.py, voted_perceptron.py
candidate_lists.py     stored candidate lists
jackknife.py           training of first models, whose lists are cached
bayes_point.py         mean weights of many passes, as the start of a training
first_labels.py        labels of a first model as an attribute for templates
likely_segments.py     the segments that a first model finds likely, for a model with features of segments
minimum_bayes_risk.py  the candidate of least expected cost, by one tagger or several
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
