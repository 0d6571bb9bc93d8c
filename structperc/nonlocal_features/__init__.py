"""Labellings of whole documents -> scores of what shows only when all labels are known.

segments.py answers what features ask of the candidates of a batch, once for all features. Of many candidates text.py
keeps what they have in common apart from where they differ, spans.py finds the segments in it, hashes.py and
strings.py which of them have the same words. In a few candidates, on a CPU, compiled functions count one by one:
segment_lists.py, string_counts.py and chain_counts.py, and arrays.py has what they take and return.

base.py is the contract of a feature: it names and counts something, the base has the weights and gives the scores
(B, K), which scores.py adds up. matching.py is what features of equal words share, majority.py what the majority
features share; each feature is one more file.

Global features (Collins 2002) are strings that are read off labellings: global_feature.py is their contract,
primitives.py what strings are made of, entity_feature.py what those of entities share. entity.py, boundary.py,
affixes.py and quotes.py are the templates. Which strings are features is learned: vocabulary.py collects them.
"""

from structperc.nonlocal_features.base import NonlocalFeature, nonlocal_scores
from structperc.nonlocal_features.conjunction import ConjunctionConsistency
from structperc.nonlocal_features.consistency import (
    MajorityPhrase,
    MajoritySuperphrase,
    PhraseConsistency,
    SubphraseConsistency,
)
from structperc.nonlocal_features.entity_templates import (
    EndBigrams,
    EndTrigrams,
    LastWord,
    LastWordLowerCase,
    LexiconPrefixes,
    LexiconShapes,
    LexiconSuffixes,
    Prefixes,
    ShapesOfEntity,
    StartBigrams,
    StartTrigrams,
    Suffixes,
    WholeEntity,
)
from structperc.nonlocal_features.global_feature import GlobalFeature, Occurrences
from structperc.nonlocal_features.quotes import QuotedEntity, QuotedTags
from structperc.nonlocal_features.segments import CandidateSegments, find_segments
from structperc.nonlocal_features.vocabulary import Instances, Vocabulary, spell

__all__ = [
    "find_segments",
    "CandidateSegments",
    "NonlocalFeature",
    "nonlocal_scores",
    "PhraseConsistency",
    "SubphraseConsistency",
    "MajorityPhrase",
    "MajoritySuperphrase",
    "ConjunctionConsistency",
    "GlobalFeature",
    "Occurrences",
    "Vocabulary",
    "Instances",
    "spell",
    "WholeEntity",
    "ShapesOfEntity",
    "LexiconShapes",
    "LastWord",
    "LastWordLowerCase",
    "StartBigrams",
    "EndBigrams",
    "StartTrigrams",
    "EndTrigrams",
    "Prefixes",
    "LexiconPrefixes",
    "Suffixes",
    "LexiconSuffixes",
    "QuotedTags",
    "QuotedEntity",
]
