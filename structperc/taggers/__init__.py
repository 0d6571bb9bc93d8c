"""Taggers: models that Lightning trains, and their training methods.

base.py                 base class: hooks of a trainer for data, evaluation and checkpoints
tagger.py               a model of label sequences with criterion, search and optimizer
defaults.py             default optimizers, by the criterion
guided_tagger.py        the tagger of guided learning
learning.py             training methods: by gradients, by full batches, one sequence at a time
sequential_learning.py  learning one sequence at a time, also in several processes
distillation.py         a trained tagger as teacher of another
callbacks.py            callbacks that taggers need: evaluation weights, random states, learning rates
data_requirements.py     what taggers require of a trainer and its data
contract_checks.py      checks of user-defined parts
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
