"""The base of templates that are anchored on entities.

Strings of whole entities and of their last words (Collins 2002, figure 1).

Shapes of the first and the last words of entities, of all lengths (Collins 2002, figure 1).

Words around the boundaries of entities, each as itself or as its shape with a flag (Collins 2002, figure 1).
"""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.lexicon import LowerCaseLexicon
from structperc.data.words import LOWER, word_kind, word_shape
from structperc.nonlocal_features.global_feature import (
    GlobalFeature,
    Occurrences,
    lexicon_shape,
    lexicon_shapes,
    shifted,
    spelled,
)
from structperc.nonlocal_features.segments import CandidateSegments
from structperc.nonlocal_features.strings import Hashes, combined
from structperc.ragged import spread


class Anchored(NamedTuple):
    """The strings of the segments of a batch, by number."""

    spans: Tensor  # (A,) int64, which of `CandidateSegments.spans`
    parts: Tensor  # (A,) int64, which string of the template
    numbers: Tensor  # (A,) int64, number of what follows the = in it


class EntityFeature(GlobalFeature):
    """A template of which each entity has one or several strings. A subclass gives their numbers."""

    @abstractmethod
    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of each segment that some labelling has."""

    def occurrences(self, segments: CandidateSegments) -> Occurrences:
        """Return the strings of the segments of each labelling."""
        spans, parts, numbers = self.anchored(segments)
        keys = self.key(numbers, parts, segments.spans.types[spans], segments)
        held = segments.holders.select(spans)
        owner = held.row_ids
        spans = spans[owner]
        starts, ends, types, _ = (values[spans] for values in segments.spans)
        first = starts % segments.possible.shape[1]
        return Occurrences(held.ids, keys[owner], first, first + ends - starts, types, parts[owner])


class LexiconFeature(EntityFeature):
    """A template that asks whether words are usually in lower case.

    Args:
        typed: whether entities of different types make different strings.
        lexicon: which words are; by default those that are so in the training data.
    """

    def __init__(self, typed: bool = True, lexicon: LowerCaseLexicon | None = None) -> None:
        super().__init__(typed)
        self.lexicon = lexicon or LowerCaseLexicon()


def stack_parts(numbers: list[Tensor]) -> Anchored:
    """Return the strings of segments, from the numbers (E,) of part 0, 1, ... of each segment."""
    columns = torch.stack(numbers, 1)
    E, P = columns.shape
    spans = torch.arange(E, device=columns.device)
    parts = torch.arange(P, device=columns.device)
    return Anchored(spans.repeat_interleave(P), parts.repeat(E), columns.flatten())


class WholeEntity(EntityFeature):
    """The words of an entity: WE=w_s w_s+1 ... w_e."""

    template = "WE"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: one for each."""
        return stack_parts([Hashes(segments.batch.words.exact)(segments.spans.starts, segments.spans.ends)])

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "WE=The Day They Shot John Lennon"."""
        return f"WE={' '.join(words[start:end])}"


class ShapesOfEntity(EntityFeature):
    """The shapes of the words of an entity: FF=f_s f_s+1 ... f_e."""

    template = "FF"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: one for each."""
        return stack_parts([Hashes(segments.batch.words.shapes)(segments.spans.starts, segments.spans.ends)])

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "FF=Aa A.A."."""
        return f"FF={' '.join(map(word_shape, words[start:end]))}"


class LexiconShapes(LexiconFeature):
    """The shapes of an entity's words, with a flag for words usually in lower case: GF=g_s g_s+1 ... g_e."""

    template = "GF"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: one for each."""
        shapes = Hashes(lexicon_shapes(segments.batch.words, self.lexicon))
        return stack_parts([shapes(segments.spans.starts, segments.spans.ends)])

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "GF=Aa1 A.A.0"."""
        return f"GF={' '.join(lexicon_shape(word, self.lexicon) for word in words[start:end])}"


class LastWord(EntityFeature):
    """The last word of an entity: LW=w_e."""

    template = "LW"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: one for each."""
        return stack_parts([segments.batch.words.exact.flatten()[segments.spans.ends - 1]])

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "LW=Center"."""
        return f"LW={words[end - 1]}"


class LastWordLowerCase(EntityFeature):
    """Whether the last word begins with a lower case letter: LWLC=l_e, which is 1 or 0."""

    template = "LWLC"

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments: one for each."""
        return stack_parts([segments.batch.words.kinds.flatten()[segments.spans.ends - 1] & LOWER])

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "LWLC=0" or "LWLC=1"."""
        return f"LWLC={word_kind(words[end - 1]) & LOWER}"


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


class BoundaryFeature(LexiconFeature):
    """Strings of the words in windows around one boundary of an entity, in all combinations of w and g.

    windows: for each, its name and the offsets of its words from the first (`at_end`: last) word of the entity.
    """

    windows: tuple[tuple[str, tuple[int, ...]], ...]
    at_end = False

    def anchored(self, segments: CandidateSegments) -> Anchored:
        """Return the strings of all segments, window after window."""
        places = segments.spans.ends - 1 if self.at_end else segments.spans.starts
        forms = segments.batch.words.exact, lexicon_shapes(segments.batch.words, self.lexicon)
        offsets = {offset for _, window in self.windows for offset in window}
        around = {t: [shifted(numbers, places, t, segments) for numbers in forms] for t in offsets}
        return stack_parts([self._number(around, window, bits) for _, window, bits in self._parts()])

    def spell(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Write a string as "BO01=in Aa1"."""
        name, window, bits = self._parts()[part]
        place = end - 1 if self.at_end else start
        forms = (spelled(words, place + t, self.lexicon if bit else None) for t, bit in zip(window, bits, strict=True))
        return f"{name}{''.join(map(str, bits))}={' '.join(forms)}"

    def _parts(self) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        return [(*window, bits) for window in self.windows for bits in product((0, 1), repeat=len(window[1]))]

    @staticmethod
    def _number(around: dict[int, list[Tensor]], window: tuple[int, ...], bits: tuple[int, ...]) -> Tensor:
        return combined(*(around[t][bit] for t, bit in zip(window, bits, strict=True)))


class StartBigrams(BoundaryFeature):
    """Words before and after the start of an entity: BO00=w_s-1 w_s, BO01=w_s-1 g_s, BO10, BO11."""

    template = "BO"
    windows = (("BO", (-1, 0)),)


class EndBigrams(BoundaryFeature):
    """Words before and after the end of an entity: BE00=w_e w_e+1, BE01=w_e g_e+1, BE10, BE11."""

    template = "BE"
    windows = (("BE", (0, 1)),)
    at_end = True


class StartTrigrams(BoundaryFeature):
    """Words around the start of an entity: TO000=w_s-1 w_s w_s+1 ... TO111, TO2000=w_s-2 w_s-1 w_s ... TO2111."""

    template = "TO"
    windows = (("TO", (-1, 0, 1)), ("TO2", (-2, -1, 0)))


class EndTrigrams(BoundaryFeature):
    """Words around the end of an entity: TE000=w_e-1 w_e w_e+1 ... TE111, TE2000=w_e w_e+1 w_e+2 ... TE2111."""

    template = "TE"
    windows = (("TE", (-1, 0, 1)), ("TE2", (0, 1, 2)))
    at_end = True
