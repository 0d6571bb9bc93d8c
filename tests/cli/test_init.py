"""structperc init: what it writes for a data file can be trained as it stands."""

import json
from pathlib import Path

import pytest
import yaml

from structperc.data.yaml_file import read_yaml
from structperc.experiments.experiment import dry_run


def data_of(config):
    return yaml.safe_load(config)["data"]["init_args"]


def test_columns_are_trained_without_a_change(begun_with_columns):
    found = data_of(begun_with_columns.config)
    assert found["files"] == {"train": "train.txt"}
    assert found["columns"] == ["word", "column2", "label"]
    assert (found["labels"], found["scheme"], found["unit"], found["holdout"]) == ("IOB1", "IOB2", "sentence", 0.1)
    assert "sentences: 20, tokens: 65, documents: 5" in begun_with_columns.config
    assert (begun_with_columns.run / "model" / "model.json").is_file()
    assert "dev" in begun_with_columns.printed


def test_treebanks_are_trained_without_a_change(begun, treebank):
    made = begun("train.conllu", treebank)
    assert "structperc.data.Conllu" in made.config
    found = data_of(made.config)
    assert (found["tags"], found["scheme"]) == ("upos", "none")
    assert "labels" not in found
    assert (made.run / "model" / "model.json").is_file()


@pytest.fixture
def written(tmp_path, monkeypatch, run):
    """The configuration for a text, which fit accepts; -> what it says about data."""
    monkeypatch.chdir(tmp_path)

    def written(text, *options, name="train.txt", encoding="utf-8"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text, encoding=encoding)
        printed = run("init", name, *options)
        Path("own.yaml").write_text(printed, encoding="utf-8")
        program = dry_run(["-c", "own.yaml", "--trainer.accelerator=cpu"])
        program.datamodule.corpus("train")
        assert program.datamodule.has("dev") == ("--dev" in options or "holdout" in printed)
        return data_of(printed)

    return written


@pytest.fixture
def written_without_fit(tmp_path, monkeypatch, run):
    """The configuration for a text; -> what it says about data."""
    monkeypatch.chdir(tmp_path)

    def written(text):
        Path("train.txt").write_text(text, encoding="utf-8")
        printed = run("init", "train.txt")
        Path("own.yaml").write_text(printed, encoding="utf-8")
        return data_of(printed)

    return written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna B-PER\nsleeps O\n\n", {"scheme": "IOB2", "columns": ["word", "label"]}),
        ("Anna S-PER\nsleeps O\n\n", {"labels": "IOBES", "scheme": "IOB2"}),
        ("Anna NNP\nsleeps VBZ\n\n", {"scheme": "none"}),
        ("1 Anna B-PER\n2 sleeps O\n\n", {"columns": ["_", "word", "label"]}),
        ("Anna B-PER 0.7\nsleeps O 0.9\n\n", {"columns": ["word", "label", "_"]}),
        ("Anna x B-PER\nsleeps x O\n\n", {"columns": ["word", "_", "label"]}),
    ],
)
def test_detected_columns(written, text, expected):
    found = written(text)
    assert {key: found[key] for key in expected} == expected
    assert "holdout" not in found


def test_quoted_names(written):
    found = written("Anna B-PER\nsleeps O\n\n", name="a: b/no #1.txt")
    assert (found["path"], found["files"]["train"]) == ("a: b", "no #1.txt")


def test_files_of_other_splits(written, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "dev.txt").write_text("Bo B-PER\nleft O\n")
    found = written("Anna B-PER\nsleeps O\n\n" * 20, "--dev", "more/dev.txt", name="data/train.txt")
    assert found["files"] == {"train": "train.txt", "dev": "../more/dev.txt"}
    assert "holdout" not in found


def test_given_encoding_and_columns(written):
    found = written(
        "B-PER Müller\nO schläft\n\n", "--encoding", "latin-1", "--columns", "label", "word", encoding="latin-1"
    )
    assert (found["encoding"], found["columns"]) == ("latin-1", ["label", "word"])


def test_holdout_without_a_type(written, caplog):
    anna, rome = "Anna B-PER\nsleeps O\n\n", "Rome B-LOC\nsleeps O\n\n"
    assert written(199 * anna + rome)["holdout"] == 0.1
    assert "LOC" in caplog.text
    assert "no development data" not in caplog.text
    assert "holdout" not in written(5 * anna)
    assert "no development data" in caplog.text


@pytest.mark.parametrize(
    ("text", "expected", "said"),
    [
        ("word\tlabel\nAnna\tB-PER\nsleeps\tO\n\n", {"scheme": "IOB2"}, "line 1 has the names"),
        ("Wort Etikett\nAnna B-PER\nLind I-PER\nsleeps O\n\n", {"scheme": "IOB2"}, "'Etikett'"),
        ("Anna b-per\nLind i-per\nleft o\n\n", {"labels": "IOB2 b-TYPE", "scheme": "IOB2"}, None),
        (
            "Anna B-PER\nLind I-PER\nleft O\n\nBo b-PER\n\n",
            {"scheme": "IOB2"},
            "2 of 3 labels fit IOB2; line 5 has 'b-PER'",
        ),
        ("Anna B-PER\nLind I-PER\nleft 0\nnow O\n\n", {"scheme": "IOB2"}, "'0'"),
        ("Anna PER\nLind PER\nleft O\na O\nb O\n\n", {"labels": "IO", "scheme": "IOB2"}, "no prefixes"),
        (
            "#\thttp://x.org\t[2010]\t\n1\tBo\tB-PER\tO\n\n",
            {"comments": True, "columns": ["_", "word", "label", "_"]},
            "1 comment line",
        ),
        (
            "1\tRom\tB-ORG\tB-LOC\n2\tAG\tI-ORG\tO\n3\tBonn\tB-LOC\tO\n\n",
            {"columns": ["_", "word", "label", "_"]},
            "columns 3, 4 have labels of the same types: column 3 is the label",
        ),
        ("New York\tB-LOC\nis\tO\n\n", {"separator": "tab"}, "spaces"),
        ("Anna x\nleft x\n\n", {"scheme": "none"}, "all tokens have the label 'x'"),
        (101 * "Anna B-PER\nleft O\n", {"scheme": "IOB2"}, "all 202 tokens are one"),
    ],
)
def test_unusual_files(written_without_fit, caplog, text, expected, said):
    found = written_without_fit(text)
    assert {key: found[key] for key in expected} == expected
    assert (said or "no development data") in caplog.text
    assert (said or "") in Path("own.yaml").read_text()


def test_all_files_are_read_in_the_same_way(written, tmp_path):
    (tmp_path / "dev.txt").write_text("# a comment\nNew York\tB-LOC\n")
    found = written("Rome\tB-LOC\nsleeps\tO\n\n" * 3, "--dev", "dev.txt")
    assert (found["separator"], found["comments"]) == ("tab", True)


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("Anna\nsleeps\n", (), "no labels"),
        ("Anna O\nsleeps\n", (), "train.txt:2"),
        ("Anna O\nsleeps O\n", ("--dev", "none.txt"), "none.txt"),
        ("Anna O\nsleeps O\n", ("-o", "train.txt"), "train.txt: "),
        ("Anna PER\nsleeps O\n", ("--labels", "IOB2"), "train.txt:1: label 'PER'"),
        ("Anna O\n", ("--encoding", "utf-16"), "--encoding"),
    ],
)
def test_mistakes(tmp_path, monkeypatch, fails, text, options, complaint):
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(text)
    assert complaint in fails("init", "train.txt", *options)
    assert Path("train.txt").read_text() == text


def test_new_file(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text("Anna B-PER\nsleeps O\n")
    assert run("init", "train.txt", "-o", "own.yaml") == "own.yaml: structperc fit -c own.yaml\n"
    assert read_yaml("own.yaml")["overlays"] == ["pkg:overlays/features#entities", "pkg:overlays/methods#map"]


# -- tables ---------------------------------------------------------------------------------------------------

UTF16 = {  # offsets as JavaScript counts
    "text": "\U0001f600 Anna Lind left Rome. Bo of Yahoo! Inc. met her.",
    "spans": [[3, 12, "PER"], [30, 41, "ORG"]],
}
DOCCANO = {"id": 1, "text": "Anna left", "entities": [{"id": 1, "label": "PER", "start_offset": 0, "end_offset": 4}]}
STUDIO = [
    {
        "id": 1,
        "annotations": [
            {"was_cancelled": True, "result": [{"type": "labels", "value": {}}]},
            {"result": [{"type": "labels", "value": {"start": 0, "end": 4, "labels": ["PER"]}}, {"type": "choices"}]},
        ],
        "data": {"text": "Anna left"},
    },
    {"id": 2, "annotations": [], "data": {"text": "Nobody looked at this."}},
]
MINIMAL = [
    {"text": "Anna left", "label": [{"start": 0, "end": 4, "labels": ["PER"]}], "annotator": 1, "annotation_id": 2},
    {"text": "No", "annotator": 1, "annotation_id": 3},
]
PRODIGY = [
    {
        "text": "Anna left",
        "tokens": [{"text": "Anna", "start": 0, "end": 4, "id": 0}, {"text": "left", "start": 5, "end": 9, "id": 1}],
        "spans": [{"start": 0, "end": 4, "token_start": 0, "token_end": 0, "label": "PER"}],
        "answer": "accept",
        "_task_hash": 1,
    },
    {"text": "No", "answer": "reject", "_task_hash": 2},
]


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_training_on_spans(begun):
    wrong = {"text": "Anna Lind left", "spans": [[0, 8, "PER"], [5, 9, "PER"]]}
    made = begun("train.jsonl", lines(*[UTF16] * 20, wrong))
    found = data_of(made.config)
    assert found["columns"] == {"text": "text", "spans": "spans"}
    assert (found["offsets"], found["misaligned"], found["overlaps"]) == ("utf-16", "expand", "longest")
    assert "train.jsonl:21: span 0..8 'Anna Lin'" in made.config
    assert (made.run / "model" / "model.json").is_file()
    assert "dev" in made.printed


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.jsonl",
            lines({"tokens": ["Bo"], "ner_tags": ["B-PER"], "pos_tags": ["N"]}),
            {"columns": {"word": "tokens", "label": "ner_tags"}, "scheme": "IOB2"},
        ),
        (
            "a.jsonl",
            lines({"tokens": ["A", "B", "c"], "tags": [3, 4, 0]}, {"tokens": ["A", "B"], "tags": [1, 1]}),
            {"label_names": {"label": ["O", "B-1", "I-1", "B-2", "I-2"]}},
        ),
        ("a.jsonl", lines(DOCCANO), {"columns": {"text": "text", "spans": "entities"}}),
        ("a.json", json.dumps(STUDIO, indent=1), {"columns": {"text": "text", "spans": "annotations"}}),
        ("a.json", json.dumps(MINIMAL), {"columns": {"text": "text", "spans": "label"}}),
        ("a.jsonl", lines(*PRODIGY), {"columns": {"text": "text", "spans": "spans"}}),
        (
            "a.csv",
            "Sentence #,Word,POS,Tag\nSentence: 1,Bo,N,B-PER\n,left,V,O\nSentence: 2,Bo,N,O\n",
            {"columns": {"word": "Word", "label": "Tag", "sentence": "Sentence #"}},
        ),
        (
            "a.csv",
            'token,label\nBo,B-PER\n",",O\n\nBo,O\n,\nBo,O\n',
            {"columns": {"word": "token", "label": "label", "sentence": ""}},
        ),
        ("a.csv", "x,y\nBo,B-PER\nleft,O\n", {"columns": {"word": "x", "label": "y", "sentence": ""}}),
        (
            "a.csv",
            "Sentence #,Sentence,Tag\n1,Bo left,\"['B-PER', 'O']\"\n2,He left,\"['O', 'O']\"\n",
            {"columns": {"word": "Sentence", "label": "Tag"}, "scheme": "IOB2"},
        ),
        (
            "a.csv",
            'text,id,label\nBo left,1,"[{""start"": 0, ""end"": 2, ""labels"": [""PER""]}]"\nNo,2,\n',
            {"columns": {"text": "text", "spans": "label"}},
        ),
        (
            "a.tsv",
            "sentence_id\ttoken\ttag\n1\tBo\tB-PER\n1\tleft\tO\n2\tBo\tO\n",
            {"columns": {"word": "token", "label": "tag", "sentence": "sentence_id"}},
        ),
    ],
)
def test_detected_tables(written, name, text, expected):
    found = written(text, name=name)
    assert {key: found.get(key) for key in expected} == expected


def test_given_columns_of_a_table(written):
    text = lines({"a": ["Bo"], "b": ["B-PER"], "tokens": ["x"], "tags": ["O"]})
    found = written(text, "--columns", "word=a", "label=b", "--dev", "train.jsonl", name="train.jsonl")
    assert found["columns"] == {"word": "a", "label": "b"}


@pytest.mark.parametrize("name", ["a.parquet", "saved"])
def test_detected_data_sets(tmp_path, monkeypatch, run, name):
    from datasets import ClassLabel, Dataset, Features, List, Value

    monkeypatch.chdir(tmp_path)
    features = Features(tokens=List(Value("string")), ner_tags=List(ClassLabel(names=["O", "B-PER"])))
    data = Dataset.from_dict({"tokens": [["Bo", "left"]], "ner_tags": [[1, 0]]}, features=features)
    data.to_parquet(name) if name.endswith("parquet") else data.save_to_disk(name)
    found = data_of(run("init", name))
    assert found["columns"] == {"word": "tokens", "label": "ner_tags"}
    assert "label_names" not in found
    assert found["scheme"] == "IOB2"


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("a.ann", "T1\tPER 0 4\tAnna\n", "a.txt"),
        ("a.txt", lines(DOCCANO), ".jsonl"),
        ("a.jsonl", '{"tokens": ["Bo"], "tags": ["O"],}\n', "a.jsonl:1: invalid JSON"),
        ("a.jsonl", lines(DOCCANO, {**DOCCANO, "text": None}), "a.jsonl:2: column 'text'"),
        ("a.jsonl", lines({"x": ["Bo"]}), "a.jsonl: "),
        ("a.jsonl", lines({"tokens": ["Bo"]}), "no labels"),
        ("a.jsonl", lines({"words": ["Bo"], "tokens": ["Bo"], "tags": ["O"]}), "column for word: words or tokens"),
        ("a.json", json.dumps([{**STUDIO[0], "annotations": STUDIO[0]["annotations"][1:] * 2}]), "2 annotations"),
    ],
)
def test_invalid_tables(tmp_path, monkeypatch, fails, name, text, named):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text, encoding="utf-8")
    assert named in fails("init", name)
    assert "no labels" in named or named in fails("check", name)


def test_splits_of_two_formats_are_refused(tmp_path, monkeypatch, fails):
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text(lines({"tokens": ["Bo"], "tags": ["O"]}))
    Path("b.txt").write_text("Bo O\nleft O\n")
    assert "b.txt: " in fails("init", "a.jsonl", "--dev", "b.txt")
    assert "a.jsonl: " in fails("init", "b.txt", "--dev", "a.jsonl")


def test_options_of_another_split(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text(lines(DOCCANO))
    Path("b.jsonl").write_text(lines({"text": "Anna left", "entities": [[0, 2, "PER"]]}))
    assert data_of(run("init", "a.jsonl", "--dev", "b.jsonl"))["misaligned"] == "expand"
    Path("a.csv").write_text("Bo,B-PER\nleft,O\n")
    found = data_of(run("init", "a.csv", "--dev", "a.csv"))
    assert (found["heading"], found["files"]) == (False, {"train": "a.csv", "dev": "a.csv"})


def test_incomplete_labels(written):
    found = written("Anna B-PER\nleft ?\n\nOslo B-LOC|B-ORG\n")
    assert found["incomplete"] is True
    assert "holdout" not in found
    row = {"text": "Anna met Bo.", "spans": [[0, 4, "PER"]], "complete": False, "not": [[9, 11, "ORG"]]}
    found = written(json.dumps(row) + "\n", name="train.jsonl")
    assert (found["columns"]["complete"], found["columns"]["not"]) == ("complete", "not")
