from .base import BaseTagger as BaseTagger
from .base import LabelSequence as LabelSequence
from .checkpoint_files import read_checkpoint as read_checkpoint
from .distillation import Teacher as Teacher
from .guided_tagger import GuidedTagger as GuidedTagger
from .hub import push_folder as push_folder
from .saving import prune as prune
from .tagger import Tagger as Tagger
