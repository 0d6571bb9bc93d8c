"""Commands of the pages are commands of the program; those of a reader's first hour run as they stand."""

import argparse
import re

import pytest

from structperc.cli import COMMANDS
from tests.docs.written import DOCS, PAGES, blocks, commands
from tests.tiny import without_names

SMALL = ["--data.train=20", "--data.dev=8", "--data.test=8", "--trainer.max_epochs=1"]
SHORT = ["--trainer.max_epochs=2"]
FEW = ["--data.dev=8", "--data.test=8"]
PROGRAM = {"fit", "validate", "test", "predict", "rerank"}
OPTIONS = r"-c|--help-all|--ckpt_path|--(?:trainer|data|model|checkpoint|seed_everything)(?:\.[\w.]+)?(?:=.*)?"
each_page = pytest.mark.parametrize("page", PAGES)


def parser(name: str) -> argparse.ArgumentParser:
    (make,) = [command.parser for command in COMMANDS if command.name == name]
    return make()


@each_page
def test_commands_and_their_options_exist(page):
    """A command without arguments is only spoken of; training commands have groups of options."""
    for name, *arguments in commands(page):
        if name == "help" or name.isupper():
            continue
        assert name in {command.name for command in COMMANDS}, name
        if name in PROGRAM:
            wrong = [one for one in arguments if one.startswith("-") and not re.fullmatch(OPTIONS, one)]
        elif arguments:
            _, wrong = parser(name).parse_known_args(arguments)
        else:
            wrong = []
        assert not wrong or name == "sweep", (name, wrong)


# -- the README ----------------------------------------------------------------------------------------------


def test_readme():
    assert PAGES["README"].count("\n") <= 150
    install = 'pip install -e ".[dev]" -c constraints.txt'
    first, second, *_ = blocks("README", "bash")
    assert first == f"{install} && python train.py fit -c configs/quickstart.yaml\n"
    assert second == f"{install} && pytest\n"
    assert len(re.findall(r"!\[", PAGES["README"])) == 1


def test_results_of_the_readme():
    """A row of the results has the score; where it names a configuration, that of the README's command."""
    table = PAGES["README"].partition("## Results")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 10
    for _, learner, score, command in rows:
        said = [line for line in PAGES["results"].splitlines() if score.removesuffix(" F1").removesuffix(" %") in line]
        config = re.search(r"configs/(\S+)\.yaml", command)
        named = [line for line in said if config and re.search(rf"{config[1]}\b|\b{config[1].split('/')[-1]}\b", line)]
        assert named or [line for line in said if learner.replace(" features", "") in line], (learner, score)


def test_first_commands(ran, structperc_says):
    ((command, *arguments),) = [one for one in commands("README") if one[-1] == "configs/quickstart.yaml"][:1]
    structperc_says(command, *arguments, *SHORT, *FEW)
    assert ran("README")
    assert ran("hub")


def test_own_data(here, structperc_says):
    (block,) = [block for block in blocks("README", "bash") if "init" in block]
    for line in block.splitlines():
        structperc_says(*line.split()[1:])
    labelled = without_names((here / "labelled.txt").read_text(encoding="utf-8"))
    assert labelled.startswith("Anna A\nmet m\nBo ")


def test_the_page_of_the_picture(here, structperc_says):
    (block,) = [block for block in blocks("README", "bash") if "explain" in block]
    fit, explain = block.replace("\\\n", "").splitlines()
    structperc_says(*fit.split()[1:], *SMALL)
    structperc_says(*explain.split()[1:])
    assert (here / "why.html").read_text(encoding="utf-8").startswith("<!doctype html>")


# -- pages ---------------------------------------------------------------------------------------------------


def test_tagging_new_text(here, ran, structperc_says):
    (config,) = blocks("tagging", "yaml")
    (here / "words.yaml").write_text(config, encoding="utf-8")
    fit, *_ = commands("tagging")
    structperc_says(*fit, *SHORT, *FEW, "--data.train=100")
    assert ran("tagging")
    (here / "new.txt").write_text("Nothing\nwas\nheard\nfrom\nLindal\n.\n", encoding="utf-8")
    assert len(without_names(structperc_says("tag", "runs/words/1/model", "new.txt")).strip().splitlines()) == 6
    assert structperc_says("tag", "runs/words/1/model", "new.txt", "-k", "3")


def test_the_first_configuration_of_data_trains(here, structperc_says):
    own, *_ = blocks("how_to/own_data", "yaml")
    (here / "own.yaml").write_text(own.replace("[word, _, label]", "[word, label]").replace("IOB2", "none"))
    assert ["fit", "-c", "own.yaml"] in commands("how_to/own_data")
    structperc_says("fit", "-c", "own.yaml", *SHORT)


def test_pictures():
    shown = {name for page in PAGES.values() for name in re.findall(r"!\[[^\]]*\]\((?:[^)]*/)?([^)/]+)\)", page)}
    assert shown == {path.name for path in [*DOCS.glob("*.png"), *DOCS.glob("images/*.*")]}
