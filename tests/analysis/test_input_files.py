"""Which column of a file is what, for a model that reads it: as named, as in training, or by place."""

import json

import numpy as np
import pytest

from structperc.analysis.input_files import column_roles, read_corpus, read_gold
from structperc.chain import KBest
from structperc.criteria import PerceptronLoss
from structperc.data.conll import header_separator, write_conll
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules.sources import Conll
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger
from tests.errors import refusal

NAMES = LabelSet.from_corpus(["B-PER", "B-LOC"], "IOB2")
TAGS = LabelSet(("ADJ", "NOUN", "VERB"), "none")
BANK = "1\tBo\tBo\tNOUN\tNN\t_\t2\tnsubj\t_\t_\n2\tran\trun\tVERB\tVBD\t_\t0\troot\t_\t_\n\n"


def model(*further, labels=NAMES, **training_files):
    features = FeatureExtractor([f"{role}[0]" for role in ("w", *further)], cutoff=1, progress=False)
    features.fit(Corpus.from_sentences([{role: ["x"] for role in ("word", *further)}]))
    made = Tagger(features, SparseLinear(), PerceptronLoss(), KBest(1))
    made.allocate(labels)
    made.training_files = training_files
    return made


def roles(made, *lines):
    return " ".join(column_roles(made, [*lines, ""], "f.txt").roles)


@pytest.mark.parametrize(
    ("made", "line", "expected"),
    [
        (model(), "Bo", "word"),
        (model(), "Bo B-ORG", "word label"),
        (model(), "Bo NN B-PER", "word _ label"),
        (model(), "Bo NN B-NP S-PER", "word _ _ label"),
        (model(), "Bo B-PER NN", "word label _"),
        (model("pos"), "Bo NN B-PER", "word pos label"),
        (model(columns=["_", "word", "label", "_"]), "1 Bo O O", "_ word label _"),
        (model(columns=["_", "word", "label", "_"]), "Bo", "word"),
        (model(columns=["pos", "word", "label"]), "NN Bo B-PER", "_ word label"),
        (model("pos", columns=["word", "pos", "label"], like_labels=["pos"]), "Bo B-PER O", "word pos label"),
        (model(columns=["word", "pos", "label"]), "Bo B-PER", "word label"),
    ],
)
def test_columns_by_training_and_place(made, line, expected):
    assert roles(made, line) == expected


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("#columns=word,label,predicted O O", "word label _"),
        ("#columns=predicted,word,_ O -X-", "_ word _"),
        ("#columns=word,label O O", "word _ label"),  # of another number of fields: a word like any other
    ],
)
def test_columns_of_the_first_line(first, expected):
    assert roles(model(columns=["word", "pos", "label"]), first, "", "Bo B-PER O") == expected


@pytest.mark.parametrize("trained", ["whitespace", "tab"])
@pytest.mark.parametrize("words", [["New York", "left"], ["Oslo", "left"], ["Oslo", "Bo Berg"], ["#1 fan", "left"]])
def test_own_predictions_have_the_separator_of_their_first_line(tmp_path, trained, words):
    corpus = Corpus.from_sentences([{"word": words, "label": ["B-LOC", "O"]}])
    write_conll(tmp_path / "dev.conll", corpus, predicted=["O", "O"])
    found = read_gold(model(separator=trained), str(tmp_path / "dev.conll"))
    assert (found.columns["word"], found.columns["label"]) == (words, ["B-LOC", "O"])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["#columns=word,label\tO", "", "New York\tO"], "tab"),
        (["#columns=word,label\tO", "", "Oslo O"], "whitespace"),
        (["#columns=word,pos,label\tO\tO", "", "Oslo NN\tO"], "whitespace"),
        (["#columns=word,label O", "", "New York\tO"], "tab"),
        (["#columns=word,label O", "# comment of words", "Oslo O"], "whitespace"),
        (["#columns=word,label O", "", "one two three"], None),
        (["Oslo\tO"], None),
        ([], None),
    ],
)
def test_separator_of_the_first_line(lines, expected):
    assert header_separator(lines) == expected


@pytest.mark.parametrize(
    ("made", "line", "message"),
    [
        (model(), "Bo B-PER B-PER", "columns 2 and 3 contain labels"),
        (model(), "Bo B-PER O", "columns 2 and 3 contain labels"),
        (model("pos", columns=["word", "pos", "label"]), "Bo B-PER O", "column 2 contains labels"),
        (model("pos"), "Bo B-PER", "column 2 contains labels"),
        (model("pos"), "Bo", "1 column, but this model requires the column pos"),
        (model(columns=["_", "word", "label"]), "1 Bo", "2 columns, but the training files have 3 (_ word label)"),
        (model(columns=["_", "word", "label"]), "1 Bo O O", "4 columns, but the training files have 3 (_ word label)"),
        (model("pos"), "#columns=word,label O", "the model requires pos"),
    ],
)
def test_ambiguous_columns(tmp_path, made, line, message):
    file = tmp_path / "f.txt"
    file.write_text(f"{line}\n{line}\n")
    found = refusal(read_gold, made, str(file))
    assert found.startswith(f"{file}: ")
    assert message in found


@pytest.mark.parametrize(
    ("trained", "text"),
    [
        ("IOB1", "a I-PER\nb I-PER\nc B-PER\n"),
        ("IOB1", "a B-PER\nb I-PER\nc B-PER\n"),  # as fit writes it
        ("IOBES", "a B-PER\nb E-PER\nc S-PER\n"),
        ("IOBES", "a B-PER\nb I-PER\nc B-PER\n"),
    ],
)
def test_scheme_of_gold(tmp_path, trained, text):
    (tmp_path / "f.txt").write_text(text)
    made = model(columns=["word", "label"])
    made.training_files = {"labels": trained}
    corpus = read_gold(made, str(tmp_path / "f.txt"))
    assert list(corpus.columns["label"]) == ["B-PER", "I-PER", "B-PER"]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (model(labels=TAGS), ["NOUN", "VERB"]),
        (model(labels=LabelSet(("NN", "VBD"), "none")), ["NN", "VBD"]),
        (model(labels=TAGS, tags="xpos"), ["NN", "VBD"]),
        (model(), None),
    ],
)
def test_conllu(tmp_path, made, expected):
    (tmp_path / "f.conllu").write_text(BANK * 2)
    corpus = read_corpus(made, str(tmp_path / "f.conllu"))
    assert list(corpus.columns["word"]) == ["Bo", "ran"] * 2
    assert corpus.columns.get("label") == (expected and expected * 2)


def test_tables_are_read_as_the_training_files(tmp_path):
    row = {"toks": ["Bo", "ran"], "marks": [1, 0], "tokens": ["other", "words"]}
    for name, text in (("f.jsonl", json.dumps(row)), ("f.csv", "toks,marks\nBo ran,B-PER O")):
        (tmp_path / name).write_text(f"{text}\n")
        columns = {"word": "toks", "label": "marks"}
        corpus = read_gold(model(columns=columns, names={"label": ["O", "B-PER"]}), str(tmp_path / name))
        assert list(corpus.columns["word"]) == ["Bo", "ran"]
        assert list(corpus.columns["label"]) == ["B-PER", "O"]


def test_json_lines_of_tag_have_no_gold(tmp_path):
    row = {"text": "Bo ran", "tokens": ["Bo", "ran"], "labels": ["B-PER", "O"], "spans": []}
    for marked in ({}, {"predicted": ["labels", "spans"]}):
        (tmp_path / "f.jsonl").write_text(f"{json.dumps({**row, **marked})}\n")
        assert ("label" in read_corpus(model(), str(tmp_path / "f.jsonl")).columns) == (not marked)


def test_training_files_are_described_and_kept(tmp_path):
    (tmp_path / "train.txt").write_text("1 Bo B-LOC B-PER x\n2 ran O O y\n")
    data = Conll(str(tmp_path), {"train": "train.txt"}, ["_", "word", "other", "label"], labels="IOB1")
    found = data.training_files()
    assert found["columns"] == ["_", "word", "other", "label", "_"]
    assert (found["labels"], found["docstart"], found["encoding"]) == ("IOB1", "-DOCSTART-", "utf-8")
    assert found["like_labels"] == []
    made = model()
    made.training_files = found
    made.save(tmp_path / "model")
    assert Tagger.load(tmp_path / "model").training_files == found
    config = json.loads((tmp_path / "model" / "model.json").read_text())
    config["training_files"]["columns"] = "word label"
    (tmp_path / "model" / "model.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"training_files\.columns"):
        Tagger.load(tmp_path / "model")


def test_two_columns_of_labels(tmp_path):
    (tmp_path / "train.txt").write_text("Bo S-PER NN B-PER\nran O VB O\n")
    data = Conll(str(tmp_path), {"train": "train.txt"}, ["word", "first", "pos", "label"])
    assert data.training_files()["like_labels"] == ["first"]
    assert np.isclose(data.label_set().share_known(["O", "S-PER", "B-LOC", "I-PER"]), 2 / 3)
