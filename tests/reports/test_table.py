"""Tables as text: cells below each other, lines that end with their last cell, blocks that fit."""

import pytest

from structperc.reports.tables import UnalignedCell, markdown_table, text_table, wrapped_table

ROWS = [["", "F1", "seconds"], ["one", "50.00", "1"], ["other", "7.5", "12345678"]]


def test_columns_are_as_wide_as_their_widest_cell():
    assert list(text_table(ROWS)) == [
        "          F1   seconds",
        "one    50.00         1",
        "other    7.5  12345678",
    ]


def test_the_last_side_and_the_last_width_are_those_of_all_that_follow():
    rows = [["a", "b", "c", "d"]]
    assert list(text_table(rows, "<>", [2, 3], sep="|", indent="  ")) == ["  a |  b|  c|  d"]
    assert list(text_table(rows, ">", [2], sep="")) == [" a b c d"]


def test_lines_end_with_their_last_cell():
    rows = [["a", "left", ""], ["b", "", ""], ["c", "l ", "x"], ["", "", ""], []]
    assert list(text_table(rows, "<<<")) == ["a  left", "b", "c  l     x", "", ""]
    assert list(text_table([["a", "ends in a blank "]], "<")) == ["a  ends in a blank "]


def test_the_rest_of_a_line_makes_no_column_wider():
    rows = [["1", "2", "3"], ["a", UnalignedCell("failed: a long complaint")], ["b", "22", "33"]]
    assert list(text_table(rows, "<>")) == ["1   2   3", "a  failed: a long complaint", "b  22  33"]


def test_no_rows():
    assert list(text_table([])) == []


@pytest.mark.parametrize(("width", "blocks"), [(80, 1), (22, 1), (21, 2), (12, 2), (1, 2)])
def test_columns_beyond_the_width_follow_in_blocks(width, blocks):
    lines = list(wrapped_table(ROWS, width))
    assert lines.count("") == blocks - 1
    assert len(lines) == blocks * len(ROWS) + blocks - 1
    assert all(" ".join(lines).count(cell) == 1 for cell in ("50.00", "7.5", "12345678"))
    if blocks == 2:
        assert lines[-1] == "other  12345678"


def test_markdown_escapes_bars():
    assert list(markdown_table([["", "x"], ["a|b", "1"]])) == ["|  | x |", "| --- | ---: |", "| a\\|b | 1 |"]
