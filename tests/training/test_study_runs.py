"""Studies that train: the smallest one that ships, and one that is killed."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from structperc.cli import main
from structperc.training import trial

CONFIGS = Path(__file__).parents[2] / "configs"
MEASURED = ("seconds", "tokens_per_second", "peak_memory_mb")  # what no two runs have alike


@pytest.fixture
def in_one_process(tmp_path, monkeypatch):
    """Trainings run here, which saves the start of a process each; one is in a folder with the configurations."""
    monkeypatch.chdir(tmp_path)
    Path("configs").symlink_to(CONFIGS)
    monkeypatch.setattr(trial, "fit", lambda command, folder: str(main([*command, *trial._resumed(folder)])))


def table(path):
    """A CSV file without what is measured; folders by their last four parts."""
    with open(path, newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        row["run"] = Path(row.get("run", "")).parts[-3:]
    return [{k: v for k, v in row.items() if k.removesuffix("_sd") not in MEASURED} for row in rows]


def test_the_smallest_study_that_ships(in_one_process, capsys):
    assert main(["study", "configs/studies/smoke.yaml"]) == 0
    root = Path("runs/studies/smoke")
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
    assert set(json.loads(results.read_text())["seconds_by_part"]) == {"folds", "first model", "second model"}


LONG = """
seeds: [1]
options: [--data.train=8, --data.dev=4, --data.test=4, --trainer.accelerator=cpu]
rows:
  short: {configs: [configs/quickstart.yaml], options: [--trainer.max_epochs=1]}
  long: {configs: [configs/embedded/margin.yaml], options: [--trainer.max_epochs=100]}
  last: {configs: [configs/quickstart.yaml], options: [--trainer.max_epochs=2]}
"""


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_killed_study_goes_on_to_the_table_of_an_unbroken_one(in_one_process, capsys):
    Path("study.yaml").write_text(LONG)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "structperc", "study", "study.yaml", "--root", "broken"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    checkpoint = Path("broken/long/seed=1/1/checkpoints/last.ckpt")
    try:
        deadline = time.monotonic() + 240
        while not checkpoint.exists() and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.1)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert children
    while any(map(alive, children)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(alive, children))
    assert not list(Path("broken").glob("long/**/results.json"))

    assert main(["study", "study.yaml", "--root", "broken"]) == 0
    text = capsys.readouterr().out
    assert [line.endswith("(kept)") for line in text.splitlines() if line.startswith("[")] == [True, False, False]
    assert [path.name for path in Path("broken/long/seed=1").iterdir() if path.is_dir()] == ["1"]  # it went on
    assert len(list(Path("broken/long/seed=1/1/logs").iterdir())) == 2
    assert main(["study", "study.yaml", "--root", "whole"]) == 0
    for name in ("study.csv", "runs.csv"):
        assert table(f"broken/{name}") == table(f"whole/{name}")
