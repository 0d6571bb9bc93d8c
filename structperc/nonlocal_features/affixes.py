"""Shapes of the first and the last words of entities, of all lengths (Collins 2002, figure 1)."""

from collections.abc import Sequence

from torch import Tensor

from structperc.data.words import word_shape
from structperc.nonlocal_features.entity_feature import Anchored, EntityFeature, LexiconFeature
from structperc.nonlocal_features.hashes import Hashes
from structperc.nonlocal_features.primitives import lexicon_shape, lexicon_shapes
from structperc.nonlocal_features.segments import CandidateSegments
from structperc.ragged import spread


class Prefixes(EntityFeature):
    """Shapes of the first n words for each n: PF=f_s, PF=f_s f_s+1, ..., PF=f_s ... f_e. Part n - 1 has n words."""

    template = "PF"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: as many for each as it has words."""
        return prefixes(segments.batch.words.shapes, segments)

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "PF=Aa a"."""
        return f"PF={' '.join(map(word_shape, words[start : start + part + 1]))}"


class LexiconPrefixes(LexiconFeature):
    """Shapes with the lexicon's flag (g) of the first n words for each n: PF2=g_s, PF2=g_s g_s+1, ..., PF2=g_s ...

    G_e.
    """

    template = "PF2"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: as many for each as it has words."""
        return prefixes(lexicon_shapes(segments.batch.words, self.lexicon), segments)

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "PF2=Aa0 a1"."""
        return f"PF2={' '.join(lexicon_shape(word, self.lexicon) for word in words[start : start + part + 1])}"


class Suffixes(EntityFeature):
    """Shapes of the last n words for each n, backwards: SF=f_e, SF=f_e f_e-1, ..., SF=f_e ... f_s."""

    template = "SF"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: as many for each as it has words."""
        return suffixes(segments.batch.words.shapes, segments)

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "SF=a Aa"."""
        return f"SF={' '.join(map(word_shape, reversed(words[end - part - 1 : end])))}"


class LexiconSuffixes(LexiconFeature):
    """Shapes with the lexicon's flag (g) of the last n words for each n, backwards: SF2=g_e, ..., SF2=g_e ... g_s."""

    template = "SF2"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: as many for each as it has words."""
        return suffixes(lexicon_shapes(segments.batch.words, self.lexicon), segments)

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "SF2=a1 Aa0"."""
        last = reversed(words[end - part - 1 : end])
        return f"SF2={' '.join(lexicon_shape(word, self.lexicon) for word in last)}"


def prefixes(shapes: Tensor, segments: CandidateSegments) -> Anchored:
    """Return the strings of the first 1, 2, ... of the shapes (B, T) in each segment."""
    spans, part = spread(segments.spans.ends - segments.spans.starts)
    starts = segments.spans.starts[spans]
    return Anchored(spans, part, Hashes(shapes)(starts, starts + part + 1))


def suffixes(shapes: Tensor, segments: CandidateSegments) -> Anchored:
    """Return the strings of the last 1, 2, ... of the shapes (B, T) in each segment.

    Their numbers are read forwards, which says the same.
    """
    spans, part = spread(segments.spans.ends - segments.spans.starts)
    ends = segments.spans.ends[spans]
    return Anchored(spans, part, Hashes(shapes)(ends - part - 1, ends))
