"""How a word is written at its other mentions in the document."""

from typing import ClassVar

import numpy as np

from structperc.data.corpus import Corpus, Factorized
from structperc.features.documents.base import DocumentAttribute, Lookup
from structperc.features.documents.mentions import all_capitals, first_tokens, mention_groups

FORMS = ("upper", "lower", "first", "capitals")


class CaseElsewhere(DocumentAttribute):
    """Which case the other tokens of the document with the same word are written in.

    "upper" and "lower" (or both, "upper+lower") inside of sentences, where case means something; else "first", at the
    beginning of a sentence, or "capitals", in a line of capitals, which say only that there are other mentions. A word
    that does not begin with a letter has no value.
    """

    names: ClassVar[tuple[str, ...]] = ("", "upper", "lower", "upper+lower", "first", "capitals")

    def read(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return how other mentions of the word at each token are written."""
        words = corpus.factorize("word")
        initial = np.array([word[:1] for word in words.distinct], str)
        letter, upper = np.char.isalpha(initial)[words.numbers], np.char.isupper(initial)[words.numbers]
        form = np.select([all_capitals(corpus), first_tokens(corpus), upper], [3, 2, 0], 1)
        groups = mention_groups(corpus)
        keys = groups * len(FORMS) + form
        counts = np.bincount(keys, minlength=(groups.max(initial=-1) + 1) * len(FORMS)).reshape(-1, len(FORMS))
        others = counts[groups]
        others[np.arange(len(groups)), form] -= 1
        upper, lower, first, capitals = (others > 0).T
        value = np.select([upper & lower, upper, lower, first, capitals], [3, 1, 2, 4, 5], 0)
        return Factorized(list(self.names), np.where(letter, value, 0).astype(np.int32))
