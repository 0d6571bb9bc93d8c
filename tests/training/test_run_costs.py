"""What runs cost, and where results.json says so; what follows the scores of a split."""

import json
import os
import resource
import sys
from pathlib import Path

import pytest
import torch
from seqeval.metrics import classification_report
from torch import nn

from structperc.data import LabelSet
from structperc.data.conll import read_conll
from structperc.errors import InputError
from structperc.metrics.torchmetrics_classes import Evaluation
from structperc.taggers import Tagger
from structperc.training import report as cost
from structperc.training.report import (
    Clock,
    LabelledSplit,
    Stopwatch,
    outcome_lines,
    parameters,
    peak_memory,
    peak_resident,
)


@pytest.fixture
def time(monkeypatch):
    """A clock that shows what it is told to, one reading after the other."""

    def show(*readings):
        following = iter(readings)
        monkeypatch.setattr(cost.time, "perf_counter", lambda: next(following))

    return show


def test_count_of_weights():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2, bias=False))
    model[0].requires_grad_(False)
    assert parameters(model) == 3 * 4 + 4 + 4 * 2


def test_resumed_stopwatch(time):
    time(10.0, 12.0, 100.0, 107.0)
    first = Stopwatch()
    state = first.state_dict()
    assert state == {"seconds": 2.0}
    second = Stopwatch()
    second.load_state_dict(state)
    assert second.seconds == 9.0


def test_invalid_times():
    for wrong in ({}, {"seconds": "1"}, {"seconds": float("nan")}, {"seconds": torch.ones(1)}):
        with pytest.raises(InputError, match=r"callbacks\.Stopwatch"):
            Stopwatch().load_state_dict(wrong)


def test_clock(time):
    time(1.0, 3.0, 10.0, 10.5)
    clock = Clock(torch.device("cpu"))
    for _ in range(2):
        with clock:
            pass
    assert clock.seconds == 2.5
    assert LabelledSplit(None, ["O"] * 5, clock.seconds).tokens_per_second == 2
    assert LabelledSplit(None, [], 0.0).tokens_per_second == 0


def test_peak_memory_of_this_program(monkeypatch, tmp_path):
    """ru_maxrss of a child process begins with that of its parent, VmHWM does not."""
    status = tmp_path / "status"
    status.write_text("Name:\tpython\nVmPeak:\t  9000 kB\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n")
    monkeypatch.setattr(cost, "STATUS", status)
    assert peak_memory(torch.device("cpu")) == {"peak_memory_mb": 2.0}
    status.unlink()
    unit = 1 if sys.platform == "darwin" else 1024
    assert peak_resident() == resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@pytest.mark.skipif(not Path("/proc/self/statm").is_file(), reason="reads /proc")
def test_peak_memory_is_at_least_the_present():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    assert peak_resident() >= 0.9 * pages * os.sysconf("SC_PAGE_SIZE")
    assert peak_resident() <= 1.1 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.fixture(scope="module")
def results(trained):
    return json.loads((trained.folder / "results.json").read_text())


def test_results_have_the_costs_of_a_run(trained, results):
    assert results["train_sequences"] == 20
    assert results["parameters"] == sum(p.numel() for p in Tagger.load(trained.folder / "model").parameters())
    assert set(results["tokens_per_second"]) == {"dev", "test"}
    assert min(results["tokens_per_second"].values()) > 0
    assert results["peak_memory_mb"] > 50  # the libraries alone have more
    assert "peak_gpu_memory_mb" not in results


@pytest.mark.parametrize("split", ["dev", "test"])
def test_results_have_scores_by_type(trained, results, split):
    path = trained.folder / "predictions" / f"{split}.conll"
    rows = read_conll(path, {"word": 0, "gold": -2, "label": -1})
    report = classification_report(list(rows["gold"]), list(rows["label"]), output_dict=True, zero_division=0)
    found = results["types"][split]
    assert set(found) == {name for name in report if not name.endswith("avg")}
    assert len(found) == 4
    for name, scores in found.items():
        own = report[name]
        wanted = [own["f1-score"], own["precision"], own["recall"], own["support"]]
        assert [scores[key] for key in ("score", "precision", "recall", "gold")] == pytest.approx(wanted)
    assert all(isinstance(value, float) for value in results[split].values())  # what tables go through


def test_types_need_segments(runs):
    assert runs("fit", "--trainer.max_epochs=1", "--data.scheme=none") == 0
    assert json.loads((runs.root / "1" / "results.json").read_text())["types"] == {"dev": {}, "test": {}}


IOB2 = LabelSet(("O", "B-X", "I-X"), "IOB2")


def lines(predicted, gold, labels=IOB2):
    evaluation = Evaluation(labels)
    evaluation.update(torch.tensor([predicted]), torch.tensor([gold]), torch.tensor([len(gold)]))
    return list(outcome_lines({"dev": LabelledSplit(evaluation, [], 1.0)}, {}))


def test_advice_without_predicted_segments():
    (advice,) = lines([0, 0, 0], [1, 2, 1])[1:]
    assert advice.startswith("dev: nothing is predicted, and gold has 2 segments")
    assert "trainer.max_epochs" in advice
    assert "model.optimizer.init_args.lr" in advice
    assert "gold has 1 segment:" in lines([0, 0], [0, 1])[1]


def test_no_advice():
    assert len(lines([0, 1, 0], [1, 2, 1])) == 1
    assert len(lines([0, 0], [0, 0])) == 1
    assert len(lines([0, 0], [1, 2], LabelSet(("a", "b", "c"), "none"))) == 1
