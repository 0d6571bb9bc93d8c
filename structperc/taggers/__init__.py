"""Taggers: LightningModules made of parts, their training methods, and saved models.

base.py                 base class: data, prediction, evaluation, checkpoints
tagger.py               features, scorer, search, criterion and optimizer as one tagger
defaults.py             default optimizers, by the criterion
guided_tagger.py        the tagger of guided learning
learning.py             training methods: by gradients, by full batches, one sequence at a time
sequential_learning.py  learning one sequence at a time, also in several processes
distillation.py         a trained tagger as teacher of another
callbacks.py            callbacks that taggers need: evaluation weights, random states, learning rates
checkpoint_files.py     Lightning checkpoints
contract_checks.py      checks of user-defined parts
saving.py               saved models; model_format.py: their two files, read without PyTorch
hub.py                  cards of models, and repositories of the hub
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
