"""Tokens -> integer feature ids, and weights where the data bring them along.

templates (crfpp) say what to look at; attributes, gazetteers, clusters, documents and columns (sources) give its value;
windows look at neighbours. numbering is how features get ids: indexed, by the value_codes of values and the keys of an
index (key_counts), or hashed, by hashing into the buckets of a hashed_index, of which bucket_names knows some names.
lookups finds ids at tokens, by the compiled loops of gather; a finder tells it where: ranked_keys in a key_table,
hashed_keys in buckets. matching finds the phrases of gazetteers.
bag reads features that the data list with their weights, listed_names and hashed_names number them. extract puts it all
together in known_features, and gives id_lists, out of which encoded cuts mini-batches.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
