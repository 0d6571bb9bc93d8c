"""Tokens -> integer feature ids, and weights where the data bring them along.

templates (crfpp) say what to look at; attributes, gazetteers, clusters, documents and columns (sources) give its value;
windows look at neighbours. numbering is how features get ids: indexed, by the value_codes of values and the keys of an
index (key_counts), or hashed, by hashing into the buckets of a hashed_index, of which bucket_names knows some names.
lookups finds ids at tokens, by the compiled loops of gather; a finder tells it where: ranked_keys in a key_table,
hashed_keys in buckets. matching finds the phrases of gazetteers.
bag reads features that the data list with their weights, listed_names and hashed_names number them. extract puts it all
together in known_features, and gives id_lists, out of which encoded cuts mini-batches.
"""

from typing import TYPE_CHECKING

from structperc.features.bag import format_weighted_features
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

__getattr__ = lazy_imports(__name__, {"structperc.features.encoded": ["EncodedFeatures"]})  # which needs PyTorch
