"""structperc tag of running text and JSON lines, and what it writes about them."""

import gzip
import html
import io
import json
import logging
import re
import sys

import pytest

from structperc import load
from structperc.text import tokenize
from tests.tiny import without_names

TEXT = "Anna waits\nfor Rome & <her>. Rome sleeps.\n\nAnna\n"
COLUMNS = "-DOCSTART- O\n\nAnna x\nsleeps y\n\nRome x\n\n-DOCSTART- O\n\nAnna x\n"


@pytest.fixture
def said(monkeypatch):
    """What was said on standard error, where the logger writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("pytorch_lightning.structperc")
    monkeypatch.setattr(logger, "level", logging.INFO)
    logger.addHandler(handler)
    yield lambda: stream.getvalue()
    logger.removeHandler(handler)


@pytest.fixture
def spans(tagger):
    """Of a text, as objects."""

    def spans(text):
        return [{"start": a, "end": b, "type": t, "text": text[a:b]} for a, b, t, *_ in tagger.annotate(text)]

    return spans


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def test_text_becomes_columns(run, file, model, tagger, said):
    out = run("tag", model, file(TEXT))
    assert "--input" in said()
    sentences = [[line.split() for line in block.split("\n")] for block in without_names(out).strip().split("\n\n")]
    assert sentences[0] == [["-DOCSTART-", "O"]]
    words = tokenize(TEXT).word_lists
    assert [[word for word, _ in one] for one in sentences[1:]] == words
    assert [[label for _, label in one] for one in sentences[1:]] == tagger.tag(words, [0, 0, 0])


def test_the_same_text_from_everywhere(run, file, model, tmp_path, monkeypatch):
    expected = run("tag", model, file(TEXT), "--input", "text")
    (tmp_path / "packed").write_bytes(gzip.compress(TEXT.encode()))
    assert run("tag", model, tmp_path / "packed") == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    assert run("tag", model, "-") == expected


@pytest.mark.parametrize("sure", [[], ["--probabilities"]])
def test_formats_agree(run, file, model, tagger, sure):
    found = tagger.annotate(TEXT)
    assert len({span.type for span in found}) > 1
    (row,) = objects(run("tag", model, file(TEXT), "--format", "jsonl", *sure))
    assert row["text"] == TEXT
    assert [[one["start"], one["end"], one["type"]] for one in row["spans"]] == [list(span[:3]) for span in found]
    assert [one["text"] for one in row["spans"]] == [TEXT[a:b] for a, b, *_ in found]
    brat = run("tag", model, file(TEXT), "--format", "brat", *sure).splitlines()
    marks = [re.fullmatch(r"T(\d+)\t(\S+) (\d+ \d+(?:;\d+ \d+)*)\t(.+)", line) for line in brat if line[0] == "T"]
    assert [int(mark[1]) for mark in marks] == list(range(1, len(found) + 1))
    places = [[tuple(map(int, part.split())) for part in mark[3].split(";")] for mark in marks]
    assert [(p[0][0], p[-1][1], mark[2]) for p, mark in zip(places, marks, strict=True)] == [s[:3] for s in found]
    assert [" ".join(TEXT[a:b] for a, b in p) for p in places] == [mark[4] for mark in marks]
    assert not any("\n" in TEXT[a:b] for p in places for a, b in p)
    page = run("tag", model, file(TEXT), "--format", "html", *sure)
    (section,) = re.findall(r'<section class="text">(.*?)</section>', page, re.DOTALL)
    marked = re.findall(r'<mark class="t\d">(.*?)<small>(\w+)(?:<i>(.*?)</i>)?</small></mark>', section, re.DOTALL)
    assert [(html.unescape(text), kind) for text, kind, _ in marked] == [(TEXT[s[0] : s[1]], s[2]) for s in found]
    assert html.unescape(re.sub(r"<small>.*?</small>|</?mark[^>]*>", "", section)) == TEXT
    assert "<script" not in page
    assert "http" not in page
    if sure:
        assert [one["confidence"] for one in row["spans"]] == [pytest.approx(s.confidence, abs=1e-6) for s in found]
        notes = [line.rpartition(" ")[2] for line in brat if line[0] == "#"]
        assert notes == [f"{span.confidence:.4f}" for span in found]
        assert [p for *_, p in marked] == [f"{span.confidence:.2f}" for span in found]
    else:
        assert not any("confidence" in one for one in row["spans"])


def test_column_of_probabilities(run, file, model, tagger):
    plain = without_names(run("tag", model, file(COLUMNS))).splitlines()
    lines = without_names(run("tag", model, file(COLUMNS), "--probabilities")).splitlines()
    corpus = tagger.read([["Anna", "sleeps"], ["Rome"], ["Anna"]], [0, 0, 1])
    sure = tagger.predict(corpus, confident=True)
    own = iter(zip(sure.tokens, sure.segments, strict=True))
    for before, line in zip(plain, lines, strict=True):
        fields, more = before.split(), line.split()
        assert more[:2] + more[4:] == fields
        if fields and fields[0] != "-DOCSTART-":
            token, segment = next(own)
            assert more[2:4] == [f"{token:.4f}", "_" if more[4] == "O" else f"{segment:.4f}"]


def test_columns_become_objects_of_documents(run, file, model, tagger):
    rows = objects(run("tag", model, file(COLUMNS), "--format", "jsonl", "--probabilities"))
    assert [row["text"] for row in rows] == ["Anna sleeps\nRome", "Anna"]
    assert [row["tokens"] for row in rows] == [["Anna", "sleeps", "Rome"], ["Anna"]]
    labels = tagger.tag([["Anna", "sleeps"], ["Rome"], ["Anna"]], [0, 0, 1])
    assert [row["labels"] for row in rows] == [labels[0] + labels[1], labels[2]]
    assert [len(row["probabilities"]) for row in rows] == [3, 1]
    for row in rows:
        assert all(row["text"][one["start"] : one["end"]] == one["text"] for one in row["spans"])
    assert run("tag", model, file(COLUMNS), "--format", "html").count("<section") == 2


def test_json_lines_keep_their_fields(run, file, model, spans, tagger):
    given = [
        {"id": 7, "text": "Anna sleeps. Rome"},
        {"tokens": ["Anna", "waits"], "pos": ["N", "V"]},
        {"text": "Rome  waits", "tokens": ["Rome", "waits"]},
        {"text": " "},
        {"text": "Bo waits", "tokens": []},  # from an annotation tool
    ]
    text = "".join(json.dumps(row) + "\n\n" for row in given)
    rows = objects(run("tag", model, file(text)))
    assert [{k: v for k, v in row.items() if k in old} for row, old in zip(rows, given, strict=True)] == given
    assert [row["spans"] for row in rows] == [spans(row["text"]) for row in rows]
    labels = tagger.tag([["Anna", "waits"], ["Rome", "waits"]], [0, 1])
    assert [row.get("labels") for row in (*rows[:3], rows[4])] == [None, *labels, None]
    out = without_names(run("tag", model, file(text), "--format", "columns"))
    words = [line.split()[0] for line in out.splitlines() if line]
    assert " ".join(words).replace("-DOCSTART- ", "") == "Anna sleeps . Rome Anna waits Rome waits Bo waits"
    given[0]["labels"] = ["gold"]
    rows = objects(run("tag", model, file("".join(json.dumps(row) + "\n" for row in given))))
    assert rows[0]["labels"] == ["gold"]
    assert [set(row) & {"spans", "predicted_spans"} for row in rows] == [{"predicted_spans"}] * 5


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Angela Merkel visited Stromburg .\n", "running text"),
        ("She left.\nHe stayed!\n", "running text"),
        ("It was late when\nthey came, and\nnobody had seen them. It\nrained.\n", "running text"),
        ("One line.\n\nAnother one here\n", "running text"),
        ('{"text": "a"}\n', "JSON lines"),
        ("Anna\nsleeps\n\nRome\n", "columns"),
        ("Anna N\nsleeps V\n\nRome N\n. .\n", "columns"),
        ("-DOCSTART- O\n\nAnna N\n\nRome N\n", "columns"),
    ],
)
def test_detected_format(run, file, model, said, text, form):
    run("tag", model, file(text))
    assert f"text.txt: read as {form}; set --input to change that" in said()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "Anna visits Rome\n",
            [],
            "text.txt: ",
        ),
        ("Anna N\nRome N N\n", [], "text.txt: "),
        ("Anna N\nRome N\n\nBo N N\n", [], "text.txt:4: 3"),
        (" \n", ["--input", "text"], "text.txt: "),
        ("Anna\n", ["--input", "jsonl"], "text.txt:1: invalid JSON"),
        ('{"text": "a"}\n[1]\n', ["--input", "jsonl"], "text.txt:2: "),
        ('{"text": 1}', [], "text.txt:1: field 'text'"),
        ('{"text": "\\ud800"}', [], "text.txt:1: "),
        ('{"tokens": "Anna"}', [], "text.txt:1: field 'tokens'"),
        ('{"tokens": ["Anna", 1]}', [], "text.txt:1: field 'tokens'[1]"),
        ('{"tokens": ["Anna", ""]}', [], "text.txt:1: field 'tokens'[1]"),
        ('{"tokens": ["Bo"], "text": "Anna"}', [], "text.txt:1: word 'Bo'"),
        ('{"tokens": ["New York"]}', ["--format", "columns"], "'New York'"),
        ("Anna.\n", ["--input", "text", "--columns", "word"], "--columns"),
        ("Anna\n", ["--format", "brat"], "brat needs a pair of files for each text"),
        ("Anna\n", ["--format", "html", "-k", "2"], "-k writes columns only"),
        ("Anna\n", ["--probabilities", "-k", "2"], "-k excludes --probabilities"),
    ],
)
def test_invalid_texts(fails, file, model, tmp_path, text, options, message):
    assert message in fails("tag", model, file(text), *options, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_probabilities_of_a_model_without_any(fails, file, trained):
    text = file("Anna NNP B-NP\nleft VBD B-VP\n")
    assert "probabilities" in fails("tag", trained.folder / "model", text, "--probabilities")
    text = file("Anna left Rome. She had gone.\n")
    assert "pos and chunk" in fails("tag", trained.folder / "model", text, "--input", "text")


def test_tokens_and_sentences_are_options(run, file, model):
    def sentences(*options):
        out = run("tag", model, file("Anna waits for-her\nRome sleeps.\n"), "--input", "text", *options)
        blocks = [re.findall(r"^\S+", block, re.MULTILINE) for block in without_names(out).strip().split("\n\n")]
        return [block for block in blocks if block != ["-DOCSTART-"]]

    one, other = ["Anna", "waits", "for-her"], ["Rome", "sleeps", "."]
    assert sentences() == sentences("--sentences", "one") == [one + other]
    assert sentences("--sentences", "lines") == [one, other]
    assert sentences("--tokens", "ud") == [["Anna", "waits", "for", "-", "her", *other]]


def test_alternatives_above_a_probability(run, fails, file, model, tagger):
    (row,) = objects(
        run("tag", model, file(TEXT), "--input", "text", "--format", "jsonl", "--min-probability", "0.001")
    )
    found = tagger.annotate(TEXT, min_probability=0.001)
    assert [(one["start"], one["end"], one["type"], one["best"]) for one in row["spans"]] == [
        (*one[:3], one.best) for one in found
    ]
    assert not all(one.best for one in found)
    assert 0 < row["probability"] < 1
    assert "--format" in fails("tag", model, file(TEXT), "--min-probability", "0.1")


def test_lexicon_and_forced_segments(run, fails, file, model, tmp_path):
    lexicon, rows = tmp_path / "lexicon.tsv", [{"text": "Anna waits.", "forced": [[5, 10, "LOC"]]}, {"text": "Anna"}]
    lexicon.write_text("Anna\tO\n", encoding="utf-8")
    text = file("".join(json.dumps(row) + "\n" for row in rows))
    found = objects(run("tag", model, text, "--lexicon", lexicon))
    assert [[(one["start"], one["end"], one["type"]) for one in row["spans"]] for row in found] == [
        [(5, 10, "LOC")],
        [],
    ]
    assert "allowed" not in run("tag", model, text, "--format", "columns")
    lexicon.write_text("waits\tO\n", encoding="utf-8")
    assert ":1: no label is left for 'waits'" in fails("tag", model, text, "--lexicon", lexicon)


def test_forbidden_spans_and_allowed_labels_of_json_lines(run, fails, file, model):
    """Those of `tag`; the output has the fields of the record, and no columns for them."""
    tagger = load(model)
    words, kind = ["Anna", "waits", "."], tagger.labels.type_names[0]
    rows = [
        {"text": "Anna waits.", "forbidden": [[0, 4, kind], [0, 10, kind]], "forced": [[5, 10, kind]]},
        {"tokens": words, "allowed": [[f"B-{kind}"], None, None], "forbidden": [[0, 4, kind]]},
        {"text": "Anna"},
    ]
    first, second, third = objects(run("tag", model, file("".join(json.dumps(row) + "\n" for row in rows))))
    assert [(one["start"], one["end"], one["type"]) for one in first["spans"]][-1] == (5, 10, kind)
    assert second["labels"] == tagger.tag([words], None, [rows[1]["allowed"]], [[(kind, 0, 1)]])[0]
    assert second["labels"][:2] == [f"B-{kind}", f"I-{kind}"]
    assert first["forbidden"] == rows[0]["forbidden"]
    assert third["spans"] == objects(run("tag", model, file('{"text": "Anna"}')))[0]["spans"]
    text = file(json.dumps({"text": "Anna waits.", "forbidden": [[0, 3, kind]]}))
    assert "forbidden" in fails("tag", model, text)
    text = file(json.dumps({"text": "Anna", "allowed": [["O"]]}))
    assert "tokens" in fails("tag", model, text)
    text = file(json.dumps({"tokens": ["Anna"], "allowed": [[f"B-{kind}"]], "forbidden": [[0, 4, kind]]}))
    assert ":1: no label is left for 'Anna'" in fails("tag", model, text)


@pytest.mark.parametrize("form", ["columns", "brat", "html"])
@pytest.mark.parametrize("to_file", [True, False])
def test_nul_is_refused_on_writing(run, fails, file, model, tmp_path, form, to_file):
    given = file('{"text": "Anna\\u0000 left"}\n', "nul.jsonl")
    assert objects(run("tag", model, given))[0]["text"] == "Anna\0 left"
    to_file = to_file or form == "brat"
    output = ["-o", tmp_path / "out"] if to_file and form != "brat" else ["-o", f"{tmp_path}/out/"] if to_file else []
    line = fails("tag", model, given, "--format", form, *output)
    assert "NUL" in line
    assert ("nul.jsonl:1: " in line) == (form == "columns")
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
