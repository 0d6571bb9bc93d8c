"""Corpora are cut where nothing that belongs together is cut apart."""

import random

import numpy as np
import pytest

from structperc.data.corpus import Corpus
from structperc.data.splits import chunk_bounds


def corpora():
    draw = random.Random(0)
    for _ in range(60):
        lengths = [draw.randint(0, 4) for _ in range(draw.randint(1, 12))]
        documents = [draw.randint(0, 5) for _ in lengths]
        documents = sorted(documents) if draw.random() < 0.5 else documents
        yield Corpus.from_sentences([{"word": ["a"] * n} for n in lengths], documents)


@pytest.mark.parametrize("extent", ["sequence", "document", "corpus"])
def test_ends_of_pieces(extent):
    cut = 0
    for corpus in corpora():
        ids, starts = corpus.documents.tolist(), corpus.starts.tolist()
        apart = {
            "sequence": lambda s: True,
            "document": lambda s, ids=ids: not set(ids[:s]) & set(ids[s:]),
            "corpus": lambda s, ids=ids: s in (0, len(ids)),
        }[extent]
        allowed = [s for s in range(len(corpus) + 1) if apart(s)]
        wanted = {next(s for s in allowed if starts[s] >= at) for at in range(0, max(1, corpus.tokens), 3)}
        assert chunk_bounds(corpus, 3, extent) == [*sorted({0, *wanted} - {len(corpus)}), len(corpus)]
        cut += len(wanted) > 2
    assert (cut > 10) == (extent != "corpus")


def test_pieces_have_about_a_size():
    corpus = Corpus.from_sentences([{"word": ["a"] * 2}] * 50)
    assert np.diff(chunk_bounds(corpus, 10)).tolist() == [5] * 10
    assert chunk_bounds(corpus, 1000) == [0, 50]
    assert chunk_bounds(Corpus.from_sentences([]), 10) == [0, 0]  # one piece, too
