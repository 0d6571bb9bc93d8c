"""Configurations by name, from any folder, and in a wheel."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from structperc.cli.train import check_configuration
from structperc.errors import InputError
from structperc.experiments.experiment import dry_run
from structperc.experiments.study_file import read_study
from structperc.packaged_configs import name_of, packaged_names, packaged_path, packaged_root, split_arguments
from structperc.training.overlays import read_configuration, to_yaml

ROOT = Path(__file__).parents[1]
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_file_has_a_name_and_resolves():
    assert [Path(packaged_path(f"pkg:{name}")).name for name in packaged_names()] == [
        f"{name.rpartition('/')[2]}.yaml" for name in packaged_names()
    ]
    assert len(packaged_names()) == len(CONFIGS)


def test_names_with_and_without_their_ending():
    assert (
        packaged_path("pkg:best/entities.yaml")
        == packaged_path("pkg:best/entities")
        == str(packaged_root() / "best/entities.yaml")
    )
    assert packaged_path("pkg:studies/smoke#a row") == str(packaged_root() / "studies/smoke.yaml#a row")
    assert packaged_path("own.yaml") == "own.yaml"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pkg:quikstart", "did you mean pkg:quickstart?"),
        ("pkg:../pyproject.toml", "unknown packaged configuration"),
        ("pkg:kazama2007/margin", "did you mean pkg:studies/kazama2007#margin, "),
    ],
)
def test_unknown_name(name, words, fails):
    assert words in fails("fit", "-c", name)


def test_names_after_the_option():
    quickstart = packaged_path("pkg:quickstart")
    given = [
        "fit",
        "-c",
        "pkg:quickstart",
        "--config=a.yaml",
        "--config",
        "b.yaml",
        "-cc.yaml",
        "--row",
        "a row",
        "--x=pkg:x",
        "pkg:y",
        "-c",
    ]
    assert split_arguments(given) == (
        [quickstart, "a.yaml", "b.yaml", "c.yaml#a row"],
        ["fit", "--x=pkg:x", "pkg:y", "-c"],
    )


def test_a_run_has_the_name_of_its_configuration():
    assert name_of(packaged_path("pkg:best/entities")) == "best/entities"
    assert name_of(packaged_path("pkg:studies/smoke#a row")) == "studies/smoke/a row"
    assert name_of("plans/own.yaml#a/b") == "own/a%2Fb"


def test_own_files_may_lie_over_packaged_ones(elsewhere):
    own = elsewhere / "own.yaml"
    own.write_text("overlays: ['pkg:quickstart', 'pkg:overlays/methods#pa']\ntrainer: {max_epochs: 3}\n")
    found = read_configuration(own)
    assert found["trainer"]["max_epochs"] == 3
    assert found["model"]["optimizer"]["class_path"] == "structperc.optim.PassiveAggressive"
    own.write_text("overlays: ['pkg:overlays/methods#pq']\n")
    with pytest.raises(InputError, match=r"methods.yaml: there is no row 'pq'; .* pa, "):
        read_configuration(own)


def test_a_packaged_study_finds_its_files(elsewhere):
    for row in read_study(packaged_path("pkg:studies/smoke")).rows:
        assert all(read_configuration(one)["trainer"]["max_epochs"] == 2 for one in row.configs)


def test_an_own_study_may_name_packaged_ones(elsewhere):
    own = elsewhere / "own.yaml"
    own.write_text("seeds: [1]\nrows: {one: {configs: ['pkg:quickstart']}}\n")
    (row,) = read_study(str(own)).rows
    assert read_configuration(row.configs[0]) == read_configuration("pkg:quickstart")


def test_rows_after_the_option(run):
    shown = run("fit", "-c", "pkg:studies/embedded#crf", "--print_config")
    assert shown == run("fit", "-c", "pkg:studies/embedded", "--row", "crf", "--print_config")
    assert "class_path: structperc.criteria.CRFLoss" in shown
    shown = run("fit", "-c=pkg:studies/embedded", "--row=crf", "-c", "pkg:overlays/methods#pa", "--print_config")
    assert "class_path: structperc.criteria.HingeLoss" in shown


def test_rows_of_a_sweep(elsewhere, run):
    small = ["--data.train=20", "--data.dev=8", "--data.test=8", "--trainer.max_epochs=1", "--trainer.accelerator=cpu"]
    run("study", "-c", "pkg:studies/embedded", "--row", "margin", "--grid", "model.search.k=2", *small)
    assert (elsewhere / "runs/studies/embedded/margin/sweep-k/model.search.k=2/1/results.json").is_file()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["-c", "pkg:studies/smoke"], "studies/smoke.yaml: this file has rows; give one as "),
        (["-c", "pkg:studies/smoke#margn"], "studies/smoke.yaml: there is no row 'margn'; give one as "),
        (["-c", "pkg:studies/embedded#voten"], "there is no row 'voten'; did you mean voted?; give one as "),
        (["-c", "pkg:quickstart", "--row", "crf"], "quickstart.yaml: this file has no rows; leave out #crf"),
        (["--row", "crf"], "--row crf: give the study before it"),
    ],
)
def test_mistakes_in_rows(fails, given, words):
    message = fails("fit", *given)
    assert words in message
    assert ("averaged perceptron, margin perceptron, re-ranking 1" in message) == ("smoke" in words)


@pytest.mark.parametrize(("recipe", "scheme"), [("entities_words", "BILOU"), ("parts_of_speech", "none")])
def test_recipes_learn_from_own_data(elsewhere, monkeypatch, recipe, scheme):
    monkeypatch.delenv("STRUCTPERC_DATA", raising=False)
    (elsewhere / "train.txt").write_text("Anna B-PER\nleft O\n\n" * 4)
    labels = scheme if scheme == "none" else "IOB2"
    data = {"path": ".", "files": {"train": "train.txt"}, "columns": ["word", "label"], "labels": labels}
    own = {"data": {"class_path": "structperc.data.Conll", "init_args": data}}
    (elsewhere / "own.yaml").write_text(json.dumps(own))
    for files in (["own.yaml", f"pkg:best/{recipe}"], [f"pkg:best/{recipe}", "own.yaml"]):
        given = [f"--config={file}" for file in files]
        check_configuration(given, ("train",))
        made = dry_run([*given, "--trainer.accelerator=cpu"]).config["data"]["init_args"]
        assert {**made, **data, "scheme": scheme} == made


def test_a_run_from_a_name(run, elsewhere):
    small = ["--data.train=20", "--data.dev=8", "--data.test=8", "--trainer.max_epochs=1", "--trainer.accelerator=cpu"]
    run("fit", "-c", "pkg:quickstart", *small)
    folder = elsewhere / "runs" / "quickstart" / "1"
    assert (folder / "results.json").is_file()
    assert "structperc fit -c pkg:quickstart" in (folder / "model" / "README.md").read_text()


def test_the_list_and_one_of_them(run, fails):
    assert "pkg:best/entities " in run("configs", "best")
    assert "pkg:quickstart" not in run("configs", "best")
    found = [line.split() for line in run("configs", "FROZEN", "entities").splitlines()[1:]]
    assert "pkg:studies/pretrained_entities#frozen" in [name for name, *_ in found]
    assert all({"STRUCTPERC_DATA", "STRUCTPERC_ENCODER"} <= {*variables} for _, *variables in found)
    names = [line.split()[0] for line in run("configs", "entities", "segments").splitlines()[1:]]
    assert names == sorted(names, key=lambda name: not name.startswith("pkg:best/"))  # recommended ones first
    assert run("configs", "pkg:quickstart") == (ROOT / "configs" / "quickstart.yaml").read_text()
    assert run("configs", "pkg:overlays/methods#crf") == to_yaml(read_configuration("pkg:overlays/methods#crf"))
    assert "bets" in fails("configs", "bets")


@pytest.mark.slow
def test_files_of_the_wheel(tmp_path):
    """Built from a copy, without network; then the package is looked at in a new process that has no repository."""
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    for name in ("structperc", "configs", "pyproject.toml", "setup.py", "README.md", "LICENSE"):
        (source / name).symlink_to(ROOT / name)
    build = [sys.executable, "-m", "pip", "wheel", str(source), "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run([*build, "-q", "-w", str(tmp_path)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = set(file.namelist())
        file.extractall(out)
    assert {f"structperc/configs/{path.relative_to(ROOT / 'configs').as_posix()}" for path in CONFIGS} <= names
    sets = (ROOT / "structperc" / "features" / "sets").glob("*.yaml")
    assert {f"structperc/features/sets/{path.name}" for path in sets} <= names
    assert {"structperc/py.typed", "structperc/reports/templates/page.html"} <= names
    assert not [name for name in names if name.startswith(("configs/", "tests/"))]
    look = "from structperc.packaged_configs import *; print(packaged_path('pkg:best/entities'), len(packaged_names()))"
    done = subprocess.run([sys.executable, "-c", look], cwd=out, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(out / "structperc" / "configs" / "best" / "entities.yaml"), str(len(CONFIGS))]
