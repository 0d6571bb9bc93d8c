"""What a user sees of a training: one line that changes, and what was best when it is over."""

import csv
import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout

import pytest
from terminal import terminal

from structperc import progress
from structperc.reports.logged import shown
from structperc.training.report import results_table

EPOCHS = 3


@pytest.fixture(scope="module")
def fit(make_runs):
    """Runs fit, with bars as they are by default; -> standard output and the folder of the run."""

    def fit(*options):
        small = make_runs("watched")
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
            patch.setattr(progress, "SLOW", 0)
            bars = "--trainer.enable_progress_bar=null"
            assert small("fit", f"--trainer.max_epochs={EPOCHS}", bars, *options) == 0
        return out.getvalue(), small.root / "1"

    return fit


@pytest.fixture(scope="module")
def watched(fit):
    """What a terminal of 80 columns shows, standard output, the folder of the run."""
    with terminal(80) as written:
        printed, run = fit()
    return written.text, printed, run


def scores(run):
    with open(run / "logs" / "version_0" / "metrics.csv", newline="") as file:
        return [float(line["dev/score"]) for line in csv.DictReader(file) if line["dev/score"]]


def test_the_bar_has_one_line_with_scores_in_per_cent(watched):
    written, _, run = watched
    lines = re.split(r"\r|\n|\x1b\[A", written)
    assert max(map(len, lines)) <= 80
    last = [line for line in lines if line.startswith(f"epoch {EPOCHS}/{EPOCHS}")][-1]
    found = scores(run)
    assert f"dev score {100 * found[-1]:.2f}, error " in last
    assert max(found) <= 1
    assert [f"epoch {epoch}/{EPOCHS}" in written for epoch in range(1, EPOCHS + 1)] == [True] * EPOCHS
    assert "scoring dev" in written


def test_the_best_epoch_is_named(watched):
    _, printed, run = watched
    found = scores(run)
    best = found.index(max(found)) + 1
    assert f"best epoch: {best} of {EPOCHS} (dev score {100 * max(found):.2f})\n" in printed
    assert json.loads((run / "results.json").read_text())["best_epoch"] == best


def test_what_is_printed_fits_80_columns(watched):
    _, printed, run = watched
    lines = printed.splitlines()
    assert max(len(line) for line in lines if str(run) not in line) <= 80
    table = lines.index("split    score  precision  recall  token accuracy  sentence accuracy")
    results = json.loads((run / "results.json").read_text())
    for line, split in zip(lines[table + 1 :], ("dev", "test"), strict=False):
        assert line.split() == [split, *(f"{100 * value:.2f}" for value in results[split].values())]


@pytest.mark.parametrize("options", [[], ["--trainer.enable_progress_bar=true"]])
def test_files_get_bars_that_are_asked_for(fit, options):
    with redirect_stderr(io.StringIO()) as written:
        fit(*options)
    for text in ("\r", f"epoch {EPOCHS}/{EPOCHS}", "scoring dev"):
        assert (text in written.getvalue()) == bool(options)


def test_no_bars_at_all(fit):
    with terminal(80) as written:
        fit("--trainer.enable_progress_bar=false")
    assert written.text == ""


def test_another_bar_takes_its_place(fit):
    with terminal(80) as written:
        fit("--trainer.callbacks=TQDMProgressBar")
    assert "epoch " not in written.text


def test_what_is_logged_as_people_read_it():
    assert shown("dev/score", 0.82853) == "dev score 82.85"
    assert shown("dev/token_accuracy", 1.0) == "dev token accuracy 100.00"
    assert shown("train/error", 0.01881) == "error 1.88"
    assert shown("train/objective", 33994.2) == "objective 33,994"
    assert shown("train/objective", -0.123456) == "objective -0.1235"
    assert shown("train/objective", float("nan")) == "objective nan"


def test_labels_without_segments_have_a_narrower_table():
    assert results_table({"dev": {"score": 0.5, "token_accuracy": 0.5}}).splitlines() == [
        "split    score  token accuracy",
        "dev      50.00           50.00",
    ]
