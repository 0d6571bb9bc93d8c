"""Labelled files as a model reads them: roles of columns as named, as in training or by position; tables."""

import json

import datasets
import numpy as np
import pytest

from structperc.criteria import PerceptronLoss
from structperc.data.conll import header_separator, write_conll
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.read_options import ReadOptions
from structperc.datamodules.sources import Conll
from structperc.errors import InputError
from structperc.taggers.tagger import Tagger
from structperc.tagging.column_roles import column_roles
from structperc.tagging.labelled_files import read_corpus, read_gold
from tests.errors import error_message
from tests.tiny import random_tagger

NAMES = LabelSet.from_corpus(["B-PER", "B-LOC"], "IOB2")
TAGS = LabelSet(("ADJ", "NOUN", "VERB"), "none")
BANK = "1\tBo\tBo\tNOUN\tNN\t_\t2\tnsubj\t_\t_\n2\tran\trun\tVERB\tVBD\t_\t0\troot\t_\t_\n\n"


def model(*further, labels=NAMES, **training_files):
    columns = {role: ["x"] for role in ("word", *further)}
    made = random_tagger([columns], labels, PerceptronLoss(), [f"{role}[0]" for role in ("w", *further)])
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
    found = error_message(read_gold, made, str(file))
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


# -- tables: the corpus is that of the same sentences in columns ------------------------------------------------------

WORDS = [["Anna", "met", "Bo"], ["Bo"]]
LABELS = [["B-PER", "O", "B-PER"], ["B-PER"]]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "columns.txt").write_text("Anna B-PER\nmet O\nBo B-PER\n\nBo B-PER\n")
    return tmp_path


def written(name, **columns):
    data = datasets.Dataset.from_dict(columns)
    if name.endswith(".parquet"):
        data.to_parquet(name)
    elif name.endswith((".csv", ".tsv")):
        data.to_csv(name, sep="\t" if name.endswith(".tsv") else ",")
    elif name.endswith(".jsonl"):
        data.to_json(name)
    else:
        data.save_to_disk(name)
    return name


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "saved"])
def test_columns_are_found_by_their_usual_names(here, name):
    found = read_corpus(model(), written(name, id=[1, 2], tokens=WORDS, ner_tags=LABELS, text=["x", "y"]))
    assert found.columns == read_corpus(model(), "columns.txt").columns
    assert found.starts.tolist() == [0, 3, 4]


def test_class_labels_and_marked_texts(here):
    features = datasets.Features(
        words=datasets.Sequence(datasets.Value("string")),
        tags=datasets.Sequence(datasets.ClassLabel(names=["O", "B-PER"])),
    )
    numbers = [[1, 0, 1], [1]]
    datasets.Dataset.from_dict({"words": WORDS, "tags": numbers}, features=features).to_parquet("a.parquet")
    expected = read_corpus(model(), "columns.txt").columns
    assert read_corpus(model(), "a.parquet").columns == expected
    marks = [{"start": 0, "end": 4, "label": "PER"}, {"start": 9, "end": 11, "label": "PER"}]
    rows = [{"text": "Anna met Bo", "entities": marks}, {"text": "Bo", "entities": [[0, 2, "PER"]]}]
    (here / "b.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert read_corpus(model(), "b.jsonl").columns == expected


def test_csv_with_columns(here):
    text = written("a.csv", s=["Anna met Bo", "Bo"], y=["B-PER O B-PER", "B-PER"])
    found = read_corpus(model(), text, ReadOptions(["word=s", "label=y"]))
    assert found.columns == read_corpus(model(), "columns.txt").columns
    (here / "columns.tsv").write_text("Anna\tB-PER\nmet\tO\n")
    assert read_corpus(model(), "columns.tsv").columns == {"word": ["Anna", "met"], "label": ["B-PER", "O"]}


@pytest.mark.parametrize(
    ("columns", "given", "said"),
    [
        ({"x": WORDS}, None, "a.jsonl: "),
        ({"tokens": WORDS, "words": WORDS}, None, "a.jsonl: "),
        ({"tokens": WORDS}, ["word=tokens", "word=words"], "--columns has word twice; give it one column"),
        ({"tokens": WORDS}, ["tokens"], "--columns of a table are ROLE=COLUMN, such as word=tokens, not 'tokens'"),
        ({"tokens": WORDS}, ["word=wrods"], "a.jsonl:1: "),
    ],
)
def test_mistakes(here, columns, given, said):
    assert said in error_message(read_corpus, model(), written("a.jsonl", **columns), ReadOptions(given))


def test_model_with_more_columns(here):
    reads_more = model("pos")
    with pytest.raises(InputError, match="'pos'"):
        read_corpus(reads_more, written("a.jsonl", tokens=WORDS))
    found = read_corpus(reads_more, written("a.jsonl", tokens=WORDS, pos=WORDS, labels=LABELS))
    assert found.columns["pos"] == found.columns["word"]


def test_evaluate_reads_a_table(here, run):
    model().save("model")
    table = written("a.parquet", tokens=WORDS, labels=LABELS)
    assert run("evaluate", "model", table) == run("evaluate", "model", "columns.txt")


def test_gold_spans_of_annotation_tools(here):
    value = {"start": 0, "end": 4, "labels": ["PER"]}
    task = {"data": {"text": "Anna left"}, "annotations": [{"result": [{"type": "labels", "value": value}]}]}
    (here / "tasks.json").write_text(json.dumps([task]))
    expected = {"word": ["Anna", "left"], "label": ["B-PER", "O"]}
    trained = model(columns={"text": "text", "spans": "entities"})
    assert read_corpus(trained, "tasks.json").columns == expected
    row = {"text": "Anna left", "tokens": [], "answer": "accept", "spans": [{"start": 0, "end": 4, "label": "PER"}]}
    (here / "prodigy.jsonl").write_text(json.dumps(row))
    assert read_corpus(model(), "prodigy.jsonl").columns == expected


def test_offsets_of_spans(here):
    row = {"text": "\U0001f600 Bo met Anna", "spans": [[3, 5, "PER"], [10, 14, "PER"]]}
    (here / "a.jsonl").write_text(json.dumps(row) + "\n")
    assert list(read_corpus(model(), "a.jsonl").columns["label"]) == ["O", "B-PER", "O", "B-PER"]
    (here / "a.jsonl").write_text(json.dumps({"text": "Bo met Anna", "spans": [[0, 1, "PER"]]}) + "\n")
    with pytest.raises(InputError, match=r"a.jsonl:1: .*0\.\.1 .*'Bo'"):
        read_corpus(model(), "a.jsonl")
