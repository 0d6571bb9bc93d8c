"""Commands that look at a model read tables: the corpus is that of the same sentences in columns."""

import json

import datasets
import pytest

from structperc.analysis import read_corpus
from structperc.criteria import PerceptronLoss
from structperc.data.read_options import ReadOptions
from structperc.errors import InputError
from tests.errors import refusal

WORDS = [["Anna", "met", "Bo"], ["Bo"]]
LABELS = [["B-PER", "O", "B-PER"], ["B-PER"]]


@pytest.fixture(scope="module")
def model():
    from tests.serving.serving_models import tagger

    return tagger(unit="sentence")


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
def test_columns_are_found_by_their_usual_names(here, model, name):
    found = read_corpus(model, written(name, id=[1, 2], tokens=WORDS, ner_tags=LABELS, text=["x", "y"]))
    assert found.columns == read_corpus(model, "columns.txt").columns
    assert found.starts.tolist() == [0, 3, 4]


def test_class_labels_and_marked_texts(here, model):
    features = datasets.Features(
        words=datasets.Sequence(datasets.Value("string")),
        tags=datasets.Sequence(datasets.ClassLabel(names=["O", "B-PER"])),
    )
    numbers = [[1, 0, 1], [1]]
    datasets.Dataset.from_dict({"words": WORDS, "tags": numbers}, features=features).to_parquet("a.parquet")
    expected = read_corpus(model, "columns.txt").columns
    assert read_corpus(model, "a.parquet").columns == expected
    marks = [{"start": 0, "end": 4, "label": "PER"}, {"start": 9, "end": 11, "label": "PER"}]
    rows = [{"text": "Anna met Bo", "entities": marks}, {"text": "Bo", "entities": [[0, 2, "PER"]]}]
    (here / "b.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert read_corpus(model, "b.jsonl").columns == expected


def test_csv_with_columns(here, model):
    text = written("a.csv", s=["Anna met Bo", "Bo"], y=["B-PER O B-PER", "B-PER"])
    found = read_corpus(model, text, ReadOptions(["word=s", "label=y"]))
    assert found.columns == read_corpus(model, "columns.txt").columns
    (here / "columns.tsv").write_text("Anna\tB-PER\nmet\tO\n")
    assert read_corpus(model, "columns.tsv").columns == {"word": ["Anna", "met"], "label": ["B-PER", "O"]}


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
def test_mistakes(here, model, columns, given, said):
    assert said in refusal(read_corpus, model, written("a.jsonl", **columns), ReadOptions(given))


def test_model_with_more_columns(here):
    from tests.serving.serving_models import tagger

    reads_more = tagger(PerceptronLoss, ("w[0]", "pos[0]"), "sentence")
    with pytest.raises(InputError, match="'pos'"):
        read_corpus(reads_more, written("a.jsonl", tokens=WORDS))
    found = read_corpus(reads_more, written("a.jsonl", tokens=WORDS, pos=WORDS, labels=LABELS))
    assert found.columns["pos"] == found.columns["word"]


def test_evaluate_reads_a_table(here, model, capsys):
    from structperc.cli.main import main

    model.save(here / "model")
    printed = []
    for name in (written("a.parquet", tokens=WORDS, labels=LABELS), "columns.txt"):
        assert main(["evaluate", "model", name]) == 0
        printed.append(capsys.readouterr().out.replace(name, "FILE"))
    assert printed[0] == printed[1]


def test_gold_spans_of_annotation_tools(here, model, monkeypatch):
    value = {"start": 0, "end": 4, "labels": ["PER"]}
    task = {"data": {"text": "Anna left"}, "annotations": [{"result": [{"type": "labels", "value": value}]}]}
    (here / "tasks.json").write_text(json.dumps([task]))
    expected = {"word": ["Anna", "left"], "label": ["B-PER", "O"]}
    with monkeypatch.context() as trained:
        trained.setattr(model, "training_files", {"columns": {"text": "text", "spans": "entities"}})
        assert read_corpus(model, "tasks.json").columns == expected
    row = {"text": "Anna left", "tokens": [], "answer": "accept", "spans": [{"start": 0, "end": 4, "label": "PER"}]}
    (here / "prodigy.jsonl").write_text(json.dumps(row))
    assert read_corpus(model, "prodigy.jsonl").columns == expected


def test_offsets_of_spans(here, model):
    row = {"text": "\U0001f600 Bo met Anna", "spans": [[3, 5, "PER"], [10, 14, "PER"]]}
    (here / "a.jsonl").write_text(json.dumps(row) + "\n")
    assert list(read_corpus(model, "a.jsonl").columns["label"]) == ["O", "B-PER", "O", "B-PER"]
    (here / "a.jsonl").write_text(json.dumps({"text": "Bo met Anna", "spans": [[0, 1, "PER"]]}) + "\n")
    with pytest.raises(InputError, match=r"a.jsonl:1: .*0\.\.1 .*'Bo'"):
        read_corpus(model, "a.jsonl")
