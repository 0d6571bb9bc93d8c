"""Every experiment in configs/ is one that the program accepts and can build."""

import json
import os
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
from structperc.taggers.tagger import Tagger
from structperc.training import overlays
from structperc.training.overlays import KEY, read_configuration
from structperc.training.program import Program

CONFIGS = Path(__file__).parents[1] / "configs"
STUDIES = sorted((CONFIGS / "studies").rglob("*.yaml"))
OVERLAYS = sorted((CONFIGS / "overlays").rglob("*.yaml"))
FILES = sorted(set(CONFIGS.rglob("*.yaml")) - set(STUDIES) - set(OVERLAYS))
NAMES = [str(path.relative_to(CONFIGS).with_suffix("")) for path in FILES]
CORPORA = "${STRUCTPERC_DATA}"
CPU = "--trainer.accelerator=cpu"

pytestmark = pytest.mark.usefixtures("parts_made_once", "files_read_once")
FIRST = {path.parent: path for path in reversed(FILES)}.values()  # of each folder; all are built as long tests
each_config = pytest.mark.parametrize(
    "path", [pytest.param(path, marks=() if path in FIRST else pytest.mark.long) for path in FILES], ids=NAMES
)
COLLECTIONS = [path for path in STUDIES if "studies" in read_yaml(path)]  # of other studies
SINGLE = [path for path in STUDIES if path not in COLLECTIONS]
each_study = pytest.mark.parametrize("path", SINGLE, ids=[path.stem for path in SINGLE])


@pytest.fixture(scope="module")
def files_read_once() -> Iterator[None]:
    """Many configurations lie on the same overlays."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(overlays, "read_node", cache(overlays.read_node))
        yield


def test_configurations():
    assert "quickstart" in NAMES
    assert "smoke" in [path.stem for path in STUDIES]
    assert read_yaml(CONFIGS / "quickstart.yaml").keys() == {"seed_everything", "trainer", "data", "model"}


def test_leading_comments():
    files = [*FILES, *STUDIES, *OVERLAYS]
    assert [path for path in files if not path.read_text(encoding="utf-8").startswith("# ")] == []


def test_each_overlay_is_part_of_an_experiment():
    @cache
    def below(path: Path) -> set[Path]:
        named = {(path.parent / one).resolve() for one in read_yaml(path).get(KEY, [])}
        return named.union(*map(below, named))

    loggers = set((CONFIGS / "overlays" / "loggers").iterdir())  # which are named on the command line
    assert set(OVERLAYS) - loggers <= set().union(*map(below, FILES))


def reranks(model: dict) -> bool:
    return "jackknife" in model or "jackknife" in model.get("init_args", {})


@pytest.fixture
def check(monkeypatch, request, tmp_path):
    """Builds a configuration; without corpora one that names them is only read: gazetteers are read at once."""
    monkeypatch.chdir(CONFIGS.parent)
    (tmp_path / "clusters.tsv").write_text("0\tthe\n1\tRome\n", encoding="utf-8")
    monkeypatch.setenv("STRUCTPERC_CLUSTERS_OF_VECTORS", str(tmp_path / "clusters.tsv"))

    def check(path):
        given = read_configuration(path)
        possible = "STRUCTPERC_DATA" in os.environ or CORPORA not in json.dumps(given)
        with pytest.MonkeyPatch.context() as patch:
            if not possible:
                patch.setattr(Program, "build", lambda self, folder: None)
            command = "rerank" if reranks(given["model"]) else "fit"
            done = dry_run([f"--config={path.relative_to(CONFIGS.parent)}", CPU], command)
        assert done.root == Path("runs", path.relative_to(CONFIGS).with_suffix(""))
        assert done.config["data"]["class_path"]
        if not possible:
            request.getfixturevalue("corpora")  # skips, with the reason
        if isinstance(done.model, Tagger):
            assert done.model.search.k >= done.model.criterion.min_candidates, path
        for file in getattr(done.datamodule, "files", {}).values():
            assert (expand_path(done.datamodule.path) / file).is_file(), path

    return check


@each_config
def test_is_accepted_and_built(path, check):
    check(path)


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
def covering() -> list[Path]:
    """Files that have, with the first ones of all folders, every setting of every file: a mistake is in one of them."""
    own = {path: set(settings(read_configuration(path))) for path in FILES}
    left, chosen = set().union(*own.values()) - set().union(*(own[path] for path in FIRST)), []
    while left:
        chosen.append(max(FILES, key=lambda path: len(own[path] & left)))
        left -= own[chosen[-1]]
    return chosen


@pytest.mark.slow
@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=lambda folder: folder.name)
def test_every_setting_is_accepted_and_built(folder, check):
    for path in covering():
        if path.parent == folder:
            check(path)


@pytest.fixture(scope="module")
def accepted() -> set[tuple[str, ...]]:
    """Files and options of rows that were accepted; studies have some in common."""
    return set()


@each_study
def test_the_rows_of_studies_are_accepted(path, monkeypatch, accepted):
    """Those with options of their own, once; the others are experiments, which are built above.

    Rows with other features are built, too: templates and what they read must fit.
    """
    monkeypatch.chdir(CONFIGS.parent)
    possible = "STRUCTPERC_DATA" in os.environ and not path.stem.startswith("pretrained")
    for row in read_study(str(path)).rows:
        assert {Path(file).resolve() for file in row.configs} <= {*FILES, *OVERLAYS}
        known = (*row.configs, *row.options)
        if (row.options or len(row.configs) > 1) and known not in accepted:
            accepted.add(known)
            with pytest.MonkeyPatch.context() as patch:
                if not (possible and "model.features" in str(row.options)):
                    patch.setattr(Program, "build", lambda self, folder: None)
                config = dry_run([*row.arguments(row.seeds[0]), CPU], row.command).config
            assert config["seed_everything"] == config["data"]["init_args"]["seed"] == row.seeds[0]


def test_studies_of_studies_name_others():
    listed = [CONFIGS.parent / file for path in COLLECTIONS for file in read_yaml(path)["studies"].values()]
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
