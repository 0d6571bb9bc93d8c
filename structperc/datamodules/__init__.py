"""From corpora to mini-batches: the Lightning data modules and what they are made of.

sources.py          the data modules: column files, treebanks, the hub, the embedded corpus
table_sources.py    those of tables in files, and of data sets in memory
sequence_data.py    what they have in common: splits, tag schemes, loaders
arrays.py           a corpus as arrays, in memory or in files
encoded.py          the same, from which batches are cut
cache.py            what is kept in files for later runs: kept_corpus.py, kept_features.py, and arrays
padding.py          the tokens of a batch side by side
sampler.py          which sequences make a batch, and in which order
resumable.py        how an interrupted epoch goes on
parts.py            how a batch that is too large is divided into parts
processes.py        the processes that share a training
exchange.py         lists of all of them, in a message each
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
