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

from typing import TYPE_CHECKING

from structperc.features.clusters import Clusters
from structperc.features.documents import (
    CaseElsewhere,
    DocumentAttribute,
    EntityMajority,
    LineKind,
    LongestMention,
    OtherMentions,
    SuperentityMajority,
    TokenMajority,
)
from structperc.features.extractor import FeatureExtractor
from structperc.features.gazetteers import Gazetteer
from structperc.features.templates import parse_templates, shipped_sets
from structperc.features.weighted_features import format_weighted_features
from structperc.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from structperc.features.encoded import EncodedFeatures

__all__ = [
    "parse_templates",
    "shipped_sets",
    "format_weighted_features",
    "Gazetteer",
    "Clusters",
    "DocumentAttribute",
    "OtherMentions",
    "LongestMention",
    "CaseElsewhere",
    "LineKind",
    "TokenMajority",
    "EntityMajority",
    "SuperentityMajority",
    "FeatureExtractor",
    "EncodedFeatures",
]

__getattr__ = lazy_imports(__name__, {"structperc.features.encoded": ["EncodedFeatures"]})  # needs PyTorch
