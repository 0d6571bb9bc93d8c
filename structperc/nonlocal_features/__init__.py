"""Label sequences of whole documents -> scores of what shows only when all labels are known.

base.py              base class of features and their total score
segments.py          segments of all candidates of a batch; candidate_text.py what candidates share; strings.py equal
                     words; kernels.py counts in few candidates on a CPU, compiled
consistency.py       phrase and sub-phrase consistency and their majority versions; conjunction.py chains of entities
global_feature.py    base class of global features (Collins 2002), strings whose vocabulary is learned: vocabulary.py
entity_templates.py  strings of entities, affixes and boundaries; quotes.py of quoted words
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
