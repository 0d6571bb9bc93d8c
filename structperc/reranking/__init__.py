"""Re-ranking: a re-ranker chooses among the candidate lists of a first model.

reranker.py      and global_reranker.py are the taggers. candidate_lists.py stores the lists, jackknife.py trains first
models and caches their lists, bayes_point.py averages the weights of many passes as the start of a training.

A `Reranker` adds a local score (local_score.py) and non-local features, trained with any criterion on candidates. A
`GlobalReranker` uses a ranker (ranker.py) trained without gradients: boosting.py or voted_perceptron.py.

first_labels.py  turns the labels of a first model into an attribute for templates. likely_segments.py limits a model
with features of segments to those that a first model finds. candidate_risk.py decodes the candidates of one or several
taggers by least expected cost.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
