"""The command line itself: overview, help, suggestions, and one line for whatever ends a command."""

import errno
import re
import shlex
import subprocess
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules

import pytest

import structperc
from structperc import cli as commands
from structperc.cli import COMMANDS
from structperc.cli.arguments import Command
from structperc.cli.main import main
from structperc.cli.messages import with_own_options
from structperc.cli.train import TRAININGS
from structperc.errors import InputError
from structperc.spelling import did_you_mean

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"


@pytest.fixture
def ended(monkeypatch, capsys):
    """What a command that raises an error leaves: -> exit status, lines on standard error."""

    def ended(error, *options):
        scope = {"error": error}  # a function of the package: what fails in a user's file is her mistake
        exec(compile("def run(arguments):\n    raise error\n", commands.__file__, "exec"), scope)
        monkeypatch.setattr("structperc.cli.main.COMMANDS", (Command("break", "", "breaks", scope["run"]),))
        capsys.readouterr()
        status = main(["break", *options])
        return status, capsys.readouterr().err.splitlines()

    return ended


@pytest.mark.parametrize("asked", [[], ["-h"], ["--help"], ["help"]])
def test_overview_of_commands(asked, capsys):
    assert main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert {line.split()[0] for line in lines if line.startswith("  ")} == {command.name for command in COMMANDS}


def test_every_command_is_in_the_overview():
    modules = [import_module(f"structperc.cli.{name}") for _, name, _ in iter_modules(commands.__path__)]
    made = {one.name for module in modules for one in vars(module).values() if isinstance(one, Command)}
    assert made == {command.name for command in COMMANDS}


def test_page_of_commands():
    rows = re.findall(
        r"^\| `([\w-]+)` \|.*\| `structperc ([\w-]+) (.*)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [name for name, *_ in rows] == [command.name for command in COMMANDS]
    for (name, used, arguments), command in zip(rows, COMMANDS, strict=True):
        assert used == name
        module = import_module(getattr(command.run, "func", command.run).__module__)
        if hasattr(module, "parser"):
            assert module.parser().parse_args(shlex.split(arguments))


FILE_OPTIONS = {"--columns", "--unit", "--labels", "--encoding", "--separator", "--comments", "--no-comments"}
GOLD_OPTIONS = {"--misaligned", "--overlaps", "--dropped"}


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.parser], ids=lambda one: one.name)
def test_options_of_the_page(command):
    """The section of a command has a row for each of its options, but for those that commands have in common."""
    (section,) = re.findall(rf"^## `{command.name}`\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    cells = re.findall(r"^\| (`-.*?) \|", section, re.MULTILINE)
    shown = {option for cell in cells for option in re.findall(r"`(-[\w-]+)`", cell)}
    taken = {option for action in command.parser()._actions for option in action.option_strings}
    common = FILE_OPTIONS | GOLD_OPTIONS if taken >= GOLD_OPTIONS else FILE_OPTIONS
    assert shown == taken - common - {"-h", "--help", "--trust"}
    if "file options" in section and "of the file options" not in section:
        absent = {"--unit"} if command.name in ("init", "check", "convert", "vectors") else set()
        absent |= {"--labels"} if "except `--labels`" in section else set()
        assert taken & FILE_OPTIONS == FILE_OPTIONS - absent


def test_options_of_trainings_on_the_page():
    (section,) = re.findall(r"^## Training: .*?\n(.*?)(?=^## )", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]*) \|", section, re.MULTILINE)
    names = {name: set(TRAININGS if used == "all" else re.findall(r"`(\w+)`", used)) for name, used in rows}
    known = {option.name: set() for one in TRAININGS.values() for option in one.options}
    for name, one in TRAININGS.items():
        for option in one.options:
            known[option.name].add(name)
    assert names == {"-c FILE": set(TRAININGS), "--row ROW": set(TRAININGS), **known}


@pytest.mark.parametrize("name", ["tag", "study", "evaluate"])
def test_help_of_a_command(name, capsys):
    for arguments in (["help", name], [name, "--help"]):
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        assert stopped.value.code == 0
        assert f"usage: structperc {name}" in capsys.readouterr().out


TRAINED = ["fit", "validate", "test", "predict", "rerank"]


@pytest.mark.parametrize("name", TRAINED)
def test_length_of_short_help(name, run):
    short = run("help", name)
    assert short == run(name, "-c", "own.yaml", "--help")
    lines = short.splitlines()
    assert lines[0].startswith(f"usage: structperc {name} -c FILE")
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 120
    assert f"structperc {name} --help-all" in short


@pytest.mark.parametrize(
    ("configuration", "kind"), [("quickstart", "fit"), ("studies/embedded#reranking1", "rerank")], ids=["fit", "rerank"]
)
def test_options_of_short_help(configuration, kind):
    from structperc.datamodules.base import SequenceDataModule
    from structperc.experiments.experiment import dry_run
    from structperc.training.configuration import flat_options

    program = dry_run(["-c", f"pkg:{configuration}", "--trainer.default_root_dir=runs/NAME"], kind)
    known = flat_options(program.config)
    known |= {f"data.{key}": value.default for key, value in signature(SequenceDataModule).parameters.items()}
    known |= {"data.files.train": None, "trainer.default_root_dir": "runs/NAME", "trainer.max_epochs": 1000}
    names = ["rerank"] if kind == "rerank" else [name for name in TRAINED if name != "rerank"]
    for option in {option for name in names for option in TRAININGS[name].options}:
        key = option.name.partition(" ")[0].removeprefix("--")
        assert key in known
        if option.default and not key.startswith("model."):
            assert option.default == ("null" if known[key] is None else str(known[key]))


def test_all_options_are_behind_another_option(capsys):
    assert main(["fit", "--help-all"]) == 0
    assert "--trainer.gradient_clip_val" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"structperc {structperc.__version__}\n"


def test_help_and_version_do_without_pytorch():
    code = """
import sys
from structperc.cli.main import main
assert main(["--version"]) == main(["--help"]) == 0
try:
    main(["help", "explain"])
except SystemExit:
    pass
assert not {"torch", "numpy", "yaml"} & sys.modules.keys()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_public_names_are_found_on_first_use():
    for name in {"Batch", "Tagger", "load", "InputError"}:
        assert getattr(structperc, name).__name__ == name
    with pytest.raises(AttributeError, match="Taggr"):
        structperc.Taggr  # noqa: B018


# -- mistakes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["fti"], ["'fti'", "did you mean fit?"]),
        (["help", "tga"], ["did you mean tag?"]),
        (["tag"], ["tag: ", "model, file"]),
        (["tag", "m", "f", "--colums", "word"], ["tag: ", "--colums", "did you mean --columns?"]),
        (["tag", "m", "f"], ["m: "]),
        (["tag", "m", "f", "-k", "many"], ["-k", "'many'"]),
        (["explain", "m", "f", "--unit", "word"], ["--unit", "sentence", "document"]),
        (["calibrate", "--cost", "missed=5", "m", "f"], ["model, file; --cost takes all"]),
    ],
)
def test_mistakes_are_one_line(arguments, parts, capsys):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("structperc: error: ")
    assert err.count("\n") == 1
    assert all(part in err for part in parts)


@pytest.mark.parametrize(
    ("given", "known", "suggested"),
    [
        ("PERCEPTRON", ["Perceptron", "MarginLoss"], "; did you mean Perceptron?"),
        ("max_epoch", ["min_epochs", "max_epochs"], "; did you mean max_epochs?"),
        ("zzz", ["Perceptron"], ""),
        ("a", [], ""),
    ],
)
def test_did_you_mean(given, known, suggested):
    assert did_you_mean(given, known) == suggested


# -- endings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("a.txt:3: two\n fields"), 2, "structperc: error: a.txt:3: two fields"),
        (InputError("a\x1b[2Jb"), 2, "structperc: error: a\\x1b[2Jb"),
        (InputError(f"a: {'x' * 5000}; b"), 2, f"structperc: error: a: {'x' * 297} ... {'x' * 297}; b"),
        (OSError(errno.ENOSPC, "No space left on device", "runs/x"), 2, "runs/x: No space left on device"),
        (MemoryError(), 2, "not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 2, "structperc: error: not enough memory"),
        (KeyError("word"), 70, "unexpected failure (KeyError: 'word'); --debug shows the traceback"),
        (KeyboardInterrupt(), 1, "structperc: interrupted"),
    ],
)
def test_errors_are_one_line(error, status, line, ended):
    found, lines = ended(error)
    assert found == status
    assert len(lines) == 1
    assert line in lines[0]


@pytest.mark.parametrize("error", [InputError("bad"), OSError("gone"), KeyError("word"), KeyboardInterrupt()])
def test_debug_shows_the_traceback(error, ended):
    plain, with_trace = ended(error), ended(error, "--debug")
    assert plain[0] == with_trace[0]
    assert with_trace[1][0] == "Traceback (most recent call last):"
    assert with_trace[1][-1] == plain[1][-1]


@pytest.mark.parametrize(
    ("advice", "command", "expected"),
    [
        ("this is utf-16 text; set encoding: utf-16", "tag", "this is utf-16 text; set --encoding utf-16"),
        ("a:1: 3 fields; set comments: true", "evaluate", "a:1: 3 fields; set --comments"),
        ("set separator: tab", "fit", "set data.separator: tab"),
        ("set labels: IOB2 TYPE-B", "init", "set --labels 'IOB2 TYPE-B'"),
        ("set scheme: none", "check", "set --labels none"),
        ("set scheme: none", "evaluate", "set scheme: none"),
    ],
)
def test_advice_names_the_options_of_the_command(advice, command, expected):
    assert with_own_options(advice, command) == expected


def test_invisible_characters_are_shown():
    assert str(InputError("label 'B\u200b-\ufe0fX' \ufeff")) == r"label 'B\u200b-\ufe0fX' \ufeff"
    assert str(InputError("Zoë \U0001f600")) == "Zoë \U0001f600"


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["evaluate", "model", "model", "file", "--json", "x.json"], "--json"),
        (["evaluate", "model", "file", "--types"], "--types"),
        (["evaluate", "file", "file", "--errors"], "--errors"),
        (["check", "file", "--csv", "x.csv"], "--csv"),
        (["study", "file", "--holdout", "3"], "--holdout"),
        (["tag", "model", "file", "--incomplete", "-o", "x", "-k", "2"], " -k "),
        (["push", "model", "-o", "x", "--private"], "--private"),
        (["explain", "model", "--document", "1"], "--document"),
        (["explain", "model", "file", "--top", "3"], "--top"),
    ],
)
def test_options_without_effect_are_refused(arguments, option, model, file, fails):
    places = {"model": model, "file": file("Anna B-PER B-PER\n")}
    message = fails(*(places.get(one, one) for one in arguments))
    assert option in message
    assert "leave it out" in message
