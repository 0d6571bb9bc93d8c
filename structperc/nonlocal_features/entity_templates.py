"""Templates of strings about entities (Collins 2002, figure 1): whole entities, affixes, words around boundaries.

w is a word, f its shape, g its shape with a flag for words that are usually in lower case; s and e are the first and
the last word of an entity.
"""

from abc import abstractmethod
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.data.words import LOWER, word_kind, word_shape
from structperc.nonlocal_features.candidate_segments import CandidateSegments
from structperc.nonlocal_features.global_feature import (
    GlobalFeature,
    LexiconFeature,
    Occurrences,
    shift,
    token_string,
    word_shape_with_flag,
    word_shapes_with_flag,
)
from structperc.nonlocal_features.strings import Hashes, combined
from structperc.ragged import spread


class NumberedParts(NamedTuple):
    """Numbers of the strings of the segments of a batch."""

    spans: Tensor  # (A,) int64, index into `CandidateSegments.spans`
    parts: Tensor  # (A,) int64, number of the string in the template
    numbers: Tensor  # (A,) int64, hash of the string after its =


class EntityFeature(GlobalFeature):
    """Base class of templates with one or several strings for each entity."""

    @abstractmethod
    def numbered_parts(self, segments: CandidateSegments) -> NumberedParts:
        """Return the numbers of the strings of each segment of any candidate."""

    def occurrences(self, segments: CandidateSegments) -> Occurrences:
        """Return the strings of the segments of each candidate."""
        spans, parts, numbers = self.numbered_parts(segments)
        keys = self.key(numbers, parts, segments.spans.types[spans], segments)
        holders = segments.holders.select(spans)
        row = holders.row_ids
        spans = spans[row]
        starts, ends, types, _ = (values[spans] for values in segments.spans)
        first = starts % segments.possible.shape[1]
        return Occurrences(holders.ids, keys[row], first, first + ends - starts, types, parts[row])


def stack_parts(numbers: list[Tensor]) -> NumberedParts:
    """Return the strings of segments from the numbers (E,) of part 0, 1, ... of each segment."""
    columns = torch.stack(numbers, 1)
    E, P = columns.shape
    spans = torch.arange(E, device=columns.device)
    parts = torch.arange(P, device=columns.device)
    return NumberedParts(spans.repeat_interleave(P), parts.repeat(E), columns.flatten())


# -- words of an entity ----------------------------------------------------------------------------------------------


class WholeEntity(EntityFeature):
    """The words of an entity: WE=w_s w_s+1 ... w_e, such as "WE=The Day They Shot John Lennon".

    Args:
        typed: True to distinguish the strings of entities of different types.

    Example:
        >>> feature, words, labels = WholeEntity(), ["Anna", "Lind", "left"], ["B-PER", "I-PER", "O"]
        >>> feature.string(words, labels, 0, 2, "PER", 0)
        'WE=Anna Lind/PER'
    """

    template = "WE"

    def numbered_parts(self, segments: CandidateSegments) -> NumberedParts:
        """Return one string for each segment."""
        return stack_parts([Hashes(segments.batch.words.exact)(segments.spans.starts, segments.spans.ends)])

    def format_string(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Return the string of an entity."""
        return f"WE={' '.join(words[start:end])}"


class LastWord(EntityFeature):
    """The last word of an entity: LW=w_e, such as "LW=Center".

    Args:
        typed: True to distinguish the strings of entities of different types.
    """

    template = "LW"

    def numbered_parts(self, segments: CandidateSegments) -> NumberedParts:
        """Return one string for each segment."""
        return stack_parts([segments.batch.words.exact.flatten()[segments.spans.ends - 1]])

    def format_string(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Return the string of an entity."""
        return f"LW={words[end - 1]}"


class LastWordLowerCase(EntityFeature):
    """Flag of a last word that begins with a lower-case letter: LWLC=l_e, which is 1 or 0.

    Args:
        typed: True to distinguish the strings of entities of different types.
    """

    template = "LWLC"

    def numbered_parts(self, segments: CandidateSegments) -> NumberedParts:
        """Return one string for each segment."""
        return stack_parts([segments.batch.words.kinds.flatten()[segments.spans.ends - 1] & LOWER])

    def format_string(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Return the string of an entity."""
        return f"LWLC={word_kind(words[end - 1]) & LOWER}"


# -- shapes of an entity and of its affixes --------------------------------------------------------------------------


class ShapeFeature(EntityFeature):
    """Strings of the shapes of words: f, or g for a template with a lexicon."""

    def shapes(self, segments: CandidateSegments) -> Hashes:
        """Return the numbers of strings of shapes."""
        words = segments.batch.words
        return Hashes(word_shapes_with_flag(words, self.lexicon) if isinstance(self, LexiconFeature) else words.shapes)

    def format_shapes(self, words: Sequence[str]) -> str:
        """Return the string of the shapes of some words, such as "PF=Aa a" or "PF2=Aa0 a1"."""
        lexicon = self.lexicon if isinstance(self, LexiconFeature) else None
        shapes = [word_shape(word) if lexicon is None else word_shape_with_flag(word, lexicon) for word in words]
        return f"{self.template}={' '.join(shapes)}"


class ShapesOfEntity(ShapeFeature):
    """The shapes of the words of an entity: FF=f_s f_s+1 ... f_e, such as "FF=Aa A.A.".

    Args:
        typed: True to distinguish the strings of entities of different types.
    """

    template = "FF"

    def numbered_parts(self, segments: CandidateSegments) -> NumberedParts:
        """Return one string for each segment."""
        return stack_parts([self.shapes(segments)(segments.spans.starts, segments.spans.ends)])

    def format_string(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Return the string of an entity."""
        return self.format_shapes(words[start:end])


class Prefixes(ShapeFeature):
    """Shapes of the first n words for each n: PF=f_s, PF=f_s f_s+1, ..., PF=f_s ... f_e. Part n - 1 has n words.

    Args:
        typed: True to distinguish the strings of entities of different types.
    """

    template = "PF"

    def numbered_parts(self, segments: CandidateSegments) -> NumberedParts:
        """Return as many strings for each segment as it has words."""
        spans, part = spread(segments.spans.ends - segments.spans.starts)
        starts = segments.spans.starts[spans]
        return NumberedParts(spans, part, self.shapes(segments)(starts, starts + part + 1))

    def format_string(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Return a string of an entity."""
        return self.format_shapes(words[start : start + part + 1])


class Suffixes(ShapeFeature):
    """Shapes of the last n words for each n, backwards: SF=f_e, SF=f_e f_e-1, ..., SF=f_e ... f_s.

    Args:
        typed: True to distinguish the strings of entities of different types.
    """

    template = "SF"

    def numbered_parts(self, segments: CandidateSegments) -> NumberedParts:
        """Return as many strings for each segment as it has words; they are hashed forwards."""
        spans, part = spread(segments.spans.ends - segments.spans.starts)
        ends = segments.spans.ends[spans]
        return NumberedParts(spans, part, self.shapes(segments)(ends - part - 1, ends))

    def format_string(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Return a string of an entity."""
        return self.format_shapes(words[end - part - 1 : end][::-1])


class LexiconShapes(LexiconFeature, ShapesOfEntity):
    """`ShapesOfEntity` with a flag for words usually in lower case: GF=g_s g_s+1 ... g_e, such as "GF=Aa1 A.A.0"."""

    template = "GF"


class LexiconPrefixes(LexiconFeature, Prefixes):
    """`Prefixes` with the flag of a lexicon: PF2=g_s, PF2=g_s g_s+1, ..., PF2=g_s ... g_e."""

    template = "PF2"


class LexiconSuffixes(LexiconFeature, Suffixes):
    """`Suffixes` with the flag of a lexicon: SF2=g_e, ..., SF2=g_e ... g_s."""

    template = "SF2"


# -- words around the boundaries of an entity ------------------------------------------------------------------------


class BoundaryFeature(LexiconFeature, EntityFeature):
    """Strings of the words in windows around one boundary of an entity, in all combinations of w and g.

    Names of strings end in a digit for each word, 0 for w and 1 for g, such as "BO01=in Aa1". The lines on trigrams are
    illegible in our copy of the figure; we assume 16 at each boundary, all forms of the two windows of three words
    across it. `windows` has for each its name and the offsets of its words from the first (`at_end`: last) word.
    """

    windows: tuple[tuple[str, tuple[int, ...]], ...]
    at_end = False

    def numbered_parts(self, segments: CandidateSegments) -> NumberedParts:
        """Return the strings of all segments, window after window."""
        places = segments.spans.ends - 1 if self.at_end else segments.spans.starts
        forms = segments.batch.words.exact, word_shapes_with_flag(segments.batch.words, self.lexicon)
        offsets = {offset for _, window in self.windows for offset in window}
        around = {t: [shift(numbers, places, t, segments) for numbers in forms] for t in offsets}
        parts = [zip(window, bits, strict=True) for _, window, bits in self._parts()]
        return stack_parts([combined(*(around[t][bit] for t, bit in part)) for part in parts])

    def format_string(self, words: Sequence[str], labels: Sequence[str], start: int, end: int, part: int) -> str:
        """Return a string of an entity."""
        name, window, bits = self._parts()[part]
        place = end - 1 if self.at_end else start
        forms = (
            token_string(words, place + t, self.lexicon if bit else None) for t, bit in zip(window, bits, strict=True)
        )
        return f"{name}{''.join(map(str, bits))}={' '.join(forms)}"

    def _parts(self) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
        return [(*window, bits) for window in self.windows for bits in product((0, 1), repeat=len(window[1]))]


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
