"""Labellings of whole documents -> scores of what only shows when all labels are known.

`find_segments` reads the segments of all candidates of a batch, each thing once (text.py: what candidates have in
common and where they differ; spans.py, segments.py), and which of them have the same words (strings.py). Each feature
is an nn.Module (base.py) that counts pairs or majorities of segments and scores the counts with its weights; one file
per feature.
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
