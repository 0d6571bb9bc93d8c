"""Tables as text, Markdown and CSV, and files of commands."""

import pytest

from structperc.errors import InputError
from structperc.reports.tables import decimal, markdown_table, text_table, wrapped_table, write_csv, write_records

ROWS = [["", "F1", "seconds"], ["one", "50.00", "1"], ["other", "7.5", "12345678"]]


def test_alignment_of_text():
    assert list(text_table(ROWS)) == ["          F1   seconds", "one    50.00         1", "other    7.5  12345678"]
    rows = [["a", "left", ""], ["b", "", ""], ["c", " l ", "x"], ["e", "日本", "3"]]
    assert list(text_table(rows, "<<<", indent=" ")) == [" a  left", " b", " c   l    x", " e  日本  3"]
    assert list(text_table([["1", "0.10", "nan"], ["12", "3"]], "><>")) == [" 1  0.10  nan", "12  3"]
    assert list(text_table([])) == []


@pytest.mark.parametrize(("width", "blocks"), [(80, 1), (22, 1), (21, 2), (12, 2), (1, 2)])
def test_blocks_of_wide_tables(width, blocks):
    lines = list(wrapped_table(ROWS, width))
    assert lines.count("") == blocks - 1
    assert len(lines) == blocks * len(ROWS) + blocks - 1
    assert all(" ".join(lines).count(cell) == 1 for cell in ("50.00", "7.5", "12345678"))
    if blocks == 2:
        assert lines[-1] == "other  12345678"


def test_markdown_escapes_bars():
    assert list(markdown_table([["", "x"], ["a|b", "1"]])) == ["|  | x |", "| --- | ---: |", "| a\\|b | 1 |"]


def test_decimals():
    assert [decimal(x) for x in (1.0, -0.0001, 1234567.8912, 2 / 3)] == ["1", "0", "1234567.891", "0.667"]


def test_records_have_all_keys(tmp_path):
    write_records(str(tmp_path / "a.csv"), [{"x": 1}, {"y": "a,b", "x": 2}])
    assert (tmp_path / "a.csv").read_text() == 'x,y\n1,\n2,"a,b"\n'
    with pytest.raises(InputError, match=r"^/dev/full"):
        write_csv("/dev/full", ("a", "b"), [(1, 2)])


def test_outputs_are_checked_first(fails, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.png").mkdir()
    model, file = tmp_path / "empty model", tmp_path / "file"  # the model is read later
    model.mkdir()
    for path in (file, model / "model.json", model / "model.safetensors"):
        path.touch()
    for option in ("--csv", "--plot"):
        for command in (["explain", model], ["evaluate", model, file, "--candidates"]):
            assert "folder.png: " in fails(*command, option, tmp_path / "folder.png")
            assert str(model) not in fails(*command, option, "")
    assert "folder: " in fails("explain", model, file, "--html", tmp_path / "folder")
    for command, option in (("tag", "-o"), ("explain", "--html")):  # tag writes into folders
        assert str(model) not in fails(command, model, file, option, "")
