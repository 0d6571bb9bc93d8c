"""Taggers: LightningModules made of parts, how they label text, and how they are saved.

tagger.py            features, scorer, search, criterion and optimizer as one tagger
guided_tagger.py     the tagger of guided learning
sequence_tagger.py   what all taggers do alike
inference.py         labels, k best labellings and probabilities of new text
objective.py         what training minimises, in mini-batches or as a whole
store.py             saved models, made of model_folder.py, description.py and builder.py
start.py             training that begins with a saved model
checkpoints.py       checkpoints; averaging.py, random_states.py: what else a resumed run needs
"""

from structperc.taggers.checkpoints import read_checkpoint
from structperc.taggers.guided_tagger import GuidedTagger
from structperc.taggers.inference import Labelling
from structperc.taggers.sequence_tagger import SequenceTagger
from structperc.taggers.tagger import Tagger

__all__ = ["SequenceTagger", "Tagger", "GuidedTagger", "Labelling", "read_checkpoint"]
