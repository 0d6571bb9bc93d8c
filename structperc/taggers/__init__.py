"""Taggers: LightningModules made of parts, how they label text, and how they are saved.

Each of the first four adds to the one before it; none overrides what another one does.

store.py             a tagger as a folder, made of model_files.py, model_folder.py, description.py and builder.py;
                     narrow_tables.py: its weights in the file; pruning.py: features without weights are dropped
model_card.py        what people read about it; publishing.py: folders on the hub
sequence_tagger.py   what all taggers do alike: learn sizes, label, be evaluated and resumed
lattice_tagger.py    taggers that search: candidates and their scores; scoring.py says which scores count
loss_tagger.py       taggers that learn by the losses of a criterion, in mini-batches or of the corpus as a whole
tagger.py            features, scorer, search, criterion and optimizer as one tagger
guided_tagger.py     the tagger of guided learning
inference.py         labels of mini-batches as those of a corpus
schedules.py         learning rates that change while it learns
start.py             training that begins with a saved model
checkpoints.py       checkpoints; averaging.py, random_states.py: what else a resumed run needs
modes.py             evaluation mode
"""

from typing import TYPE_CHECKING

from structperc.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from structperc.taggers.base import BaseTagger, LabelSequence
    from structperc.taggers.checkpoints import read_checkpoint
    from structperc.taggers.guided_tagger import GuidedTagger
    from structperc.taggers.hub import push_folder
    from structperc.taggers.lattice_tagger import LatticeTagger
    from structperc.taggers.pruning import prune
    from structperc.taggers.tagger import Tagger

__all__ = [
    "BaseTagger",
    "LatticeTagger",
    "Tagger",
    "GuidedTagger",
    "LabelSequence",
    "prune",
    "push_folder",
    "read_checkpoint",
]

__getattr__ = lazy_imports(  # these need Lightning; the files of a model can be read without it
    __name__,
    {
        "structperc.taggers.base": ["BaseTagger", "LabelSequence"],
        "structperc.taggers.lattice_tagger": ["LatticeTagger"],
        "structperc.taggers.tagger": ["Tagger"],
        "structperc.taggers.guided_tagger": ["GuidedTagger"],
        "structperc.taggers.pruning": ["prune"],
        "structperc.taggers.hub": ["push_folder"],
        "structperc.taggers.checkpoints": ["read_checkpoint"],
    },
)
