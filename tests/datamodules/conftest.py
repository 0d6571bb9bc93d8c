"""What the tests of caches share."""

import pytest

from structperc.data.conll import write_conll
from structperc.data.corpus import Corpus
from structperc.data.synthetic import synthetic_splits


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The embedded corpus in small: train.txt, dev.txt and test.txt, columns word, pos, chunk, label."""
    folder = tmp_path_factory.mktemp("text")
    for split, rows in synthetic_splits(train=6, dev=3, test=1).items():
        write_conll(folder / f"{split}.txt", Corpus.from_dataset(rows, "document"), ["word", "pos", "chunk", "label"])
    return folder


@pytest.fixture(scope="module")
def text(folder):
    return folder / "train.txt"
