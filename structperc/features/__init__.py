"""Tokens -> integer feature ids, and weights where the data bring them along.

extractor.py          the feature extractor: fits a corpus, encodes corpora as ids
templates.py          which attributes at which offsets make a feature; CRF++ template files
sources.py            values of attributes: attributes.py, gazetteers.py, clusters.py, documents/, columns of a corpus
windows.py            what stands at an offset from each token
exact_index.py        each feature has an id of its own; keys.py codes of values and conjunctions of them
hashed_index.py       features share buckets; hashing.py hashes and buckets
weighted_features.py  features that the data list with weights
lookup.py             ids at tokens, compiled; kernels.py other compiled loops
id_lists.py           ids of a corpus as arrays; encoded.py mini-batches cut from them
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
