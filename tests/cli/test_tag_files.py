"""structperc tag of several files and folders, and pairs of files for brat."""

import json
import re
from pathlib import Path

import pytest

from structperc.cli.main import main

TEXT = "Anna waits for Rome. Rome sleeps.\n"
COLUMNS = "Anna x\nsleeps y\n\nRome x\n\n"
ROWS = [{"id": 7, "text": "Anna waits. Rome."}, {"text": " "}, {"tokens": ["Rome", "sleeps"]}]
JSONL = "".join(json.dumps(row) + "\n" for row in ROWS)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with files of each kind, in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in" / "more").mkdir(parents=True)
    (tmp_path / "in" / "a.txt").write_text(TEXT)
    (tmp_path / "in" / "more" / "b.conll").write_text(COLUMNS)
    (tmp_path / "in" / "c.jsonl").write_text(JSONL)
    (tmp_path / "in" / ".hidden").write_text("Anna\n")
    (tmp_path / "in" / "a.ann").write_text("T1\tPER 0 4\tAnna\n")
    return tmp_path


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


def marks(text):
    """(start, end, type, words) of each mark of brat."""
    found = re.findall(r"^T\d+\t(\S+) (\d+) (\d+)\t(.+)$", text, re.MULTILINE)
    return [(int(start), int(end), kind, words) for kind, start, end, words in found]


def read(path):
    """A text as brat reads it: a byte-order mark is a character."""
    return Path(path).read_bytes().decode("utf-8")


def test_a_folder_is_labelled_into_another(here, run, model):
    assert run("tag", model, "in", "-o", "out") == ""
    assert files("out") == ["a.txt", "c.jsonl", "more/b.conll"]
    for name in files("out"):
        assert Path("out", name).read_text() == run("tag", model, Path("in", name))
    assert run("tag", model, "in", "-o", "in/out") == ""  # what is written there is no input
    assert run("tag", model, "in", "-o", "in/out") == ""
    assert files("in/out") == files("out")


def test_suffixes_of_formats(here, run, model):
    run("tag", model, "in/a.txt", "in/more", "-o", "out/", "--format", "jsonl")
    assert files("out") == ["a.jsonl", "b.jsonl"]
    assert json.loads(Path("out/a.jsonl").read_text())["text"] == TEXT


def test_pairs_for_brat(here, run, model, tagger):
    run("tag", model, "in", "-o", "out", "--format", "brat")
    pairs = ["a", "c-1", "c-2", "c-3", "more/b"]
    assert files("out") == sorted(f"{name}.{kind}" for name in pairs for kind in ("txt", "ann"))
    assert [read(f"out/c-{n}.txt") for n in (1, 2, 3)] == [ROWS[0]["text"], " ", "Rome sleeps"]
    assert read("out/more/b.txt") == "Anna sleeps\nRome"
    total = 0
    for name in pairs:
        text, found = read(f"out/{name}.txt"), marks(read(f"out/{name}.ann"))
        total += len(found)
        assert all(text[start:end] == words for start, end, _, words in found)
        if name in ("a", "c-1"):
            assert [one[:3] for one in found] == [span[:3] for span in tagger.annotate(text)]
    assert total > 3


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_marks_of_brat_fit_the_text_beside_them(here, run, model, mark):
    text = mark + TEXT
    Path("in/a.txt").write_text(text, encoding="utf-8")
    plain = marks(run("tag", model, "in/a.txt", "--format", "brat"))
    assert plain
    assert all(read("in/a.txt")[start:end] == words for start, end, _, words in plain)
    run("tag", model, "in/a.txt", "--format", "brat", "-o", "in")  # beside the text, which stays
    assert read("in/a.txt") == text
    assert marks(read("in/a.ann")) == plain
    run("tag", model, "in/a.txt", "--format", "brat", "-o", "out/")
    assert read("out/a.txt") == TEXT
    assert all(TEXT[start:end] == words for start, end, _, words in marks(read("out/a.ann")))


def test_failing_file(here, model, capsys):
    Path("in/bad.jsonl").write_text('{"text": "Anna"}\n{"text": null}\n')
    Path("out").mkdir()
    Path("out/bad.jsonl").write_text("from before")
    assert main(["tag", str(model), "in", "-o", "out"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert "1 of 4 files" in said
    assert "bad.jsonl:2" in said
    assert files("out") == ["a.txt", "bad.jsonl", "c.jsonl", "more/b.conll"]
    assert Path("out/bad.jsonl").read_text() == "from before"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["in/a.txt", "in/c.jsonl"], "-o FOLDER"),
        (["in"], "-o FOLDER"),
        (["in/a.txt", "in/a.txt", "-o", "out"], "out/a.txt"),
        (["in/a.txt", "in/more/a.gz", "-o", "out", "--format", "html"], "out/a.html"),
        (["in", "-o", "in"], "in/a.txt"),
        (["in/more/none", "-o", "out/"], "none"),
        (["empty", "-o", "out"], "empty"),
        (["-", "in/a.txt", "-o", "out"], "standard input"),
        (["in/c.jsonl", "--format", "brat"], "-o FOLDER"),
        (["in/a.txt", "-o", "in/a.txt/"], "in/a.txt"),
    ],
)
def test_invalid_names(here, fails, model, arguments, named):
    Path("empty").mkdir()
    Path("in/more/a.gz").write_text(TEXT)
    assert named in fails("tag", model, *arguments)
    assert not Path("out").exists() or not files("out")
    assert Path("in/a.txt").read_text() == TEXT
