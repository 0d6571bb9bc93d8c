"""What a user sees of a training: one line that changes, and what was best when it is over."""

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest

from structperc import progress
from structperc.reports import training_progress as epoch_bar
from structperc.reports.training_progress import RUNNING, EpochBar, duration, format_metric, score_name
from structperc.training.report import results_table
from tests.checkpoints import logged
from tests.terminal import terminal

EPOCHS = 3


@pytest.fixture(scope="module")
def fit(make_runs):
    """Runs fit, with bars as they are by default; -> standard output and the folder of the run."""

    def fit(*options):
        small = make_runs("watched")
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
            patch.setattr(progress, "DELAY", 0)
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


def test_bar(watched):
    written, _, run = watched
    lines = re.split(r"\r|\n|\x1b\[A", written)
    assert max(map(len, lines)) <= 80
    last = [line for line in lines if line.startswith(f"epoch {EPOCHS}/{EPOCHS}")][-1]
    found = logged(run, "dev/score")
    assert f"dev F1 {100 * found[-1]:.2f}, error " in last
    assert max(found) <= 1
    assert [f"epoch {epoch}/{EPOCHS}" in written for epoch in range(1, EPOCHS + 1)] == [True] * EPOCHS
    assert "scoring dev" in written


def test_the_best_epoch_is_named(watched):
    _, printed, run = watched
    found = logged(run, "dev/score")
    best = found.index(max(found)) + 1
    assert f"best epoch: {best} of {EPOCHS} (dev F1 {100 * max(found):.2f})\n" in printed
    assert json.loads((run / "results.json").read_text())["best_epoch"] == best


def test_width_of_the_output(watched):
    _, printed, run = watched
    lines = printed.splitlines()
    assert max(len(line) for line in lines if str(run) not in line) <= 80
    table = lines.index("split  score  precision  recall  token accuracy  sentence accuracy")
    results = json.loads((run / "results.json").read_text())
    for line, split in zip(lines[table + 1 :], ("dev", "test"), strict=False):
        assert line.split() == [split, *(f"{100 * value:.2f}" for value in results[split].values())]


def test_bars_in_files(fit, caplog):
    with redirect_stderr(io.StringIO()) as written:
        fit("--trainer.enable_progress_bar=true", "--trainer.max_epochs=1")
    for text in ("\r", "epoch 1/1", "scoring dev"):
        assert text in written.getvalue()
    assert "epoch 1 of 1" not in caplog.text


def test_no_bar_at_all_but_lines(fit, caplog):
    with terminal(80) as written:
        fit("--trainer.enable_progress_bar=false", "--trainer.max_epochs=1")
    assert written.text == ""
    assert "epoch 1 of 1: dev F1 " in caplog.text


def test_files_get_a_line_for_each_epoch(fit, caplog):
    with redirect_stderr(io.StringIO()) as written:
        _, run = fit()
    assert "\r" not in written.getvalue()
    lines = [line for line in caplog.messages if line.startswith("epoch ")]
    assert len(lines) == EPOCHS
    for number, (line, score) in enumerate(zip(lines, logged(run, "dev/score"), strict=True), 1):
        assert line.startswith(f"epoch {number} of {EPOCHS}: dev F1 {100 * score:.2f}, error ")
        assert re.search(r", \d+ updates in [\d.]+ s, \d+ s (left|in all)$", line)


def test_bar_without_earlier_scores(fit, caplog):
    fit("--trainer.check_val_every_n_epoch=2")
    lines = [line for line in caplog.messages if line.startswith("epoch ")]
    assert ["dev F1" in line for line in lines] == [False, True, False]


def test_lines_within_long_epochs(fit, caplog, monkeypatch):
    monkeypatch.setattr(epoch_bar, "LOG_INTERVAL", 0)
    fit("--trainer.max_epochs=1", "--data.batch_size=5")
    lines = [line for line in caplog.messages if line.startswith(("epoch ", "scoring "))]
    assert [line.partition(":")[0] for line in lines[:3]] == [f"epoch 1 of 1, {part} %" for part in (25, 50, 75)]
    assert "scoring dev: 100 %" in lines
    assert all(line.endswith(" left") for line in lines[:3])


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_narrow_terminals(columns):
    progress.show_bars(None)
    made = EpochBar()
    with terminal(columns) as written, progress.bar(total=10, delay=0, bar_format=RUNNING, show=True) as made._epochs:
        made._epochs.set_description_str("epoch 12/20", refresh=False)
        made._scores, made._speed = ["dev F1 48.45", "error 1.88", "objective 33,994"], 1234.0
        made._epochs.set_postfix_str(made._postfix())
    line = re.split(r"\r|\n", written.text)[-2 if written.text.endswith("\r") else -1]
    fields = re.findall(r"dev F1|error|objective|sequences/s", written.text)
    assert (
        fields[: len(set(fields))]
        == ["dev F1", "error", "objective", "sequences/s"][: {40: 0, 60: 1, 80: 2, 120: 4}[columns]]
    )
    assert all(len(bar) >= 10 for bar in re.findall(r"\|(.*)\|", written.text))
    assert len(line) <= columns


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (12, "12 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")]
)
def test_times_as_people_read_them(seconds, text):
    assert duration(seconds) == text


def test_name_of_the_score():
    tagger = SimpleNamespace(labels=SimpleNamespace(scheme="IOB2"), beta=0.5)
    assert score_name(tagger) == "F0.5"
    tagger.labels.scheme = "none"
    assert format_metric("dev/score", 0.9, score_name(tagger)) == "dev accuracy 90.00"


def test_other_bar(fit):
    with terminal(80) as written:
        fit("--trainer.callbacks=TQDMProgressBar")
    assert "epoch " not in written.text


def test_log_lines():
    assert format_metric("dev/score", 0.82853) == "dev score 82.85"
    assert format_metric("dev/token_accuracy", 1.0) == "dev token accuracy 100.00"
    assert format_metric("train/error", 0.01881) == "error 1.88"
    assert format_metric("train/objective", 33994.2) == "objective 33,994"
    assert format_metric("train/objective", -0.123456) == "objective -0.1235"
    assert format_metric("train/objective", float("nan")) == "objective nan"


def test_table_without_segments():
    assert results_table({"dev": {"score": 0.5, "token_accuracy": 0.5}}).splitlines() == [
        "split  score  token accuracy",
        "dev    50.00           50.00",
    ]
