"""Training curves: numbers from the logs of a run, and their figure in its folder."""

import csv

from structperc.training.curves import FIGURE, read_curve, write_curves


def log(run, version, lines):
    """A log of (epoch from 0, score or None, objective) per line."""
    folder = run / "logs" / f"version_{version}"
    folder.mkdir(parents=True)
    with open(folder / "metrics.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["dev/score", "epoch", "step", "train/objective"])
        for epoch, score, objective in lines:
            writer.writerow(["" if score is None else score, epoch, epoch, objective])


def epochs(first, last, every=1):
    """Each epoch has a line of its objective; every n-th one a line of its score before it."""
    for epoch in range(first, last):
        if (epoch + 1) % every == 0:
            yield epoch, (epoch + 1) / 100, ""
        yield epoch, None, 1.0


def test_scores_of_a_resumed_run(tmp_path):
    log(tmp_path, 0, epochs(0, 4, 2))
    log(tmp_path, 1, epochs(4, 6))
    log(tmp_path, 2, [])  # it had ended
    assert read_curve(tmp_path, "dev/score") == [(e, e / 100) for e in (2, 4, 5, 6)]


def test_repeated_epochs_count_once(tmp_path):
    """The first log got as far as epoch 7; the run went on from an earlier one, and ended earlier."""
    log(tmp_path, 0, [(epoch, None if score is None else score + 0.5, z) for epoch, score, z in epochs(0, 7)])
    log(tmp_path, 1, epochs(4, 5))
    assert read_curve(tmp_path, "dev/score") == [*((e, e / 100 + 0.5) for e in range(1, 5)), (5, 0.05)]


def test_logs_are_in_the_order_of_their_numbers(tmp_path):
    for version in range(12):
        log(tmp_path, version, [(version, version / 100, ""), (version + 1, 0.9, "")])
    assert read_curve(tmp_path, "dev/score") == [*((e + 1, e / 100) for e in range(12)), (13, 0.9)]


def test_logs_without_objective(tmp_path):
    """A training that was killed in its first epoch, those that went on, and an evaluation."""
    for version, scores in enumerate([{0: 0.01}, {}, {2: 0.8, 5: 0.9}]):
        folder = tmp_path / "logs" / f"version_{2 * version}"
        folder.mkdir(parents=True)
        lines = ["dev/score,epoch", *(f"{score},{epoch}" for epoch, score in scores.items())]
        (folder / "metrics.csv").write_text("\n".join(lines) + "\n")
    log(tmp_path, 1, epochs(1, 4))
    assert read_curve(tmp_path, "dev/score") == [(e, e / 100) for e in range(1, 5)]


def test_runs_without_scores(tmp_path):
    assert read_curve(tmp_path, "dev/score") == []
    assert write_curves(tmp_path, "F1", None) is None
    assert not (tmp_path / FIGURE).exists()
    log(tmp_path, 0, [])
    assert read_curve(tmp_path, "dev/score") == []
    log(tmp_path, 1, [(0, None, 1.0)])
    assert read_curve(tmp_path, "dev/score") == []


def test_values_within_an_epoch_divide_it(tmp_path):
    log(tmp_path, 0, [(0, 0.1, ""), (0, 0.2, ""), (0, None, 1.0), (1, 0.3, "")])
    assert read_curve(tmp_path, "dev/score") == [(0.5, 0.1), (1, 0.2), (2, 0.3)]


def test_the_figure_of_a_run(trained):
    assert (trained.folder / FIGURE).read_bytes().startswith(b"\x89PNG")


def test_a_training_without_objective_or_development_data(tmp_path):
    folder = tmp_path / "logs" / "version_0"
    folder.mkdir(parents=True)
    (folder / "metrics.csv").write_text("epoch,step,train/error\n0,1,0.2\n1,2,nan\n")
    assert write_curves(tmp_path, "F1", None) == tmp_path / FIGURE
