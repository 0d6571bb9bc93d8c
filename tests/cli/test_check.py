"""structperc check: counts that can be counted by hand."""

import json
from pathlib import Path

import pytest

TRAIN = """-DOCSTART- -X- O

Anna NNP I-PER
sleeps VBZ O

Rome NNP I-LOC
Milan NNP B-LOC

-DOCSTART- -X- O

Anna NNP I-PER
sleeps VBZ O

Bo NNP O
left VBD B-PER
"""
REPORT = """\
train.txt: columns
  sentences: 4, tokens: 8, documents: 2
  column    name          distinct  most frequent
       1    word                 6  Anna sleeps Rome Milan Bo left
       2    column2              3  NNP VBZ VBD
       3    label                5  O I-PER I-LOC B-LOC B-PER
  labels: scheme IOB1, 5 segments, 1 label illegal in it
    line 15: 'B-PER' is read as 'I-PER'
    type                        segments      tokens
    PER                                3           3
    LOC                                2           2
  duplicate sentences: 1 (1 repetition)
    lines 3 and 11: Anna sleeps

"""
DEV = """Anna S-PER
sleeps O

Oslo B-GPE
Airport E-GPE
"""
COMPARISON = """\
dev.txt against train.txt
  sentences in both: 1 of 2
    line 1, there 3: Anna sleeps
  new words: 50.0% of the tokens
  different schemes: IOBES here, IOB1 there
  new types: GPE (1)

"""


def squeezed(text):
    """The text with one space in place of several, as widths of columns depend on the table."""
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(TRAIN)
    Path("dev.txt").write_text(DEV)


def test_a_file(run):
    assert squeezed(run("check", "train.txt")) == squeezed(REPORT)


def test_a_second_file_against_the_first(run):
    printed = squeezed(run("check", "train.txt", "dev.txt"))
    assert printed.startswith(squeezed(REPORT))
    assert "\n\ndev.txt: columns\nsentences: 2, tokens: 4, documents: not marked\n" in printed
    assert printed.endswith("\n\n" + squeezed(COMPARISON))


def test_named_scheme(run):
    printed = run("check", "train.txt", "--labels", "IOB2")
    assert "scheme IOB2, 5 segments, 3 labels illegal in it" in printed
    assert "line 3: 'I-PER' is read as 'B-PER'" in printed


def test_a_treebank(run, treebank):
    Path("train.conllu").write_text(treebank)
    lines = squeezed(run("check", "train.conllu")).splitlines()
    assert lines[0] == "train.conllu: CoNLL-U"
    assert "4 upos 2 PROPN VERB" in lines
    assert "labels: 2, without segments (scheme none)" in lines
    assert "PROPN 12" in lines


@pytest.mark.parametrize(
    ("content", "options", "complaint"),
    [
        (b"", (), "bad.txt: "),
        (b"a b\nc\n", (), "bad.txt:2: 1"),
        (b"\xff\xfea\x00", (), "bad.txt: "),
        (b"a b\n", ("--columns", "word", "label", "x"), "bad.txt:1: 2"),
        (b'{"words": ["a"]}\n', (), "bad.txt:1: "),
    ],
)
def test_bad_files(fails, content, options, complaint):
    Path("bad.txt").write_bytes(content)
    assert complaint in fails("check", "train.txt", "bad.txt", *options)


def test_texts_with_spans(run):
    rows = [{"text": "Anna Lind left", "spans": [[0, 4, "PER"], [5, 7, "PER"]]}, {"text": "\U0001f600 Bo", "spans": []}]
    Path("a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    printed = run("check", "a.jsonl")
    assert printed.startswith(
        "a.jsonl: JSON lines, a text with spans in each row\n  sentences: 2, tokens: 5, documents"
    )
    assert "spans: 2, 1 of them does not fit the tokens" in printed
    assert "a.jsonl:1: span 5..7 'Li' cuts the token 'Lind' at 5..9" in printed
    assert "data.misaligned" in printed
    assert "PER 2 2" in squeezed(printed).splitlines()


def test_tables_are_compared(run):
    Path("a.csv").write_text("token,label\nAnna,B-PER\n\nAnna,B-PER\n")
    Path("b.jsonl").write_text('{"tokens": ["Anna"], "tags": ["B-PER"]}\n{"tokens": ["Oslo"], "tags": ["B-GPE"]}\n')
    printed = run("check", "a.csv", "b.jsonl")
    assert "lines 2 and 4: Anna" in printed
    assert "sentences in both: 1 of 2\n    line 1, there 2: Anna" in printed
    assert "new types: GPE (1)" in printed
