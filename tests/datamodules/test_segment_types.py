"""data.types: other names of segment types in every split, and in what is predicted."""

import pytest

from structperc.datamodules.sources import Conll, Conllu, Synthetic
from structperc.errors import InputError
from structperc.reranking.jackknife import TrainingPart
from tests.tiny import Sentences, without_names

TRAIN = "Anna I-PER\nRome I-LOC\nBo B-LOC\nslept O\n\nUN I-ORG\nRome I-LOC\n\nBo I-PER\nBo B-PER\n"
DEV = "Bo I-PER\nRome I-LOC\n"
MERGED = {"PER": "NAME", "LOC": "NAME"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.txt").write_text(TRAIN)
    (tmp_path / "dev.txt").write_text(DEV)
    return str(tmp_path)


def conll(folder, **options):
    files = {"train": "train.txt", "dev": "dev.txt"}
    return Conll(**{"path": folder, "files": files, "columns": ["word", "label"], "labels": "IOB1", **options})


def labels(corpus):
    return corpus.sentences_of(corpus.columns["label"])


def test_adjacent_segments_of_iob1(folder):
    data = conll(folder, types=MERGED)
    assert labels(data.corpus("train")) == [["B-NAME", "B-NAME", "B-NAME", "O"], ["B-ORG", "B-NAME"], ["B-NAME"] * 2]
    assert labels(data.corpus("dev")) == [["B-NAME", "B-NAME"]]


def test_types_of_held_out_sentences(folder):
    data = conll(folder, files={"train": "train.txt"}, types=MERGED, holdout=1)
    assert labels(data.corpus("dev")) == [["B-NAME", "B-NAME"]]
    assert labels(data.corpus("train"))[1] == ["B-ORG", "B-NAME"]


def test_types_of_a_part(folder):
    data = conll(folder, types={"PER": "LOC", "LOC": "PER"})
    corpus = data.corpus("train")
    assert labels(corpus)[0] == ["B-LOC", "B-PER", "B-PER", "O"]
    assert labels(TrainingPart.from_corpus(corpus, data).corpus("train")) == labels(corpus)


def test_text_without_labels():
    data = Sentences([[("a", "O")], [("Bo", "B-PER")]], types={"PER": "NAME"})
    data.rows = data.rows.remove_columns("label")
    assert list(data._read("train")["train"].columns) == ["word"]


def test_unknown_type(folder):
    with pytest.raises(InputError, match=r"^data\.types: .*train\.txt.*'GPE'.* LOC, ORG, PER"):
        conll(folder, types={"PER": "NAME", "GPE": "NAME"}).corpus("train")
    assert labels(conll(folder, types={"ORG": "NAME"}).corpus("dev")) == [["B-PER", "B-LOC"]]  # training data decides


def test_types_need_segments(folder):
    with pytest.raises(InputError, match=r"data\.types: .*none"):
        Conllu(path=folder, files={"train": "a.conllu"}, types={"NOUN": "NAME"})
    assert Conllu(path=folder, files={"train": "a.conllu"}, types=None).scheme == "none"


def test_types_in_predictions(runs):
    types = "--data.types={PER: NAME, LOC: NAME, ORG: NAME, MISC: NAME}"
    assert runs("fit", "--trainer.max_epochs=2", types) == 0
    file = runs.root / "1" / "predictions" / "test.conll"
    lines = without_names(file.read_text()).splitlines()
    rows = [line.split() for line in lines if line and "DOCSTART" not in line]
    known = {"O", "B-NAME", "I-NAME"}
    assert {row[-2] for row in rows} == known
    assert "B-NAME" in {row[-1] for row in rows} <= known
    plain = Synthetic(train=20, dev=8, test=8, unit="document").corpus("test")
    assert [row[-2][0] for row in rows] == [label[0] for label in plain.columns["label"]]
