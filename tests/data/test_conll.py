import random

import pytest

from structperc import progress
from structperc.data import conll
from structperc.data.conll import (
    conll_corpus,
    conll_lines,
    detect_separator,
    read_conll,
    read_conll_corpus,
    write_conll,
)
from structperc.data.corpus import Corpus
from structperc.data.read_options import LineFormat
from structperc.data.text_files import read_lines
from structperc.errors import InputError
from tests.errors import error_message
from tests.terminal import terminal

NER = """-DOCSTART- -X- O O

EU NNP I-NP I-ORG
rejects VBZ I-VP O

Peter NNP I-NP I-PER

-DOCSTART- -X- O O

U.N. NNP I-NP I-ORG
"""
ROLES = ["word", "pos", None, "label"]


def written(tmp_path, text, name="a.txt"):
    file = tmp_path / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def read(tmp_path, text, columns=("word", "label"), **options):
    return read_conll(written(tmp_path, text), columns, **options)


def test_rows(tmp_path):
    rows = read(tmp_path, NER, ROLES)
    assert rows.column_names == ["document", "sentence", "word", "pos", "label", "line"]
    assert rows["word"] == [["EU", "rejects"], ["Peter"], ["U.N."]]
    assert rows["pos"] == [["NNP", "VBZ"], ["NNP"], ["NNP"]]
    assert rows["label"] == [["I-ORG", "O"], ["I-PER"], ["I-ORG"]]
    assert rows["line"] == [[3, 4], [6], [10]]
    assert (list(rows["document"]), list(rows["sentence"])) == ([0, 0, 1], [0, 1, 2])


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace(" ", "\t"),
        lambda text: text.replace(" ", "  \t ").replace("\n", " \n"),
        lambda text: text.replace("O O\n\n", "O O\n"),  # no empty line after -DOCSTART-
    ],
)
def test_line_endings_and_blank_lines(tmp_path, change):
    plain = read(tmp_path, NER, ROLES).remove_columns("line").to_list()
    assert read(tmp_path, change(NER), ROLES).remove_columns("line").to_list() == plain


@pytest.mark.parametrize("columns", [["word", "_", "_", "label"], {"word": 0, "label": -1}, {"label": 3, "word": -4}])
def test_columns_by_order_or_position(tmp_path, columns):
    data = read(tmp_path, NER, columns)
    assert data["word"] == [["EU", "rejects"], ["Peter"], ["U.N."]]
    assert data["label"] == [["I-ORG", "O"], ["I-PER"], ["I-ORG"]]
    assert "pos" not in data.column_names


def test_other_white_space_belongs_to_the_token(tmp_path):
    text = "New\u00a0York B\nab\u2028cd O\ne\x0bf\u3000g O\n"
    data = read(tmp_path, text)
    assert data["word"] == [["New\u00a0York", "ab\u2028cd", "e\x0bf\u3000g"]]
    assert data["line"] == [[1, 2, 3]]


def test_blank_lines_end_sentences(tmp_path):
    assert read(tmp_path, "\n\na O\n \t \n\nb O\n\n\n\n")["word"] == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("text", "documents"),
    [
        ("a O\n\nb O\n", [0, 1]),
        ("-DOCSTART- O\n\na O\n\nb O\n", [0, 0]),
        ("a O\n\n-DOCSTART- O\nb O\n\nc O\n", [0, 1, 1]),
        ("a O\n-DOCSTART- O\n-DOCSTART- O\n\nb O\n\n-DOCSTART- O\n", [0, 1]),
    ],
)
def test_documents(tmp_path, text, documents):
    assert list(read(tmp_path, text)["document"]) == documents


def test_other_document_marks(tmp_path):
    text = "<doc> O\na O\n\nb O\n<doc> O\nc O\n"
    assert list(read(tmp_path, text, docstart="<doc>")["document"]) == [0, 0, 1]
    words = read(tmp_path, "-DOCSTART- O\na O\n", docstart=None)["word"]
    assert words == [["-DOCSTART-", "a"]]


def test_comments(tmp_path):
    text = "# id = 1\n#\na O\n# O\n# in a sentence\nc O\n\n#x O\nb O\n"
    assert read(tmp_path, text, comments=True)["word"] == [["a", "#", "c"], ["#x", "b"]]
    assert read(tmp_path, "# O\na O\n")["word"] == [["#", "a"]]
    assert read(tmp_path, "# one more\n#a O\n#b O\n", comments=True)["word"] == [["#a", "#b"]]


@pytest.mark.parametrize(
    ("comment", "token"),
    [("#\thttp://example.org/1.html\t[2010-07-04]\t", "1\ta\tO\tO"), ("# id 5239d808\tdomain=train", "a _ _ O")],
)
def test_comments_like_tokens(tmp_path, caplog, comment, token):
    fields = len(token.split())
    columns = ["word", *["_"] * (fields - 2), "label"]
    text = f"{comment}\n{token}\n\n{comment}\n{token}\n"
    assert len(read(tmp_path, text, columns, comments=True)["word"]) == 2
    assert read(tmp_path, text, columns, comments=True)["line"] == [[2], [5]]
    assert not caplog.records


def test_ambiguous_comment_is_a_token(tmp_path, caplog):
    data = read(tmp_path, "# newdoc\na O\n\n# newdoc\nb O\n", comments=True)
    assert data["word"] == [["#", "a"], ["#", "b"]]
    assert "a.txt:1: " in caplog.text
    assert "1 further line" in caplog.text


def test_fields_with_spaces(tmp_path):
    text = "-DOCSTART-\tO\n\nNew York\tB-LOC\nis \t O\n \t\n# no\tO\n"
    data = read(tmp_path, text, separator="tab")
    assert (data["word"], data["label"]) == ([["New York", "is"], ["# no"]], [["B-LOC", "O"], ["O"]])
    with pytest.raises(InputError, match=r"a.txt:1: .*'label'"):
        read(tmp_path, "a\t\tx\n", ["word", "label", "_"], separator="tab")
    with pytest.raises(InputError, match=r"a.txt:2: .*2 .*line 1 .*3.*separator: tab"):
        read(tmp_path, "New York\tO\nis\tO\n")
    corpus = Corpus.from_dataset(data, "sentence")
    write_conll(tmp_path / "b.txt", corpus)
    lines = (tmp_path / "b.txt").read_text().splitlines()
    assert lines[:3] == ["-DOCSTART-\tO", "", "New York\tB-LOC"]
    assert detect_separator(lines) == "tab"
    assert read_conll(tmp_path / "b.txt", ["word", "label"], separator="tab")["word"] == data["word"]


@pytest.mark.parametrize(
    ("lines", "separator"),
    [
        (["New York\tO", "", "is\tO"], "tab"),
        (["New York\tO", "is O"], "whitespace"),
        (["a\tO ", " b \tO"], "whitespace"),
        (["# a comment", "New York\tO", "\ufeff"], "tab"),
    ],
)
def test_the_separator_shows_in_the_lines(lines, separator):
    assert detect_separator(lines, comments=True) == separator


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("word\tlabel", ["word", "label"]),
        ("Sentence #\tWord\tPOS\tTag", ["_", "word", "_", "label"]),
        ("\n\ufeffwords tags", ["word", "label"]),
    ],
)
def test_a_first_line_of_names_is_no_sentence(tmp_path, header, columns):
    token = " ".join({"word": "a", "label": "O"}.get(role, "x") for role in columns)
    text = f"{header}\n{token}\n"
    data = read(tmp_path, text, columns)
    assert (data["word"], data["label"]) == ([["a"]], [["O"]])


@pytest.mark.parametrize("line", ["Text NN", "# O", "form form-O", "a O\nword label"])
def test_first_line_with_a_token(tmp_path, line):
    words = [one.split()[0] for one in line.split("\n")]
    assert read(tmp_path, f"{line}\n", ["word", "_"])["word"] == [words]


@pytest.mark.parametrize("blank", ["\ufeff", "\u200b", "\u200d\ufe0f\u00ad"])
def test_a_line_of_invisible_characters_is_empty(tmp_path, blank):
    data = read(tmp_path, f"a O\n{blank}\nb O\n\n{blank}")
    assert (data["word"], data["line"]) == ([["a"], ["b"]], [[1], [3]])


def test_marks_of_joined_files(tmp_path):
    data = read(tmp_path, "\ufeffa O\n\n\ufeffb O\n\n\ufeff-DOCSTART- O\n\nc O\n")
    assert data["word"] == [["a"], ["b"], ["c"]]
    assert list(data["document"]) == [0, 0, 1]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a O\n\nb\n", {}, ":3: 1"),
        ("\n\na X O\nb O\n", {}, ":4: 2"),
        ("a O\nb\u200b\ufe0f\n", {}, r":2: 1 field, but line 1 has 2: 'b\u200b\ufe0f'"),
        ("-DOCSTART-\n\na O\n", {"columns": ROLES}, ":3: 2"),
        ("a O\n", {"columns": {"word": 0, "label": 2}}, ":1: 2"),
        ("", {}, ": the file contains no tokens"),
        ("-DOCSTART- O\n\n# x\n", {"comments": True}, ": the file contains no tokens"),
        ("a|O b|B-X\nc|O d|B-X\n", {}, ": this has a sentence per line as word|label word|label ...; write a word"),
        ("a/x_NN b_NN c_VB d_VB\n", {"columns": ["word"]}, ": this has a sentence per line as word_label word_label"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, options, message):
    assert error_message(read, tmp_path, text, **options).startswith(f"{tmp_path / 'a.txt'}{message}")


@pytest.mark.parametrize("line", ["a|O O", "a|O b_O", "a|O b|P"])
def test_separators_within_fields(tmp_path, line):
    assert read(tmp_path, f"{line}\n")["word"] == [[line.split()[0]]]


@pytest.mark.parametrize("unit", ["sentence", "document"])
def test_pieces_of_a_file_are_read_as_the_whole(tmp_path, monkeypatch, unit):
    chooser = random.Random(1)
    lines = ["a O", "b B-X", "", "", '"é I-X', "-DOCSTART- O", "# O", "# x y", " \t", "\u200b"]
    for turn in range(60):
        monkeypatch.setattr(conll, "PIECE", chooser.choice([1, 4, 30]))
        text = "\n".join(["c O", *chooser.choices(lines, k=chooser.randrange(1, 20))])
        text = text.replace("\n", "\r\n") if turn % 4 == 0 else text
        file, how = written(tmp_path, text), LineFormat(comments=True)
        whole = conll_corpus(read_lines(file), ["word", "label"], str(file), unit, how)
        found = read_conll_corpus(file, ["word", "label"], how, unit)
        assert found.columns == whole.columns
        for name in ("starts", "sentences", "documents", "lines"):
            assert getattr(found, name).tolist() == getattr(whole, name).tolist()


@pytest.mark.parametrize("shown", [True, False])
def test_the_progress_bar_names_the_file(tmp_path, monkeypatch, capsys, shown):
    monkeypatch.setattr(progress, "DELAY", 0)
    with terminal(200) as screen:
        assert read(tmp_path, "a O\n", progress=shown)["word"] == [["a"]]
    assert (str(tmp_path / "a.txt") in screen.text) == shown
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("columns", [["label", "_"], ["word", "word"], {"word": 0, "line": 1}])
def test_invalid_columns(tmp_path, columns):
    with pytest.raises(InputError, match=r"columns .*'word'"):
        read(tmp_path, "a O\n", columns)


def corpus_of(tmp_path, text=NER, unit="document"):
    return Corpus.from_dataset(read(tmp_path, text, ["word", "pos", "chunk", "label"]), unit, "a.txt")


def test_errors_of_the_corpus_name_lines(tmp_path):
    assert [corpus_of(tmp_path).where(i) for i in range(4)] == ["a.txt:3", "a.txt:4", "a.txt:6", "a.txt:10"]


@pytest.mark.parametrize("unit", ["sentence", "document"])
def test_write_and_read(tmp_path, unit):
    corpus = corpus_of(tmp_path, unit=unit)
    write_conll(tmp_path / "b.txt", corpus)
    assert (tmp_path / "b.txt").read_text() == NER.replace("-DOCSTART- -X- O O", "-DOCSTART- -X- -X- O") + "\n"
    again = Corpus.from_dataset(read_conll(tmp_path / "b.txt", list(corpus.columns)), unit)
    assert again.columns == corpus.columns
    assert again.starts.tolist() == corpus.starts.tolist()
    assert again.sentences.tolist() == corpus.sentences.tolist()
    assert again.documents.tolist() == corpus.documents.tolist()


def test_predictions_are_the_last_column(tmp_path):
    lines = "".join(conll_lines(corpus_of(tmp_path), ["word", "label"], ["1", "2", "3", "4"]))
    assert lines == ("-DOCSTART- O O\n\nEU I-ORG 1\nrejects O 2\n\nPeter I-PER 3\n\n-DOCSTART- O O\n\nU.N. I-ORG 4\n\n")
    assert "".join(conll_lines(corpus_of(tmp_path), ["word"])).startswith("-DOCSTART-\n\nEU\n")


def test_no_marks_for_single_sentences():
    corpus = Corpus.from_sentences([{"word": ["a", "b"]}, {"word": []}, {"word": ["c"]}])
    assert list(conll_lines(corpus)) == ["a\n", "b\n", "\n", "c\n", "\n"]


@pytest.mark.parametrize("value", ["", "a b", "\r"])
def test_values_that_are_not_fields(value):
    corpus = Corpus.from_sentences([{"word": ["x"]}, {"word": ["y", value]}], name="hub x")
    with pytest.raises(InputError, match=r"^hub x, sentence 2, token 2: "):
        list(conll_lines(corpus))


def test_invalid_output(tmp_path):
    corpus = corpus_of(tmp_path)
    with pytest.raises(InputError, match=r"a.txt: .*'lemma'"):
        write_conll(tmp_path / "b.txt", corpus, ["word", "lemma"])
    with pytest.raises(InputError, match=r"a.txt: 1 .*4 tokens"):
        write_conll(tmp_path / "b.txt", corpus, predicted=["O"])
    with pytest.raises(InputError, match="missing"):
        write_conll(tmp_path / "missing" / "b.txt", corpus)


@pytest.mark.parametrize(
    ("path", "columns", "sentences", "documents", "tokens"),
    [
        ("conll2003/eng.testa", ["word", "pos", "chunk", "label"], 3250, 216, 51362),
        ("ud_ewt/dev.txt", ["word", "label", "xpos"], 2001, 318, 25147),
    ],
)
def test_real_corpora(corpora, tmp_path, path, columns, sentences, documents, tokens):
    data = read_conll(corpora / path, columns)
    by_sentence, by_document = Corpus.from_dataset(data), Corpus.from_dataset(data, "document")
    assert (len(by_sentence), len(by_document)) == (sentences, documents)
    assert by_sentence.tokens == by_document.tokens == tokens
    write_conll(tmp_path / "b.txt", by_document)
    again = Corpus.from_dataset(read_conll(tmp_path / "b.txt", columns), "document")
    assert again.columns == by_document.columns
    assert again.starts.tolist() == by_document.starts.tolist()


def test_carriage_returns_inside_lines(tmp_path):
    assert read(tmp_path, "Anna O\rslept O\r\rBo O\r")["word"] == [["Anna", "slept"], ["Bo"]]
    with pytest.raises(InputError, match=r"a\.txt:2: "):
        read(tmp_path, "Anna O\nslept O\rBo O\n")
