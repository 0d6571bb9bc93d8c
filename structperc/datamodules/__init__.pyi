from .base import SequenceDataModule as SequenceDataModule
from .sources import Combined as Combined
from .sources import Conll as Conll
from .sources import Conllu as Conllu
from .sources import Hub as Hub
from .sources import InMemory as InMemory
from .sources import Synthetic as Synthetic
from .sources import Table as Table
