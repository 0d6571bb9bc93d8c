"""Lightning data modules: from corpora to mini-batches.

base.py          base class of the data modules: splits, tag schemes, loaders
sources.py       the data modules: column files, treebanks, the hub, the embedded corpus, tables, data in memory
encoded.py       an encoded corpus as arrays, and mini-batches
cache.py         corpora and features in files for later runs
sampler.py       order of sequences and mini-batches; resuming an interrupted epoch
distributed.py   distributed training: number of this process, sums and lists over all processes
"""

from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.distributed import ProcessGroup, process_group
from structperc.datamodules.encoded import EncodedCorpus, PrecomputedBatches
from structperc.datamodules.sampler import LengthBatchSampler, TokenBatchSampler
from structperc.datamodules.sources import Combined, Conll, Conllu, Hub, InMemory, Synthetic, Table

__all__ = [
    "SequenceDataModule",
    "Conll",
    "Conllu",
    "Hub",
    "Synthetic",
    "Table",
    "InMemory",
    "Combined",
    "EncodedCorpus",
    "PrecomputedBatches",
    "LengthBatchSampler",
    "TokenBatchSampler",
    "ProcessGroup",
    "process_group",
]
