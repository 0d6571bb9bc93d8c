"""Features that compare the words of segments."""

from typing import Literal

from structperc.errors import InputError
from structperc.nonlocal_features.arrays import StringCounts
from structperc.nonlocal_features.base import NonlocalFeature
from structperc.nonlocal_features.segments import CandidateSegments
from structperc.nonlocal_features.strings import Strings


class StringFeature(NonlocalFeature):
    """A feature of documents that asks which segments have the same words.

    Args:
        match: "exact", or "folded" to compare words without their case, as headlines in capitals need it.
    """

    needs_documents = True

    def __init__(self, match: Literal["exact", "folded"] = "exact") -> None:
        super().__init__()
        if match not in ("exact", "folded"):
            raise InputError(f"match: {match!r} is not known; choose exact or folded")
        self.match = match

    def strings(self, segments: CandidateSegments) -> Strings:
        """Return the strings of the segments, compared as `match` says."""
        return segments.exact if self.match == "exact" else segments.folded

    def compiled(self, segments: CandidateSegments) -> StringCounts:
        """Return what compiled functions count, words compared as `match` says."""
        return segments.exact_counts if self.match == "exact" else segments.folded_counts

    def named(self, name: str) -> str:
        """Return "phrase", or "phrase_folded", so that both can be in one tagger."""
        return name if self.match == "exact" else f"{name}_{self.match}"
