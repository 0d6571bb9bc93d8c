"""Data modules: files become sequences with labels in the scheme that the tagger learns."""

import pytest

from structperc.errors import InputError
from structperc.training.sources import Conll, Conllu, Synthetic

IOB1 = "-DOCSTART- O\n\nAnna I-PER\nBo B-PER\nslept O\n\nRome I-LOC\n\n-DOCSTART- O\n\nBo I-PER\n"
CONLLU = """# newdoc
# text = vámonos a casa
1-2\tvámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tvamos\tir\tVERB\tV\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\tP\t_\t1\tobj\t_\t_
2.1\tyo\tyo\tPRON\tP\t_\t_\t_\t_\t_
3\ta\ta\tADP\tE\t_\t4\tcase\t_\t_
4\tcasa\tcasa\tNOUN\tN\t_\t1\tobl\t_\t_

"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_text(IOB1)
    (tmp_path / "a.conllu").write_text(CONLLU)
    return tmp_path


def conll(folder, **options):
    return Conll(path=str(folder), files={"train": "a.txt"}, columns=["word", "label"], labels="IOB1", **options)


def test_documents_in_another_scheme(folder):
    corpus = conll(folder, unit="document", scheme="IOBES").corpus("train")
    assert corpus.columns["label"] == ["S-PER", "S-PER", "O", "S-LOC", "S-PER"]
    assert corpus.lengths.tolist() == [4, 1]


def test_sentences(folder):
    corpus = conll(folder).corpus("train")
    assert corpus.columns["label"] == ["B-PER", "B-PER", "O", "B-LOC", "B-PER"]
    assert corpus.lengths.tolist() == [3, 1, 1]


def test_path_may_name_an_environment_variable(folder, monkeypatch):
    monkeypatch.setenv("PLACE_OF_DATA", str(folder))
    data = Conll(path="${PLACE_OF_DATA}", files={"train": "a.txt"}, columns=["word", "label"], labels="IOB1")
    assert len(data.corpus("train")) == 3


def test_split_that_is_not_there(folder):
    data = conll(folder)
    assert not data.has("dev")
    with pytest.raises(InputError, match="no dev split"):
        data.corpus("dev")


@pytest.mark.parametrize(("tags", "expected"), [("upos", "VERB PRON ADP NOUN"), ("xpos", "V P E N")])
def test_treebank(folder, tags, expected):
    data = Conllu(path=str(folder), files={"train": "a.conllu"}, tags=tags)
    corpus = data.corpus("train")
    assert data.scheme == "none"
    assert corpus.columns["word"] == ["vamos", "nos", "a", "casa"]
    assert corpus.columns["label"] == expected.split()


def test_embedded_corpus_has_three_splits():
    data = Synthetic(train=3, dev=2, test=1, unit="document")
    assert [len(data.corpus(split)) for split in ("train", "dev", "test")] == [3, 2, 1]
    assert data.corpus("train").columns["label"][0] == "O"
