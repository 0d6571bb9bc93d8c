"""Development data from the end of the training data, for corpora that have none of their own."""

from dataclasses import replace

from structperc.data.corpus import Corpus
from structperc.errors import InputError


def held_out(corpus: Corpus, number: int) -> tuple[Corpus, Corpus]:
    """-> the corpus without its last `number` >= 1 sequences, and these. InputError unless the former has any."""
    kept = len(corpus) - number
    if kept < 1:
        raise InputError(f"data.holdout is {number}, but {corpus.name} has {len(corpus)} sequences: hold out fewer")
    return stretch(corpus, 0, kept), stretch(corpus, kept, len(corpus))


def stretch(corpus: Corpus, first: int, behind: int) -> Corpus:
    """The sequences first, ..., behind - 1 of a corpus, first < behind, as a corpus of the same name."""
    a, b = int(corpus.starts[first]), int(corpus.starts[behind])
    inside = (corpus.sentences >= a) & (corpus.sentences <= b)
    return replace(
        corpus,
        columns={role: values[a:b] for role, values in corpus.columns.items()},
        starts=corpus.starts[first : behind + 1] - a,
        sentences=corpus.sentences[inside] - a,
        documents=corpus.documents[first:behind],
        lines=None if corpus.lines is None else corpus.lines[a:b],
    )
