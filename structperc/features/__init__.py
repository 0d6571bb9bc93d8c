"""Tokens -> integer feature ids.

templates (crfpp) say what to look at; attributes, gazetteers, clusters and columns (sources) give its value;
windows look at neighbours; keys and index number what training has seen; extract puts them together.
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
