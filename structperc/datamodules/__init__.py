"""Lightning data modules: from corpora to mini-batches.

base.py         base class of the data modules: splits, tag schemes, loaders
sources.py      the data modules: column files, treebanks, the hub, the embedded corpus, tables, data in memory
encoded.py      an encoded corpus as arrays, and mini-batches
cache.py        corpora and features in files for later runs
sampler.py      order of sequences and mini-batches; resuming an interrupted epoch
distributed.py  distributed training: number of this process, sums and lists over all processes
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
