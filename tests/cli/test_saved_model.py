"""Folders of runs, and folders with one run below them, stand for the model or the predictions of that run."""

import shutil
from pathlib import Path

import pytest

from structperc.cli import COMMANDS
from structperc.cli.arguments import model_folder, prediction_folder
from structperc.errors import InputError

PREDICTED = "Anna B-PER B-PER\nsleeps O O\n\nRome B-LOC O\n\n"


@pytest.fixture
def runs(tmp_path, monkeypatch, model):
    """Makes runs with a model and predictions below the folder that one is in."""
    monkeypatch.chdir(tmp_path)

    def runs(*folders):
        for folder in folders:
            shutil.copytree(model, tmp_path / folder / "model")
            (tmp_path / folder / "predictions").mkdir()
            (tmp_path / folder / "predictions" / "test.conll").write_text(PREDICTED)

    return runs


@pytest.mark.parametrize(
    "given", ["runs/crf/2", "runs/crf/2/", "runs/crf", "runs", ".", "runs/crf/2/model", "runs/crf/2/model/model.json"]
)
def test_the_only_run_is_taken(given, runs, monkeypatch):
    runs("runs/crf/2")
    assert model_folder(given).removeprefix("./") == "runs/crf/2/model"


@pytest.mark.parametrize("given", ["runs/study/CRF", "runs/study/CRF/seed=1", "runs/study/CRF/seed=1/1"])
def test_a_row_of_a_study(given, runs):
    runs("runs/study/CRF/seed=1/1", "runs/study/MCE/seed=1/1")
    assert model_folder(given) == "runs/study/CRF/seed=1/1/model"
    assert prediction_folder(given) == "runs/study/CRF/seed=1/1"


def test_several_runs_are_named_in_their_order(runs):
    runs("runs/crf/10", "runs/crf/9", "runs/mce/1")
    for find in (model_folder, prediction_folder):
        with pytest.raises(InputError, match=r"runs/crf: found 2 runs .*: runs/crf/9.*, runs/crf/10"):
            find("runs/crf")
        with pytest.raises(InputError, match=r"runs: found 3 runs .*runs/mce/1"):
            find("runs")


def test_no_more_than_ten_are_named(runs):
    runs(*(f"runs/crf/{number}" for number in range(1, 13)))
    with pytest.raises(InputError, match=r"12 runs .*runs/crf/10 "):
        model_folder("runs/crf")


def test_runs_without_a_model_are_passed_over(runs, tmp_path):
    runs("runs/crf/1")
    (tmp_path / "runs/crf/2/checkpoints").mkdir(parents=True)
    assert model_folder("runs/crf") == "runs/crf/1/model"
    with pytest.raises(InputError, match="runs/crf/2: "):
        model_folder("runs/crf/2")


def test_checkpoints_are_no_models(runs, tmp_path):
    runs("runs/crf/1")
    (tmp_path / "runs/crf/1/checkpoints").mkdir()
    (tmp_path / "runs/crf/1/checkpoints/best.ckpt").touch()
    with pytest.raises(InputError, match=r"best.ckpt: .*checkpoint.*runs/crf/1/model"):
        model_folder("runs/crf/1/checkpoints/best.ckpt")


def test_other_paths(tmp_path):
    for place in ("nowhere", str(tmp_path)):
        assert model_folder(place) == prediction_folder(place) == place


def test_tag_names_the_run(runs, tmp_path, run, caplog):
    runs("runs/crf/1")
    (tmp_path / "new.txt").write_text("Anna\nsleeps\n\n")
    tagged = run("tag", "runs/crf", "new.txt", "--input", "columns")
    assert [record.args for record in caplog.records] == [("runs/crf", "runs/crf/1/model")]
    caplog.clear()
    assert run("tag", "runs/crf/1/model", "new.txt", "--input", "columns") == tagged
    assert not caplog.records


def test_compare_a_row(runs, run, fails):
    runs("study/CRF/seed=1/1", "study/MCE/seed=1/1", "study/MCE/seed=2/1")
    table = run("evaluate", "study/CRF", "study/MCE/seed=2/1/model")
    assert "CRF" in table
    assert "study/MCE/seed=1/1, study/MCE/seed=2/1" in fails("evaluate", "study/CRF", "study/MCE")


@pytest.mark.parametrize("name", [one.name for one in COMMANDS if one.arguments.startswith("MODEL")])
def test_ambiguous_folder_of_runs(name, runs, fails):
    runs("runs/crf/1", "runs/crf/2")
    Path("second").touch()
    needed = {"explain": [], "push": ["-o", "small"], "calibrate": ["second", "--temperature"]}.get(name, ["second"])
    assert "runs/crf/1, runs/crf/2" in fails(name, "runs/crf", *needed)
