"""What kind of line a sentence is."""

from typing import ClassVar

import numpy as np

from structperc.data.corpus import Corpus, Factorized
from structperc.features.documents.base import DocumentAttribute, Lookup
from structperc.features.documents.mentions import all_capitals

STOPS = frozenset((".", "!", "?", '"', "''", "”"))
SHORT, NUMBERS = 3, 3  # tokens of a short line; in tables every third token or more has a digit


class LineKind(DocumentAttribute):
    """Whether a token is in a line of capitals, in running text, or in another line, such as a title or a table.

    "capitals": no letter of the sentence is small; "text": it ends in a full stop, an exclamation or a question mark or
    a quotation mark; else "line". To that are added "+numbers", where every third token or more has a digit, and
    "+short", for sentences of up to three tokens. In titles and tables case and position mean something else than in
    running text.
    """

    kinds: ClassVar[tuple[str, ...]] = ("text", "line", "capitals")

    def read(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the kind of the sentence of each token."""
        names = [kind + more for kind in self.kinds for more in ("", "+numbers", "+short", "+numbers+short")]
        lengths = np.diff(corpus.sentences)
        words = corpus.factorize("word")
        digit = np.array([any(map(str.isdigit, word)) for word in words.distinct], bool)[words.numbers]
        stop = np.array([word in STOPS for word in words.distinct], bool)[words.numbers]
        digits = np.diff(np.concatenate([[0], np.cumsum(digit)])[corpus.sentences])
        ends = stop[np.maximum(corpus.sentences[1:] - 1, 0)] if corpus.tokens else np.zeros(len(lengths), bool)
        kind = np.where(ends, 0, 1) * 4 + (digits * NUMBERS >= lengths) + 2 * (lengths <= SHORT)
        numbers = np.repeat(kind, lengths)
        return Factorized(names, np.where(all_capitals(corpus), 8 + numbers % 4, numbers).astype(np.int32))
