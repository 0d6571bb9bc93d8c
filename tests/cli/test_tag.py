"""structperc tag of columns, running text and JSON lines, and what it writes about them."""

import gzip
import html
import io
import json
import os
import re
import sys
import threading

import pytest

from structperc import Corpus, LabelSet, load
from structperc.criteria import CRFLoss
from structperc.features.documents import CaseElsewhere
from structperc.tagging import labelling
from structperc.text import tokenize
from tests.tiny import random_tagger, without_names

WORDS = "Anna\nsleeps\n\nRome\nwaits\nfor\nher\n"
DOCUMENTS = "-DOCSTART- -X- O\n\nAnna x B-PER\nsleeps y O\n\nRome x B-LOC\n\n-DOCSTART- -X- O\n\nAnna x B-PER\n"


def columns(text):
    """Sentences of what tag prints as lists of lists of fields."""
    return [[line.split() for line in block.split("\n")] for block in without_names(text).strip().split("\n\n")]


# -- tag ------------------------------------------------------------------------------------------------------


def test_tag_adds_the_label_as_last_column(run, file, model, tagger):
    sentences = [["Anna", "sleeps"], ["Rome", "waits", "for", "her"]]
    found = columns(run("tag", model, file(WORDS)))
    assert [[word for word, _ in sentence] for sentence in found] == sentences
    assert [[label for _, label in sentence] for sentence in found] == tagger.tag(sentences)


@pytest.mark.parametrize("k", [[], ["-k", "2"]])
def test_tag_to_a_file(run, fails, file, model, tmp_path, k):
    printed = run("tag", model, file(WORDS), *k)
    assert run("tag", model, file(WORDS), "-o", tmp_path / "out.txt", *k) == ""
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == printed
    assert str(tmp_path / "nowhere") in fails("tag", model, file(WORDS), "-o", tmp_path / "nowhere" / "out.txt", *k)


def test_tag_with_columns(run, file, model):
    turned = file("x Anna\ny sleeps\n\nx Rome\ny waits\nz for\ny her\n")
    labels = [[label for _, label in sentence] for sentence in columns(run("tag", model, file(WORDS, "plain.txt")))]
    for roles in (["_", "word"], ["pos", "word"], ["label", "word"]):
        found = columns(run("tag", model, turned, "--columns", *roles))
        assert [[fields[-1] for fields in sentence] for sentence in found] == labels
        assert [fields[:2] for sentence in found for fields in sentence][:2] == [["x", "Anna"], ["y", "sleeps"]]


def test_tag_and_evaluate_leave_comments_out(run, fails, file, model):
    text = "# id 7\nAnna B-PER\n# O\nsleeps O\n\n# id 8\nRome B-LOC\n"
    assert "1: 3 fields" not in fails("tag", model, file(text), "--columns", "word", "_")
    assert "--comments" in fails("evaluate", model, file("Anna B-PER\n# id 7\n"))
    given = ("--columns", "word", "_", "--comments")
    found = without_names(run("tag", model, file(text), *given)).splitlines()
    assert [len(line.split()) for line in found] == [3, 3, 3, 3, 0, 3, 3]
    assert [line.split()[:2] for line in found] == [line.split()[:2] for line in text.splitlines()]
    plain = file("Anna B-PER\n# O\nsleeps O\n\nRome B-LOC\n", "plain.txt")
    assert [one for one in found if " id " not in one] == without_names(run("tag", model, plain)).splitlines()
    options = ("--unit", "sentence")
    assert run("evaluate", model, file(text), "--comments", *options) == run("evaluate", model, plain, *options)


def test_fields_with_spaces(run, fails, file, model, tmp_path):
    text = "New York\tB-LOC\nsleeps\tO\n\nAnna\tB-PER\n"
    assert "--separator tab" in fails("evaluate", model, file(text))
    assert "New York" not in fails("evaluate", model, file("New York\tB-X\n"), "--separator", "space")
    run("tag", model, file(text), "--separator", "tab", "-o", tmp_path / "out.txt")
    lines = without_names((tmp_path / "out.txt").read_text()).splitlines()
    assert [line.count("\t") for line in lines] == [2, 2, 0, 2]
    assert lines[0].startswith("New York\tB-LOC\t")
    printed = run("evaluate", model, tmp_path / "out.txt", "--separator", "tab", "--unit", "sentence")
    assert "processed 3 tokens with 2 phrases" in printed
    assert "token accuracy" in run("evaluate", tmp_path / "out.txt", tmp_path / "out.txt")


def test_gold_in_another_notation(run, fails, file, model):
    usual = file("Anna B-PER\nsleeps O\nRome B-LOC\nwaits I-LOC\n", "usual.txt")
    other = file("Anna PER_u\nsleeps 0\nRome LOC_b\nwaits LOC_l\n", "other.txt")
    options = ("--unit", "sentence", "--columns", "word", "label")
    expected = run("evaluate", model, usual, *options)
    assert run("evaluate", model, other, *options, "--labels", "BILOU TYPE_b 0") == expected
    message = fails("evaluate", model, other, *options, "--labels", "IOB2")
    assert "other.txt:1: label 'PER_u'" in message
    assert "--labels 'BILOU TYPE_b 0'" in message
    assert "--labels" in fails("evaluate", model, other, *options, "--labels", "TYPE_b")


def test_tag_keeps_lines(run, file, model):
    text = (
        "-DOCSTART-\t-X-\tO\n\nAnna\tNNP\tI-PER \nsleeps  VBZ O\n\n\n Rome\tNNP\tI-LOC\n-DOCSTART- -X- O\n\nher\tPRP\tO"
    )
    plain = file("-DOCSTART-\n\nAnna\nsleeps\n\nRome\n-DOCSTART-\n\nher\n", "plain.txt")
    labels = iter([fields[-1] for s in columns(run("tag", model, plain)) for fields in s if fields[0] != "-DOCSTART-"])
    expected = []
    for line in text.split("\n"):
        own = line.rstrip()
        between = "\t" if "\t" in own else " "
        expected.append(own + between + ("O" if "DOCSTART" in own else next(labels)) if own else own)
    assert without_names(run("tag", model, file(text))).split("\n") == [*expected, ""]


def test_running_text_as_columns(run, file, model):
    for text in ("Angela Merkel visited Stromburg .\n", "She left.\nHe stayed!\n"):
        named, forced = ("--columns", "word"), ("--input", "columns")
        assert columns(run("tag", model, file(text), *named)) == columns(run("tag", model, file(text), *forced))
    for text in ("{}\n[1]\n", "Anna x\nBo .\n", ". .\n! .\n", "Anna\n\nBo\n", "{\n}\n", "Dr.\nNo.\n"):
        run("tag", model, file(text))


def test_encodings(run, fails, file, model, tmp_path):
    path, labelled = tmp_path / "latin.txt", tmp_path / "gold.txt"
    path.write_bytes("Käthe\nAnna\n".encode("latin-1"))
    assert "--encoding latin-1" in fails("tag", model, path)
    found = run("tag", model, path, "--encoding", "latin-1", "--unit", "sentence")
    assert found == run("tag", model, file("Käthe\nAnna\n"), "--unit", "sentence")
    labelled.write_bytes("Käthe B-PER\nAnna O\n".encode("utf-16"))
    assert "--encoding utf-16" in fails("evaluate", labelled, labelled, "--gold", labelled)
    assert "100.00" in run("evaluate", labelled, labelled, "--gold", labelled, "--encoding", "utf-16")
    text = run("evaluate", model, labelled, "--encoding", "utf-16", "--unit", "sentence", "--reliability")
    assert text == run("evaluate", model, file("Käthe B-PER\nAnna O\n"), "--unit", "sentence", "--reliability")


def test_tag_reads_a_pipe(run, file, model, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(WORDS,))
    writer.start()
    found = run("tag", model, pipe)
    writer.join()
    assert found == run("tag", model, file(WORDS))


def test_tag_with_unit(run, file, model, tagger):
    path = file(DOCUMENTS)
    sentences, documents = [["Anna", "sleeps"], ["Rome"], ["Anna"]], [0, 0, 1]
    together, alone = tagger.tag(sentences, documents), tagger.tag(sentences)
    assert together != alone

    def labels(*options):
        return [
            [fields[-1] for fields in s] for s in columns(run("tag", model, path, *options)) if s[0][0] != "-DOCSTART-"
        ]

    assert labels() == labels("--unit", "document") == together
    assert labels("--unit", "sentence") == alone


def test_tag_k_best(run, file, model, tagger):
    text = run("tag", model, file(WORDS), "-k", "3", "--unit", "sentence")
    blocks = [block.split("\n") for block in without_names(text).strip().split("\n\n")]
    found = tagger.kbest([["Anna", "sleeps"], ["Rome", "waits", "for", "her"]], 3)
    assert len(blocks) == 6
    for (head, *lines), (rank, one) in zip(blocks, [(r, c) for cs in found for r, c in enumerate(cs, 1)], strict=True):
        match = re.fullmatch(r"# (\d+) score (\S+) log-probability (\S+)", head)
        assert int(match[1]) == rank
        assert float(match[2]) == pytest.approx(one.score, rel=1e-5)
        assert float(match[3]) == pytest.approx(one.log_probability, abs=1e-6)
        assert [line.split()[1] for line in lines] == one.labels


def test_tag_k_best_reads_whole_documents(run, file, tmp_path, monkeypatch):
    corpus = Corpus.from_sentences([{"word": ["Then", "Ford", "left"]}, {"word": ["ford", "spoke"]}], documents=[0, 0])
    case = {"case": CaseElsewhere()}
    tagger = random_tagger(corpus, LabelSet(("O", "B-PER")), CRFLoss(), ["case[0]"], documents=case)
    tagger.save(tmp_path / "model")
    path = file("-DOCSTART-\n\nThen\nFord\nleft\n\nford\nspoke\n")
    whole = run("tag", tmp_path / "model", path, "-k", "1")
    monkeypatch.setattr(labelling, "MAX_LISTED", 1)
    assert run("tag", tmp_path / "model", path, "-k", "1") == whole
    monkeypatch.setattr(labelling, "chunk_bounds", lambda *given: [0, 1, 2])
    assert run("tag", tmp_path / "model", path, "-k", "1") != whole


def test_tag_k_best_of_perceptron(run, file, trained):
    text = run("tag", trained.folder / "model", file("Anna NNP B-NP\nleft VBD B-VP\n"), "-k", "2")
    assert text.count("# ") == 2
    assert "probability" not in text


def test_tag_gives_the_labels_of_the_run(run, trained, tmp_path):
    assert trained.again("predict", f"--ckpt_path={trained.folder}/checkpoints/best.ckpt", "--data.predict=dev") == 0
    predicted = trained.folder / "predictions" / "dev.conll"
    roles = ["word", "pos", "chunk", "evidence", "label", "predicted"]
    run("tag", trained.folder / "model", predicted, "--columns", *roles, "-o", tmp_path / "tagged")
    rows = [line.split() for line in (tmp_path / "tagged").read_text().splitlines() if line and "DOCSTART" not in line]
    assert len(rows) > 100
    assert [row[-1] for row in rows] == [row[-2] for row in rows]
    assert len({row[-1] for row in rows}) > 1


def test_tag_into_closed_output(fails, file, model, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert "standard output is closed" in fails("tag", model, file(WORDS))


# -- running text and JSON lines ---------------------------------------------------------------------------------

TEXT = "Anna waits\nfor Rome & <her>. Rome sleeps.\n\nAnna\n"
COLUMNS = "-DOCSTART- O\n\nAnna x\nsleeps y\n\nRome x\n\n-DOCSTART- O\n\nAnna x\n"


def objects(text):
    return [json.loads(line) for line in text.splitlines()]


def test_text_becomes_columns(run, file, model, tagger, said):
    out = run("tag", model, file(TEXT))
    assert "--input" in said[-1]
    words = tokenize(TEXT).word_lists
    expected = [[*map(list, zip(*one, strict=True))] for one in zip(words, tagger.tag(words, [0, 0, 0]), strict=True)]
    assert columns(out) == [[["-DOCSTART-", "O"]], *expected]


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


def test_json_lines_keep_their_fields(run, file, model, tagger):
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
    for row in rows:
        expected = [span._replace(confidence=None).to_json(row["text"]) for span in tagger.annotate(row["text"])]
        assert row["spans"] == expected
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
    assert any(f"text.txt: read as {form}; set --input to change that" in line for line in said)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("Anna visits Rome\n", [], "text.txt: "),
        ("", [], "text.txt: this file has no tokens"),
        ("\nAnna visited Rome\n\n\nShe left it\n", [], "text.txt: cannot tell running text from columns; set"),
        ("1\tBo\t_\tX" + 6 * "\t_" + "\n", [], "text.txt:1: this is CoNLL-U"),
        ("Anna N\nRome N N\n", [], "text.txt: "),
        ("Anna N\nRome N\n\nBo N N\n", [], "text.txt:4: 3"),
        (" \n", ["--input", "text"], "text.txt: "),
        ("Anna\n", ["--input", "jsonl"], "text.txt:1: invalid JSON"),
        ('{"text": "a"}\n[1]\n', ["--input", "jsonl"], "text.txt:2: "),
        ('{"a":1}\n', [], "text.txt:1: there is neither a field 'tokens' nor 'text' among ['a']"),
        ('[{"a":1}]', [], "text.txt:1: expected a JSON object, got list"),
        ('{"text": 1}', [], "text.txt:1: field 'text'"),
        ('{"text": "\\ud800"}', [], "text.txt:1: "),
        ('{"tokens": "Anna"}', [], "text.txt:1: field 'tokens'"),
        ('{"tokens": ["Anna", 1]}', [], "text.txt:1: field 'tokens'[1]"),
        ('{"tokens": ["Anna", ""]}', [], "text.txt:1: field 'tokens'[1]"),
        ('{"tokens": ["Bo"], "text": "Anna"}', [], "text.txt:1: word 'Bo'"),
        ('{"tokens": ["New York"]}', ["--format", "columns"], "'New York'"),
        ("Anna.\n", ["--input", "text", "--columns", "word"], "--columns"),
        ("Anna\n", ["--columns", "pos"], "word"),
        ("Anna\n", ["--unit", "paragraph"], "error: tag: "),
        ("Anna\n", ["--colums", "word"], "error: tag: "),
        ("Anna\n", ["-k", "many"], "error: tag: "),
        ("Anna\n", ["-k", "0"], "-k must be >= 1, got 0"),
        ("Anna\n", ["--workers", "0"], "--workers "),
        ("Anna\n", ["--format", "brat"], "brat needs a pair of files for each text"),
        ("Anna\n", ["--format", "html", "-k", "2"], "-k writes columns only"),
        ("Anna\n", ["--probabilities", "-k", "2"], "-k excludes --probabilities"),
    ],
)
def test_invalid_texts(fails, file, model, tmp_path, text, options, message):
    assert message in fails("tag", model, file(text), *options, "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("Anna\nleft\n", [], "text.txt: 1 column"),
        ("Anna NNP\n", ["--columns", "word", "pos"], "'chunk'"),
        ("Anna left Rome. She had gone.\n", ["--input", "text"], "pos and chunk"),
        ("Anna NNP B-NP\nleft VBD B-VP\n", ["--probabilities"], "probabilities"),
    ],
)
def test_needs_of_a_model(fails, file, trained, text, options, message):
    assert message in fails("tag", trained.folder / "model", file(text), *options)


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
