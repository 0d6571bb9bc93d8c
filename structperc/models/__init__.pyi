from .base import LabelSequence as LabelSequence
from .base import Model as Model
from .biases import Biases as Biases
from .chain_model import ChainModel as ChainModel
from .checkpoint_files import read_checkpoint as read_checkpoint
from .hub import push_folder as push_folder
from .saving import prune as prune
