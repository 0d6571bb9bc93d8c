"""Commands of the pages are commands of the program; those of a reader's first hour run as they stand."""

import argparse
import re

import pytest

from structperc import Tagger
from structperc.cli import COMMANDS
from tests.docs.written import DOCS, PAGES, blocks, commands
from tests.tiny import without_names

SMALL = ["--data.train=20", "--data.dev=8", "--data.test=8", "--trainer.max_epochs=1"]
SHORT = ["--trainer.max_epochs=2"]
FEW = ["--data.dev=8", "--data.test=8"]
PROGRAM = {"fit", "validate", "test", "predict", "rerank"}
OPTIONS = r"-c|--row|--help-all|--ckpt_path|--(?:trainer|data|model|checkpoint|seed_everything)(?:\.[\w.]+)?(?:=.*)?"
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
        assert not wrong or "--grid" in arguments or "--label-errors" in arguments, (name, wrong)


def test_readme():
    assert PAGES["README"].count("\n") <= 150
    first, second, *_ = blocks("README", "bash")
    assert first == "pip install -e . -c constraints.txt && python train.py fit -c configs/quickstart.yaml\n"
    assert second == 'pip install -e ".[dev]" -c constraints.txt && pytest\n'
    assert len(re.findall(r"!\[", PAGES["README"])) == 1


def test_results_of_the_readme():
    """The pages of results have the score of each row, in a line with the configuration of its command."""
    table = PAGES["README"].partition("## Results")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert rows
    lines = [line for page, text in PAGES.items() if page.startswith("results/") for line in text.splitlines()]
    for _, _, score, *_, command in rows:
        number = score.removesuffix(" F1").removesuffix(" %")
        found = [line for line in lines if number in line]
        assert [line for line in found if command in line] or [line for line in found if command[1:-1] in line], command


@pytest.fixture(scope="module")
def quickstart(structperc_says):
    """The model of the README's first command, less trained."""
    ((command, *arguments),) = [one for one in commands("README") if one[-1] == "configs/quickstart.yaml"][:1]
    structperc_says(command, *arguments, *SHORT, *FEW)


@pytest.mark.usefixtures("quickstart")
def test_sharing_the_first_model(ran):
    assert ran("how_to/share_models")


@pytest.mark.usefixtures("quickstart")
def test_code_of_the_readme(here, ran):
    """The corpus of this page has names."""
    corpus = [here / "corpus" / "train.txt", here / "corpus" / "dev.txt"]
    before = [file.read_text(encoding="utf-8") for file in corpus]
    for file in corpus:
        file.write_text("Anna B-PER\nmet O\nBo B-PER\n\n" * 9, encoding="utf-8")
    names = ran("README")
    for file, text in zip(corpus, before, strict=True):
        file.write_text(text, encoding="utf-8")
    assert names["loss"] > 0
    assert names["labels"][~names["mask"]].eq(-100).all()
    assert Tagger.load("my_tagger").tag([["Anna"]]) == [["B-PER"]]


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


def test_tagging_new_text(here, ran, structperc_says):
    (config,) = blocks("get_started/tag", "yaml")
    (here / "words.yaml").write_text(config, encoding="utf-8")
    fit, *_ = commands("get_started/tag")
    structperc_says(*fit, *SHORT, *FEW, "--data.train=100")
    assert ran("get_started/tag")
    assert ran("how_to/confidence")
    (here / "lexicon.tsv").write_text("Lindal\tB-PER|I-PER\nplan\tO\n", encoding="utf-8")
    assert ran("how_to/dictionaries")

    (here / "new.txt").write_text("Nothing\nwas\nheard\nfrom\nLindal\n.\n", encoding="utf-8")
    assert len(without_names(structperc_says("tag", "runs/words/1/model", "new.txt")).strip().splitlines()) == 6
    assert structperc_says("tag", "runs/words/1/model", "new.txt", "-k", "3")


def test_precision_and_recall(here, ran, structperc_says):
    (config,) = blocks("how_to/precision_and_recall", "yaml")
    (here / "recall.yaml").write_text(config, encoding="utf-8")
    crf, beta, mce_f, own = (one for one in commands("how_to/precision_and_recall") if "configs/" in " ".join(one[:3]))
    fast = ["--trainer.check_val_every_n_epoch=1", "--trainer.max_epochs=8"]
    for command in (crf, mce_f, own):
        structperc_says(*command, *SMALL[:-1], *fast)
    assert beta[-2:] == ["--model.beta", "2"]
    names = ran("how_to/precision_and_recall")
    tagger, dev = names["tagger"], names["dev"]
    found = []
    for bias in (4, -4):
        tagger.biases.add("o", names["LabelBias"]({"O": bias}))
        tagger.biases.use("o")
        found.append(names["segment_recall_score"](names["gold"], tagger.label(dev)))
    assert found[0] < found[1]
    few, many = (len(tagger.predict(dev, True, min_probability).spans or ()) for min_probability in (0.9, 0.01))
    assert few < many
    tag = structperc_says("tag", "runs/recall/1/model", "runs/studies/embedded/crf/1/predictions/dev.conll")
    assert "predicted" in tag


def test_the_first_configuration_of_data_trains(here, structperc_says):
    own, *_ = blocks("how_to/own_data", "yaml")
    (here / "own.yaml").write_text(own.replace("[word, _, label]", "[word, label]").replace("IOB2", "none"))
    assert ["fit", "-c", "own.yaml"] in commands("how_to/own_data")
    structperc_says("fit", "-c", "own.yaml", *SHORT)


def test_pictures():
    shown = {name for page in PAGES.values() for name in re.findall(r"!\[[^\]]*\]\((?:[^)]*/)?([^)/]+)\)", page)}
    assert shown == {path.name for path in [*DOCS.glob("*.png"), *DOCS.glob("images/*.*")]}
