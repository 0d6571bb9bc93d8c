"""Labels that a model adds to training data, in the lines of its file."""

import pytest

from structperc.analysis import pseudo_labels
from structperc.analysis.pseudo_labels import output_lines
from structperc.data.read_options import ReadOptions
from structperc.errors import InputError
from structperc.sklearn import SequenceTagger
from structperc.tagging.labelled_files import read_incomplete

READING = ReadOptions(columns=["word", "_", "label"])
TEXT = "-DOCSTART- -X- O\n\nAnna\tNNP\tB-PER|B-LOC\nleft  VBD  ?\n\nYes UH O\n"


@pytest.fixture(scope="module")
def tagger():
    X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
    return SequenceTagger(max_iterations=20).fit(X, y).tagger_


def test_labels_are_replaced_in_place(tagger, tmp_path):
    file = str(tmp_path / "train.txt")
    (tmp_path / "train.txt").write_text(TEXT)
    corpus = read_incomplete(tagger, file, READING)
    all_added = pseudo_labels(tagger, corpus, 0.0)
    lines = "".join(output_lines(tagger, file, all_added.corpus, READING))
    assert lines == TEXT.replace("B-PER|B-LOC", "B-PER").replace("?", "O")
    assert (all_added.added, all_added.unknown) == ({"PER": 1, "O": 1}, 0)
    assert pseudo_labels(tagger, corpus, 1.0).corpus.columns["allowed"] == ["B-LOC|B-PER", "?", "O"]


def test_complete_labels_are_refused(tagger, tmp_path):
    (tmp_path / "train.txt").write_text("Anna NNP B-PER\n")
    with pytest.raises(InputError, match=r"train\.txt"):
        pseudo_labels(tagger, read_incomplete(tagger, str(tmp_path / "train.txt"), READING))
