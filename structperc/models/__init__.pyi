from .base import Model as Model
from .chain_model import ChainModel as ChainModel
from .hub import push_folder as push_folder
from .saving import prune as prune
