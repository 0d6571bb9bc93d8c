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

from structperc.batching.encoded import EncodedCorpus, FixedBatches
from structperc.batching.processes import Share, share
from structperc.batching.sampler import LengthBatches
from structperc.batching.sequence_data import SequenceData
from structperc.batching.sources import Conll, Conllu, Hub, Synthetic
from structperc.batching.table_sources import InMemory, Table

__all__ = [
    "SequenceData",
    "Conll",
    "Conllu",
    "Hub",
    "Synthetic",
    "Table",
    "InMemory",
    "EncodedCorpus",
    "FixedBatches",
    "LengthBatches",
    "Share",
    "share",
]
