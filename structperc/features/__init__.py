"""Features of tokens as integer ids, with values if the data contain them.

extractor.py          the feature extractor: fits a corpus, encodes corpora as ids
templates.py          templates: attributes at offsets; CRF++ template files
attribute_sources.py  values of attributes: attributes.py (surface), resources.py (gazetteers, clusters), documents/
                      (whole documents), columns of a corpus
vector_clusters.py    clusters of word vectors
string_arrays.py      attribute values and feature ids of a corpus as arrays; encoded_features.py cuts mini-batches
feature_index.py      names and numbers of the features of an extractor
exact_index.py        numbering with an id for each feature
hashed_index.py       numbering with buckets that features share; hashing.py computes the hashes
segment_keys.py       templates of whole segments; segment_mentions.py majorities of their other mentions;
                      segment_index.py numbers their features, exactly or hashed
weighted_features.py  features that the data list with weights
lookup.py             compiled lookup of ids; phrase_matching.py other compiled loops
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
