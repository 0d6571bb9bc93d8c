"""Labellings of whole documents -> scores of what shows only when all labels are known.

`find_segments` reads the candidates of a batch once for all features: text.py keeps what they have in common apart
from where they differ, spans.py and segments.py find the segments in it, hashes.py and strings.py which of them have
the same words. base.py is the contract of a feature: it names and counts something, the base has the weights and
gives the scores (B, K). matching.py is what features of equal words share, majority.py what the majority features
share; each feature is one more file.
"""

from structperc.nonlocal_features.base import NonlocalFeature
from structperc.nonlocal_features.conjunction import ConjunctionConsistency
from structperc.nonlocal_features.majority_phrase import MajorityPhrase
from structperc.nonlocal_features.majority_superphrase import MajoritySuperphrase
from structperc.nonlocal_features.phrase import PhraseConsistency
from structperc.nonlocal_features.segments import Segments, find_segments
from structperc.nonlocal_features.subphrase import SubphraseConsistency

__all__ = [
    "find_segments",
    "Segments",
    "NonlocalFeature",
    "PhraseConsistency",
    "SubphraseConsistency",
    "MajorityPhrase",
    "MajoritySuperphrase",
    "ConjunctionConsistency",
]
