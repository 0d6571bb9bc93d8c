"""A study that trains: the smallest one that ships."""

import csv
import json
from pathlib import Path

import pytest
import yaml

from structperc.cli.main import main
from structperc.data.yaml_file import read_yaml
from structperc.experiments import experiment

CONFIGS = Path(__file__).parents[2] / "configs"


@pytest.fixture
def in_one_process(tmp_path, monkeypatch):
    """Trainings run here, which saves the start of a process each; one is in a folder with the configurations."""
    monkeypatch.chdir(tmp_path)
    Path("configs").symlink_to(CONFIGS)
    monkeypatch.setattr(
        experiment, "fit", lambda command, folder: str(main([*command, *experiment.resume_options(folder)]))
    )


@pytest.mark.slow
def test_smallest_study(in_one_process, capsys):
    study = read_yaml("configs/studies/smoke.yaml")
    study["options"] += ["--data.train=6", "--data.dev=4", "--data.test=2"]  # in place of its own
    Path("smoke.yaml").write_text(yaml.safe_dump(study))
    assert main(["study", "smoke.yaml"]) == 0
    root = Path("runs/smoke")
    assert f"study: {root}/study.md" in capsys.readouterr().out
    with open(root / "study.csv", newline="", encoding="utf-8") as lines:
        averaged, margin, reranked = csv.DictReader(lines)
    assert float(reranked["seconds"]) > float(reranked["epochs"]) / 100
    for row in (averaged, margin, reranked):
        (results,) = (root / row["row"]).glob("seed=1/1/results.json")
        held = json.loads(results.read_text())
        assert float(row["score"]) == held["dev"]["score"]
        assert float(row["seconds"]) == held["seconds"]
        assert float(row["tokens_per_second"]) == held["tokens_per_second"]["dev"] > 0
        assert float(row["score/LOC"]) == held["types"]["dev"]["LOC"]["score"]
        assert (row["p_tokens"] == "") == (row is averaged)
    # a re-ranker has its first model, of the templates that the margin perceptron has, and non-local weights
    assert float(reranked["parameters"]) > float(margin["parameters"])
    assert set(json.loads(results.read_text())["seconds_by_part"]) == {"folds", "first model", "re-ranker"}
