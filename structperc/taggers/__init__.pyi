from .distillation import Teacher as Teacher
from .guided_tagger import GuidedTagger as GuidedTagger
from .tagger import Tagger as Tagger
