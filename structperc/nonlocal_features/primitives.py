"""What strings are made of (Collins 2002, section 3.2): words w, their shapes f, shapes with a flag g.

Each as a number of every token of a batch and as a string of one token of a sentence. Outside of a sentence all of
them are NULL, whose number is 0.
"""

from collections.abc import Sequence

from torch import Tensor

from structperc.data.lexicon import LowerCaseLexicon
from structperc.data.words import word_shape
from structperc.nonlocal_features.hashes import combined
from structperc.nonlocal_features.segments import CandidateSegments
from structperc.structures import Words

NULL = "NULL"


def lexicon_shapes(words: Words, lexicon: LowerCaseLexicon) -> Tensor:
    """Return a number for g of each token, (B, T) int64: the word's shape and whether it is usually in lower case."""
    return combined(words.shapes, lexicon(words.folded).long())


def lexicon_shape(word: str, lexicon: LowerCaseLexicon) -> str:
    """Return the shape of a word and 1 if it is in the lexicon, else 0: g of Animal is Aa1."""
    return f"{word_shape(word)}{int(word in lexicon)}"


def shifted(numbers: Tensor, places: Tensor, by: int | Tensor, segments: CandidateSegments) -> Tensor:
    """Return the numbers (B, T) of the tokens `by` (n,) to the right of places b * T + t (n,).

    Outside of their sentence the result is 0.
    """
    target = (places + by).clamp(0, numbers.numel() - 1)
    same = (segments.sentences[target] == segments.sentences[places]) & (target == places + by)
    return numbers.flatten()[target].where(same, 0)


def spelled(words: Sequence[str], t: int, lexicon: LowerCaseLexicon | None = None) -> str:
    """Write the word at t, or its g where a lexicon is given, or NULL where there is no token."""
    if not 0 <= t < len(words):
        return NULL
    return words[t] if lexicon is None else lexicon_shape(words[t], lexicon)
