"""Every configuration in configs/, also each row of a study, is one that the program accepts and can build."""

import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from structperc.data.text_files import expand_path
from structperc.data.yaml_file import read_yaml
from structperc.errors import InputError
from structperc.experiments.experiment import dry_run
from structperc.experiments.study_file import read_study
from structperc.packaged_configs import ROW, name_of, packaged_path, split_row
from structperc.taggers.tagger import Tagger
from structperc.training import overlays
from structperc.training.overlays import KEY, ROWS, file_beside, read_configuration
from structperc.training.program import Program

CONFIGS = Path(__file__).parents[1] / "configs"
STUDIES = sorted((CONFIGS / "studies").rglob("*.yaml"))
OVERLAYS = sorted((CONFIGS / "overlays").rglob("*.yaml"))
FILES = sorted(set(CONFIGS.rglob("*.yaml")) - set(STUDIES) - set(OVERLAYS))
COLLECTIONS = [path for path in STUDIES if "studies" in read_yaml(path)]  # of other studies
SINGLE = [path for path in STUDIES if path not in COLLECTIONS]
CORPORA = "${STRUCTPERC_DATA}"
CPU = "--trainer.accelerator=cpu"


def named(path: Path) -> list[str]:
    """The configurations of a file: itself, or its rows."""
    name = str(path.relative_to(CONFIGS.parent))
    return [f"{name}{ROW}{row}" for row in read_yaml(path).get(ROWS, ())] or [name]


NAMES = [one for path in (*FILES, *SINGLE) for one in named(path)]

pytestmark = pytest.mark.usefixtures("parts_made_once", "files_read_once")
FIRST = {Path(name).parent: name for name in reversed(NAMES)}.values()  # of each folder; all are built as long tests
each_config = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FIRST else pytest.mark.long) for name in NAMES]
)
each_study = pytest.mark.parametrize("path", SINGLE, ids=[path.stem for path in SINGLE])


@pytest.fixture(scope="module")
def files_read_once() -> Iterator[None]:
    """Many configurations lie on the same overlays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlays, "read_node", cache(overlays.read_node))
        yield


def test_configurations():
    assert "configs/quickstart.yaml" in NAMES
    assert "smoke" in [path.stem for path in STUDIES]
    assert read_yaml(CONFIGS / "quickstart.yaml").keys() == {"seed_everything", "trainer", "data", "model"}


def test_leading_comments():
    files = [*FILES, *STUDIES, *OVERLAYS]
    assert [path for path in files if not path.read_text(encoding="utf-8").startswith("# ")] == []


def texts(folder: Path) -> str:
    ends = (".md", ".py", ".sh", ".ipynb", ".yaml")
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*")) if path.suffix in ends)


def test_each_file_is_named_by_a_page_a_study_or_a_test():
    root = CONFIGS.parent
    named_in = (root / "README.md").read_text(encoding="utf-8") + "".join(
        texts(root / folder) for folder in ("docs", "configs", "benchmarks", "tests", "notebooks")
    )
    names = [path.relative_to(CONFIGS).with_suffix("").as_posix() for path in (*FILES, *STUDIES)]
    assert [name for name in names if not re.search(rf"{name}(?![\w/])", named_in)] == []


def test_each_overlay_is_part_of_a_configuration():
    read = cache(read_yaml)

    @cache
    def below(name: str) -> set[str]:
        file, row = split_row(name)
        top = read(file)
        given = top.get(KEY, []) if row is None else [*top.get("base", []), *top[ROWS][row].get("configs", [])]
        files = [file_beside(file, one) for one in given]
        return {os.path.relpath(one, CONFIGS.parent) for one in files}.union(*map(below, files))

    loggers = set(named(CONFIGS / "overlays" / "loggers.yaml"))  # which are named on the command line
    known = {one for path in OVERLAYS for one in named(path)} - loggers
    assert known - set().union(*(below(str(CONFIGS.parent / one)) for one in NAMES)) == set()


def reranks(model: dict) -> bool:
    return "jackknife" in model or "jackknife" in model.get("init_args", {})


@pytest.fixture
def check(monkeypatch, request, tmp_path):
    """Builds a configuration; without corpora one that names them is only read: gazetteers are read at once."""
    monkeypatch.chdir(CONFIGS.parent)
    (tmp_path / "clusters.tsv").write_text("0\tthe\n1\tRome\n", encoding="utf-8")
    monkeypatch.setenv("STRUCTPERC_CLUSTERS_OF_VECTORS", str(tmp_path / "clusters.tsv"))

    def check(name):
        given = read_configuration(name)
        possible = "STRUCTPERC_DATA" in os.environ or CORPORA not in json.dumps(given)
        with pytest.MonkeyPatch.context() as patch:
            if not possible:
                patch.setattr(Program, "build", lambda self, folder: None)
            command = "rerank" if reranks(given["model"]) else "fit"
            done = dry_run([f"--config={name}", CPU], command)
        assert done.root == Path("runs", name_of(name))
        assert done.config["data"]["class_path"]
        if not possible:
            request.getfixturevalue("corpora")  # skips, with the reason
        if isinstance(done.model, Tagger):
            assert done.model.search.k >= done.model.criterion.min_candidates, name
        for file in getattr(done.datamodule, "files", {}).values():
            assert (expand_path(done.datamodule.path) / file).is_file(), name

    return check


@each_config
def test_is_accepted_and_built(name, check):
    check(name)


def settings(value: Any, owner: str = "") -> Iterator[tuple[str, ...]]:
    """All options of a configuration by their owners, with texts as they are and with the kinds of other values."""
    if isinstance(value, dict):
        owner = value.get("class_path", owner)
        for key, one in value.items():
            yield owner, key
            yield from settings(one, owner if key == "init_args" else f"{owner}.{key}")
    elif isinstance(value, list):
        for one in value:
            yield from settings(one, owner)
    elif isinstance(value, int | float):
        yield owner, type(value).__name__, str(value > 0)
    else:
        yield owner, str(value)


@cache
def covering() -> list[str]:
    """Configurations that have, with `FIRST`, every setting of every one: a mistake is in one of them."""
    own = {name: set(settings(read_configuration(CONFIGS.parent / name))) for name in NAMES}
    left, chosen = set().union(*own.values()) - set().union(*(own[name] for name in FIRST)), []
    while left:
        chosen.append(max(NAMES, key=lambda name: len(own[name] & left)))
        left -= own[chosen[-1]]
    return chosen


@pytest.mark.slow
@pytest.mark.parametrize("folder", sorted({Path(name).parent.name for name in NAMES}))
def test_every_setting_is_accepted_and_built(folder, check):
    for name in covering():
        if Path(name).parent.name == folder:
            check(name)


@each_study
def test_the_rows_of_studies_are_accepted(path, monkeypatch):
    """Rows with other features than the configurations that they name are built, too: templates must fit."""
    monkeypatch.chdir(CONFIGS.parent)
    possible = "STRUCTPERC_DATA" in os.environ and path.stem.startswith("best")
    for row in read_study(str(path)).rows:
        own = read_yaml(path)[ROWS][row.learner].get("with", {})
        with pytest.MonkeyPatch.context() as patch:
            if not (possible and "features" in own.get("model", {})):
                patch.setattr(Program, "build", lambda self, folder: None)
            config = dry_run([*row.arguments(row.seeds[0]), CPU], row.command).config
        assert config["seed_everything"] == config["data"]["init_args"]["seed"] == row.seeds[0]


def test_studies_of_studies_name_others():
    listed = [Path(packaged_path(name)) for path in COLLECTIONS for name in read_yaml(path)["studies"].values()]
    assert listed
    assert set(listed) <= set(SINGLE)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("structperc.criteria.PerceptronLoss", "structperc.criteria.Percepton"),
        ("unit: document", "units: document"),
        ("max_epochs: 10", "max_epochs: ten"),
    ],
)
def test_mistakes_are_not_accepted(tmp_path, right, wrong):
    text = (CONFIGS / "quickstart.yaml").read_text(encoding="utf-8")
    assert right in text
    bad = tmp_path / "bad.yaml"
    bad.write_text(text.replace(right, wrong), encoding="utf-8")
    with pytest.raises(InputError):
        dry_run([f"--config={bad}", CPU])
