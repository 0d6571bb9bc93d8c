"""Taggers: LightningModules made of parts, how they learn and label text, and how they are saved.

base.py                 base class: data, prediction, evaluation, checkpoints
tagger.py               features, scorer, search, criterion and optimizer as one tagger
guided_tagger.py        the tagger of guided learning
learning.py             how a tagger learns: by gradients, by full batches, one sequence at a time
sequential_learning.py  learning one sequence at a time, also in several processes
callbacks.py            callbacks that taggers need: evaluation weights, random states, learning rates
checkpoints.py          Lightning checkpoints
contract_checks.py      checks of a user's own parts
saving.py               saved models; model_format.py: their two files, read without PyTorch; builder.py: their parts
hub.py                  cards of models, and repositories of the hub
"""

from typing import TYPE_CHECKING

from structperc.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from structperc.taggers.base import BaseTagger, LabelSequence
    from structperc.taggers.checkpoints import read_checkpoint
    from structperc.taggers.guided_tagger import GuidedTagger
    from structperc.taggers.hub import push_folder
    from structperc.taggers.saving import prune
    from structperc.taggers.tagger import Tagger

__all__ = ["BaseTagger", "Tagger", "GuidedTagger", "LabelSequence", "prune", "push_folder", "read_checkpoint"]

__getattr__ = lazy_imports(  # these need Lightning; the files of a model can be read without it
    __name__,
    {
        "structperc.taggers.base": ["BaseTagger", "LabelSequence"],
        "structperc.taggers.tagger": ["Tagger"],
        "structperc.taggers.guided_tagger": ["GuidedTagger"],
        "structperc.taggers.saving": ["prune"],
        "structperc.taggers.hub": ["push_folder"],
        "structperc.taggers.checkpoints": ["read_checkpoint"],
    },
)
