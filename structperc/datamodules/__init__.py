"""Lightning data modules: from corpora to mini-batches.

base.py          base class of the data modules: splits, tag schemes, loaders
sources.py       the data modules: column files, treebanks, the hub, the embedded corpus, tables, data in memory
arrays.py        a corpus as arrays, in memory or in files
encoded.py       an encoded corpus, from which batches are cut
cache.py         corpora and features kept in files for later runs
sampler.py       which sequences make a batch, and in which order; how an interrupted epoch is resumed
distributed.py   processes that share a training
"""

from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.distributed import Share, share
from structperc.datamodules.encoded import EncodedCorpus, PrecomputedBatches
from structperc.datamodules.sampler import LengthBatchSampler
from structperc.datamodules.sources import Conll, Conllu, Hub, InMemory, Synthetic, Table

__all__ = [
    "SequenceDataModule",
    "Conll",
    "Conllu",
    "Hub",
    "Synthetic",
    "Table",
    "InMemory",
    "EncodedCorpus",
    "PrecomputedBatches",
    "LengthBatchSampler",
    "Share",
    "share",
]
