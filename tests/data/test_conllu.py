import pytest

from structperc.data.conll import read_conllu
from structperc.data.corpus import Corpus
from structperc.errors import InputError
from tests.errors import error_message


def word(number, form, upos="X", xpos="Y"):
    return "\t".join([str(number), form, form.lower(), upos, xpos, *"_____"])


TEXT = "\n".join(
    [
        "# newdoc id = one",
        "# sent_id = 1",
        word("1-2", "don't", "_", "_"),
        word(1, "do", "AUX", "VBP"),
        word(2, "n't", "PART", "RB"),
        word("2.1", "it", "PRON", "PRP"),
        word("3", "New York", "PROPN", "NNP"),
        "",
        "# sent_id = 2",
        word(1, "Yes", "INTJ", "UH"),
        "",
        "# newdoc",
        "# newpar",
        word(1, "#", "SYM", "#"),
        "",
    ]
)


def read(tmp_path, text, **options):
    file = tmp_path / "a.conllu"
    file.write_text(text, encoding="utf-8", newline="")
    return read_conllu(file, **options)


def test_rows(tmp_path):
    rows = read(tmp_path, TEXT)
    assert rows["word"] == [["do", "n't", "New York"], ["Yes"], ["#"]]
    assert rows["upos"] == rows["label"] == [["AUX", "PART", "PROPN"], ["INTJ"], ["SYM"]]
    assert rows["xpos"] == [["VBP", "RB", "NNP"], ["UH"], ["#"]]
    assert rows["line"] == [[4, 5, 7], [10], [14]]
    assert (list(rows["document"]), list(rows["sentence"])) == ([0, 0, 1], [0, 1, 2])


def test_xpos_and_windows_line_ends(tmp_path):
    data = read(tmp_path, TEXT.rstrip().replace("\n", "\r\n"), label="xpos")
    assert data["label"] == [["VBP", "RB", "NNP"], ["UH"], ["#"]]
    assert len(Corpus.from_dataset(data, "document")) == 2


def test_documents_without_newdoc(tmp_path):
    assert list(read(tmp_path, f"{word(1, 'a')}\n\n{word(1, 'b')}\n")["document"]) == [0, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# x\n1 a a X\n", ":2: 1"),
        (f"{word(1, 'a')}\n{word(1, 'b')}\n", ":2: expected word id 2, got '1'"),
        (f"{word('2-3', 'a')}\n", ":1: expected word id 1, got '2-3'"),
        (f"{word('1.1', 'a')}\n", ":1: expected word id 1, got '1.1'"),
        ("# only a comment\n", ": the file contains no words"),
        (f"{word(1, 'a')}\n{word(2, '')}\n", ":2: FORM"),
        (f"{word(1, 'a', upos=' ')}\n", ":1: UPOS"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, message):
    assert error_message(read, tmp_path, text).startswith(f"{tmp_path / 'a.conllu'}{message}")


def test_unlabelled_files_have_no_label(tmp_path):
    text = f"{word(1, 'a', '_', 'DT')}\n{word(2, '_', '_', 'NN')}\n"
    assert "label" not in read(tmp_path, text).column_names
    assert read(tmp_path, text, label="xpos")["label"] == [["DT", "NN"]]
    assert read(tmp_path, text.replace("DT", "_"), label="xpos")["label"] == [["_", "NN"]]


def test_errors_without_a_line(tmp_path):
    with pytest.raises(InputError, match=r"^no.conllu: "):
        read_conllu("no.conllu")
    with pytest.raises(InputError, match=r"upos .*xpos.*'lemma'"):
        read(tmp_path, TEXT, label="lemma")
