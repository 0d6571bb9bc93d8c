"""Missing files and models are reported before the libraries that would read them are imported."""

import json
import subprocess
import sys

import pytest

from structperc.cli import COMMANDS
from structperc.cli.arguments import FILE, MODEL, Input
from structperc.cli.train import TRAININGS
from structperc.data.text_files import suggest_path
from structperc.errors import InputError
from structperc.training.overlays import check_paths

SLOW = ("torch", "pytorch_lightning", "lightning", "datasets")
SCRIPT = f"""
import contextlib, io, json, sys
from structperc.cli.main import main
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as text:
        status = main(arguments)
    print(json.dumps([status, text.getvalue(), [name for name in {SLOW} if name in sys.modules]]))
"""


def calls():
    """Arguments of every command with each of its inputs missing, and all others present."""
    configured = [[name, "-c", "missing.yaml"] for name in TRAININGS]
    yield from [*configured, ["study", "-c", "missing.yaml", "--grid", "a=1"]]
    yield ["check", "--label-errors", "-c", "missing.yaml"]
    for command in COMMANDS:
        parser = command.parser() if command.parser else None
        for wrong in parser.arguments if parser else []:
            if isinstance(wrong.type, Input):
                arguments = []
                for one in parser.arguments:
                    present = (
                        next(iter(one.choices)) if one.choices else {MODEL: "model", FILE: "file"}.get(one.type, "x")
                    )
                    if one is wrong or one.required:
                        arguments += [*one.option_strings[-1:], "missing" if one is wrong else present]
                yield [command.name, *arguments]


def test_all_commands(tmp_path):
    (tmp_path / "model").mkdir()
    for name in ("file", "model/model.json", "model/model.safetensors"):
        (tmp_path / name).touch()
    made = list(calls())
    command = [sys.executable, "-c", SCRIPT, json.dumps(made)]
    lines = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    for arguments, line in zip(made, lines, strict=True):
        status, text, imported = json.loads(line)
        assert (status, text.count("\n"), imported) == (2, 1, []), arguments
        assert "missing" in text, arguments


def test_arguments_that_name_inputs_have_their_type():
    named = {"model", "models", "file", "files", "systems"}
    parsers = [command.parser() for command in COMMANDS if command.parser]
    assert all(isinstance(one.type, Input) for made in parsers for one in made.arguments if one.dest in named)


@pytest.mark.parametrize(
    ("option", "splits", "named"),
    [
        ("--data.files.dev=dve.txt", ("train", "dev"), "dev.txt"),
        ("--data.files.dev=dve.txt", ("train",), None),
        ("--ckpt_path=last.ckp", (), "last.ckpt"),
        ("--ckpt_path=best", (), None),
        ("--model.init_from=modle", (), "model"),
        ("--data.path=$NOT_SET", (), "NOT_SET"),
    ],
)
def test_files_of_a_configuration(tmp_path, monkeypatch, option, splits, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    for name in ("train.txt", "dev.txt", "last.ckpt"):
        (tmp_path / name).touch()
    data = "{class_path: structperc.data.Conll, init_args: {path: ., files: {train: train.txt}, columns: [word]}}"
    (tmp_path / "own.yaml").write_text(f"data: {data}\n")
    if named is None:
        check_paths(["-c", "own.yaml", option], splits)
        return
    with pytest.raises(InputError) as error:
        check_paths(["-c", "own.yaml", option], splits)
    assert str(error.value).startswith(option.partition("=")[0])
    assert named in str(error.value)


def test_a_folder_of_the_path_is_misspelt(tmp_path):
    (tmp_path / "runs/quickstart/1").mkdir(parents=True)
    (tmp_path / "runs/quickstop").mkdir()
    assert suggest_path(tmp_path / "runs/quickstrat/1") == f"; did you mean {tmp_path / 'runs/quickstart/1'}?"
