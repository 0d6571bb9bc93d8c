"""A study that trains: the smallest one that ships."""

import csv
import json
from pathlib import Path

import pytest
import yaml

from structperc.cli.main import main
from structperc.data.yaml_file import read_yaml
from structperc.experiments import experiment
from structperc.metrics import segment_f1_score
from structperc.training.predictions import read_predictions

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
    study["with"]["data"] = {"train": 6, "dev": 4, "test": 2}
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


def test_further_files_and_other_systems(in_one_process, capsys):
    small = {"data": {"train": 20, "dev": 8, "test": 8}, "trainer": {"max_epochs": 2, "accelerator": "cpu"}}
    study = {"seeds": [1], "with": small, "rows": {"ours": {"configs": ["pkg:quickstart"]}}}
    text = [("Anna", "B-PER"), ("left", "O"), ("Oslo", "B-LOC"), (".", "O")]
    Path("news.conll").write_text(
        "-DOCSTART- X Y O\n\n" + "".join(f"{word} X Y {label}\n" for word, label in text) + "\nHe X Y O\nsaw X Y O\n"
    )
    study["evaluate"] = {"news": "news.conll"}
    assert _study(study) == 0

    # another system: no segment in the news, and our labels of the development data
    run = Path("runs/study/ours/seed=1/1")
    Path("theirs.conll").write_text("".join(f"{word} O\n" for word, _ in text) + "\nHe O\nsaw O\n")
    files = {"dev": str(run / "predictions" / "dev.conll"), "news": "theirs.conll"}
    Path("costs.json").write_text(json.dumps({"seconds": 7.5, "tokens_per_second": 100.0, "version": "1.0"}))
    study["rows"] = {"theirs": {"predictions": files, "costs": "costs.json"}, **study["rows"]}
    study["baseline"] = "ours"
    capsys.readouterr()
    assert _study(study) == 0
    assert "(kept)" in capsys.readouterr().out
    with open("runs/study/study.csv", newline="", encoding="utf-8") as lines:
        theirs, ours = csv.DictReader(lines)
    assert (theirs["row"], ours["row"]) == ("theirs", "ours")
    for key in ("score", "precision", "recall", "token_accuracy", "sentence_accuracy", "score/PER"):
        assert float(theirs[key]) == pytest.approx(float(ours[key]))
    assert (float(theirs["difference"]), float(theirs["p_documents"]), float(theirs["p_tokens"])) == (0, 1, 1)
    assert (float(theirs["seconds"]), float(theirs["tokens_per_second"])) == (7.5, 100)
    assert (float(theirs["news/score"]), float(theirs["news/token_accuracy"])) == (0, 4 / 6)
    words, gold, predicted = read_predictions(str(run / "predictions" / "news.conll"))
    assert words == [["Anna", "left", "Oslo", "."], ["He", "saw"]]
    assert float(ours["news/score"]) == pytest.approx(segment_f1_score(gold, predicted))
    assert float(theirs["news/difference"]) == pytest.approx(-float(ours["news/score"]))
    assert "news F1" in Path("runs/study/study.md").read_text()

    Path("theirs.conll").write_text("Anna O\nLEFT O\n")
    assert _study(study) == 2
    assert "theirs: news: theirs.conll: sentence 1 begins 'Anna LEFT', but that of the study" in capsys.readouterr().err
    study["rows"]["theirs"]["predictions"] = {"dev": "theirs.conll"}
    assert _study(study) == 2  # before any training
    assert "theirs.conll: sentence 1 begins" in capsys.readouterr().err


def _study(study):
    Path("study.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    return main(["study", "study.yaml"])
