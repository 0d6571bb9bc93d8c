"""Outputs of the small commands: refused before work begins, or written whole."""

import os

import pytest
from matplotlib.figure import Figure

from structperc.errors import InputError
from structperc.reports.output_files import check_figure, write_csv, write_figure


def test_bad_outputs_of_commands_are_refused_before_work_begins(fails, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.png").mkdir()
    model = tmp_path / "no model"  # which is looked for later
    for option in ("--csv", "--plot"):
        for command in (["weights", model], ["candidates", model, "file"], ["reliability", model, "file"]):
            assert "folder.png: this is a folder" in fails(*command, option, tmp_path / "folder.png")
            assert "no name for a file" in fails(*command, option, "")
    for command in (["tag", "-o"], ["explain", "--html"], ["decisions", "--html"]):
        if command[0] != "tag":  # which writes into folders
            assert "folder: this is a folder" in fails(command[0], model, "file", command[1], tmp_path / "folder")
        assert "no name for a file" in fails(command[0], model, "file", command[1], "")


def test_a_figure_is_drawn_before_the_old_one_is_touched(tmp_path, monkeypatch):
    file = tmp_path / "a.svg"
    write_figure(str(file), Figure())
    drawn = file.read_bytes()
    assert b"<svg" in drawn
    monkeypatch.setattr(Figure, "savefig", lambda *arguments, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_figure(str(file), Figure())
    assert file.read_bytes() == drawn
    assert os.listdir(tmp_path) == ["a.svg"]


def test_full_devices_are_named():
    with pytest.raises(InputError, match=r"^/dev/full: cannot write this file \(No space left on device\)$"):
        write_csv("/dev/full", ("a", "b"), [(1, 2)])
    with pytest.raises(InputError, match=r"a figure cannot be written as ''"):
        check_figure("/dev/full")
