"""Tokens -> integer feature ids, and weights where the data bring them along.

templates (crfpp) say what to look at; attributes, gazetteers, clusters, documents and columns (sources) give its value;
vocabulary numbers the values and windows look at neighbours; keys and index number what training has seen;
lookups finds it at tokens, by the compiled loops of gather and key_table; matching finds the phrases of gazetteers.
bag reads features that the data list with their weights. extract puts them together, and encoded cuts mini-batches out
of what it gives.
"""

from structperc.features.bag import bag_string
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
from structperc.features.encoded import EncodedFeatures
from structperc.features.extract import FeatureExtractor
from structperc.features.gazetteers import Gazetteer
from structperc.features.templates import parse_templates, shipped_sets

__all__ = [
    "parse_templates",
    "shipped_sets",
    "bag_string",
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
