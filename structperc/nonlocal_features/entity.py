"""Strings of whole entities and of their last words (Collins 2002, figure 1)."""

from collections.abc import Sequence

from structperc.data.words import LOWER, word_kind, word_shape
from structperc.nonlocal_features.entity_feature import Anchored, EntityFeature, LexiconFeature, side_by_side
from structperc.nonlocal_features.hashes import Hashes
from structperc.nonlocal_features.primitives import lexicon_shape, lexicon_shapes
from structperc.nonlocal_features.segments import CandidateSegments


class WholeEntity(EntityFeature):
    """The words of an entity: WE=w_s w_s+1 ... w_e."""

    template = "WE"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: one for each."""
        return side_by_side([Hashes(segments.batch.words.exact)(segments.spans.starts, segments.spans.ends)])

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "WE=The Day They Shot John Lennon"."""
        return f"WE={' '.join(words[start:end])}"


class ShapesOfEntity(EntityFeature):
    """The shapes of the words of an entity: FF=f_s f_s+1 ... f_e."""

    template = "FF"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: one for each."""
        return side_by_side([Hashes(segments.batch.words.shapes)(segments.spans.starts, segments.spans.ends)])

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "FF=Aa A.A."."""
        return f"FF={' '.join(map(word_shape, words[start:end]))}"


class LexiconShapes(LexiconFeature):
    """The shapes of an entity's words, with a flag for words usually in lower case: GF=g_s g_s+1 ... g_e."""

    template = "GF"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: one for each."""
        shapes = Hashes(lexicon_shapes(segments.batch.words, self.lexicon))
        return side_by_side([shapes(segments.spans.starts, segments.spans.ends)])

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "GF=Aa1 A.A.0"."""
        return f"GF={' '.join(lexicon_shape(word, self.lexicon) for word in words[start:end])}"


class LastWord(EntityFeature):
    """The last word of an entity: LW=w_e."""

    template = "LW"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: one for each."""
        return side_by_side([segments.batch.words.exact.flatten()[segments.spans.ends - 1]])

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "LW=Center"."""
        return f"LW={words[end - 1]}"


class LastWordLowerCase(EntityFeature):
    """Whether the last word begins with a lower case letter: LWLC=l_e, which is 1 or 0."""

    template = "LWLC"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: one for each."""
        return side_by_side([segments.batch.words.kinds.flatten()[segments.spans.ends - 1] & LOWER])

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "LWLC=0" or "LWLC=1"."""
        return f"LWLC={word_kind(words[end - 1]) & LOWER}"
