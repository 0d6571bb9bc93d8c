"""Every experiment in configs/ is one that the program accepts and can build."""

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from structperc.data.text import expand
from structperc.errors import InputError
from structperc.experiments.draft import draft
from structperc.experiments.study_file import read_study
from structperc.taggers.tagger import Tagger
from structperc.training.program import Program, train
from structperc.training.reranking_program import rerank

CONFIGS = Path(__file__).parents[1] / "configs"
STUDIES = sorted((CONFIGS / "studies").glob("*.yaml"))
FILES = sorted(set(CONFIGS.rglob("*.yaml")) - set(STUDIES))
NAMES = [str(path.relative_to(CONFIGS)) for path in FILES]
CORPORA = "${STRUCTPERC_DATA}"

each_config = pytest.mark.parametrize("path", FILES, ids=NAMES)
each_study = pytest.mark.parametrize("path", STUDIES, ids=[path.stem for path in STUDIES])


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Reads a configuration as `fit` does, builds its objects if asked to, and stops there; -> the program."""

    def stopped(path: Path, build: bool) -> Program:
        programs: list[Program] = []
        monkeypatch.setattr(Program, "_run_subcommand", lambda self, command: programs.append(self))
        if not build:
            monkeypatch.setattr(Program, "instantiate_classes", lambda self: None)
        root = f"--trainer.default_root_dir={tmp_path}"
        start = rerank if "jackknife:" in path.read_text(encoding="utf-8") else train
        assert start(["fit", "-c", str(path), root, "--trainer.accelerator=cpu"]) == 0
        return programs[0]

    return stopped


def class_paths(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from ([node["class_path"]] if "class_path" in node else [])
        for part in node.values():
            yield from class_paths(part)
    elif isinstance(node, list):
        for part in node:
            yield from class_paths(part)


def test_there_are_configurations():
    assert "quickstart.yaml" in NAMES
    assert "smoke" in [path.stem for path in STUDIES]


@pytest.mark.parametrize("path", [*FILES, *STUDIES])
def test_opens_with_a_comment_that_says_what_it_is(path):
    assert path.read_text(encoding="utf-8").startswith("# ")


@each_config
def test_classes_exist(path):
    named = list(class_paths(yaml.safe_load(path.read_text(encoding="utf-8"))))
    assert named
    for name in named:
        module, _, attribute = name.rpartition(".")
        assert isinstance(getattr(import_module(module), attribute), type)


@each_config
def test_is_accepted_and_built(path, program, request):
    """Without corpora a configuration that names them is only checked, not built: gazetteers are read at once."""
    possible = "STRUCTPERC_DATA" in os.environ or CORPORA not in path.read_text(encoding="utf-8")
    done = program(path, build=possible)
    assert done.config.fit.data.class_path
    if not possible:
        request.getfixturevalue("corpora")  # skips, with the reason
    if isinstance(done.model, Tagger):
        assert done.model.search.k >= done.model.criterion.rivals_needed
    for file in getattr(done.datamodule, "files", {}).values():
        assert (expand(done.datamodule.path) / file).is_file()


@each_study
def test_the_rows_of_studies_are_accepted(path, monkeypatch):
    """Their options, too. They are not built: the configurations are, above."""
    monkeypatch.chdir(CONFIGS.parent)
    monkeypatch.setattr(Program, "instantiate_classes", lambda self: None)
    for row in read_study(str(path)).rows:
        config = draft(row.arguments(row.seeds[0]), row.command).config.fit
        assert config.seed_everything == config.data.init_args.seed == row.seeds[0]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("structperc.criteria.Perceptron", "structperc.criteria.Percepton"),
        ("batch_size: 4", "batchsize: 4"),
        ("max_epochs: 10", "max_epochs: ten"),
    ],
)
def test_mistakes_are_not_accepted(program, tmp_path, right, wrong):
    text = (CONFIGS / "quickstart.yaml").read_text(encoding="utf-8")
    assert right in text
    bad = tmp_path / "bad.yaml"
    bad.write_text(text.replace(right, wrong), encoding="utf-8")
    with pytest.raises(InputError):
        program(bad, build=False)
