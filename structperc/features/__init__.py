"""Tokens -> integer feature ids.

attributes -> gazetteers, clusters -> sources -> windows -> templates (crfpp) -> keys -> index -> extract -> encoded
"""

from structperc.features.clusters import Clusters
from structperc.features.encoded import EncodedFeatures, Ragged
from structperc.features.extract import FeatureExtractor
from structperc.features.gazetteers import Gazetteer
from structperc.features.templates import parse_templates, shipped_sets

__all__ = [
    "parse_templates",
    "shipped_sets",
    "Gazetteer",
    "Clusters",
    "FeatureExtractor",
    "EncodedFeatures",
    "Ragged",
]
