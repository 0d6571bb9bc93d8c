"""Plain column files are read as the strict reader reads them; what is not plain is left to it."""

import random

import numpy as np
import pytest

from structperc.data import fast_columns as even_columns
from structperc.data.conll import read_conll
from structperc.data.corpus import Corpus
from structperc.data.fast_columns import read_columns_fast
from structperc.data.read_options import LineFormat
from structperc.errors import InputError

PLAIN = "-DOCSTART- O\n\n\nAnna B-PER\nleft O\n\nBö B-PER\n\n-DOCSTART- O\n\n\x0bx O\n-DOCSTART- O\nNA O\n-DOCSTART- O"


def strict(path, columns, comments, unit, separator="whitespace"):
    try:
        rows = read_conll(path, columns, comments=comments, separator=separator, progress=False)
        return Corpus.from_dataset(rows, unit, str(path))
    except InputError:
        return None


def even(path, columns=("word", "label"), comments=False, unit="sentence", separator="whitespace"):
    return read_columns_fast(path, columns, LineFormat(separator, comments), unit, progress=False)


def assert_same(one, other):
    assert dict(one.columns) == dict(other.columns)
    assert all(one.numbered(role).distinct == other.numbered(role).distinct for role in one.columns)
    for name in ("starts", "sentences", "documents", "lines"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.name == other.name


@pytest.mark.parametrize("unit", ["sentence", "document"])
@pytest.mark.parametrize("size", [2**20, 16])
def test_plain_files(tmp_path, monkeypatch, unit, size):
    monkeypatch.setattr(even_columns, "SIZE", size)
    path = tmp_path / "a.txt"
    for text in (PLAIN, PLAIN.replace(" ", "\t"), PLAIN + "\n", PLAIN.replace("-DOCSTART- O\n", "")):
        path.write_text(text, encoding="utf-8", newline="")
        found = even(path, unit=unit)
        assert found is not None
        assert_same(found, strict(path, ["word", "label"], False, unit))


def test_words_alone_and_documents_without_any(tmp_path, monkeypatch):
    monkeypatch.setattr(even_columns, "SIZE", 8)
    path = tmp_path / "a.txt"
    path.write_text("a\n\nb\nc\n\n-DOCSTART-\n\n\n-DOCSTART-\n\nd\n\n-DOCSTART-\n\n")
    for unit in ("sentence", "document"):
        assert_same(even(path, ["word"], unit=unit), strict(path, ["word"], False, unit))


@pytest.mark.parametrize("size", [2**20, 4])
@pytest.mark.parametrize(
    "text",
    [
        "a O\nb\n",
        "a O\n\nb O x\n",
        "a O\nb O x\n",
        "a  O\n",
        " a O\n",
        "a O \n",
        "a O\n \nb O\n",
        "a O\tx\n",
        "a O\r\nb O\r\n",
        "\ufeffa O\n",
        "a O\n\n\ufeffb O\n",
        "a O\n\n\ufeff\n",
        "a O\n\u200b \xa0\n",
        "word label\na O\n",
        "a\0 O\n",
        "\x01 O\n",
        "-DOCSTART-\n\na O\n",
        "\n\n",
        "",
        "a\n",
    ],
)
def test_other_files_are_left_to_the_strict_reader(tmp_path, monkeypatch, text, size):
    monkeypatch.setattr(even_columns, "SIZE", size)
    path = tmp_path / "a.txt"
    path.write_text(text, encoding="utf-8", newline="")
    assert even(path) is None


def test_other_bytes_and_options_are_left_to_the_strict_reader(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xe4 O\n")
    assert even(path) is None
    assert even(tmp_path / "none") is None
    path.write_bytes(b"# O\na O\n")
    assert even(path) is not None
    assert even(path, comments=True) is None
    for columns in (["label"], ["word", "word"], ["word", "line"], ["word", "label", "x"]):
        assert even(path, columns) is None


def test_tabs_between_fields_that_hold_spaces(tmp_path):
    path = tmp_path / "a.txt"
    for text in ("New York\tO\nis\tO\n\nNew Delhi\tO\n", "-DOCSTART-\tO\n\na b\tO\n"):
        path.write_text(text)
        found = even(path, separator="tab")
        assert_same(found, strict(path, ["word", "label"], False, "sentence", "tab"))
        assert even(path) is None
    for text in ("a b O\n", "a \tO\n", "a\t O\n", " a\tO\n", "a\tO \n", "a\t\tO\n", "a\t \tO\n", "a\tO\n  \n"):
        path.write_text(text)
        assert even(path, separator="tab") is None


def test_random_files(tmp_path, monkeypatch):
    """What this reader gives is what the strict one gives; most of these files are plain enough for it."""
    chooser, path, read = random.Random(1), tmp_path / "a.txt", 0
    lines = ["a O", "b B-X", "", "", '"é I-X', "-DOCSTART- O", "# O"]
    for turn in range(150):
        monkeypatch.setattr(even_columns, "SIZE", chooser.choice([4, 30, 1000]))
        odd = ["a", "a  O", " ", "\u200b"] if turn % 5 == 0 else []
        text = "\n".join(chooser.choices([*lines, *odd], k=chooser.randrange(1, 20)))
        path.write_text(text, encoding="utf-8")
        columns, comments = chooser.choice([["word"], ["word", "_"], ["_", "word"], ["label", "word"]]), turn % 3 == 0
        unit = chooser.choice(["sentence", "document"])
        found = even(path, columns, comments, unit)
        if found is not None:
            read += 1
            assert_same(found, strict(path, columns, comments, unit))
    assert read > 60
