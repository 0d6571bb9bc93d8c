"""Words around the boundaries of entities, each as itself or as its shape with a flag (Collins 2002, figure 1).

Names of strings end in a digit for each word, 0 for w and 1 for g. The figure's lines on trigrams are lost in our
copy; they are taken to be 16 at either boundary, all forms of the two windows of three words across it.
"""

from collections.abc import Sequence
from itertools import product

from torch import Tensor

from structperc.nonlocal_features.entity_feature import Anchored, LexiconFeature, side_by_side
from structperc.nonlocal_features.hashes import combined
from structperc.nonlocal_features.primitives import lexicon_shapes, shifted, spelled
from structperc.nonlocal_features.segments import CandidateSegments


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
        return side_by_side([self._number(around, window, bits) for _, window, bits in self._parts()])

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
