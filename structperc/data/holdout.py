"""Development data from the end of the training data, for corpora that have none of their own."""

from structperc.data.corpus import Corpus
from structperc.errors import InputError


def held_out(corpus: Corpus, number: int) -> tuple[Corpus, Corpus]:
    """Return the corpus without its last `number` >= 1 sequences, and these.

    Raises InputError if nothing would be left.
    """
    kept = len(corpus) - number
    if kept < 1:
        raise InputError(f"data.holdout is {number}, but {corpus.name} has {len(corpus)} sequences: hold out fewer")
    return corpus.stretch(0, kept), corpus.stretch(kept, len(corpus))
