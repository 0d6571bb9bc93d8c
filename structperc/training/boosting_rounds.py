"""The rounds of boosting: which features it chose, how the loss fell and what that was worth."""

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure

from structperc.reports.figures import draw_bars, open_frame, plain_log_ticks, write_figure
from structperc.reports.tables import write_csv
from structperc.reranking import Boosting
from structperc.reranking.global_reranker import GlobalReranker

TABLE, FIGURE = "rounds.csv", "rounds.png"
SHOWN = 30  # features whose weights are drawn


class Round(NamedTuple):
    """One round of boosting: its number from 1, the feature it chose, the step it took and the loss after it."""

    number: int
    feature: str  # the string chosen
    step: float  # by which its weight moved
    loss: float  # after it
    pairs: int  # of a correct and another candidate which the feature tells apart


def boosting_rounds(model: GlobalReranker) -> list[Round]:
    """Return the rounds of a re-ranker that boosting trains; call this before `finalize` renumbers its strings."""
    ranker = model.ranker
    assert isinstance(ranker, Boosting)
    names = dict(model.feature_strings(ranker.chosen.unique()))
    columns = (ranker.chosen, ranker.steps, ranker.losses, ranker.touched)
    told = zip(*(column.tolist() for column in columns), strict=True)
    return [Round(i, names[k], step, loss, pairs) for i, (k, step, loss, pairs) in enumerate(told, 1)]


def write_rounds(folder: Path, made: Sequence[Round], per_epoch: int) -> None:
    """Write rounds.csv and rounds.png into the folder of a run, whose logs have the scores on development data."""
    write_csv(str(folder / TABLE), Round._fields, made)
    write_figure(str(folder / FIGURE), plot_rounds(made, dev_scores(folder), per_epoch))


def dev_scores(folder: Path) -> list[tuple[int, float]]:
    """Return (epoch from 1, score on development data after it) from the logs of a run.

    A resumed run has several logs; from the first epoch of a later log on, what the earlier ones say is void.
    """
    scores: dict[int, float] = {}
    for log in sorted((folder / "logs").glob("version_*/metrics.csv"), key=_version):
        with open(log, encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        begins = min((int(line["epoch"]) + 1 for line in lines), default=math.inf)
        scores = {epoch: score for epoch, score in scores.items() if epoch < begins}
        scores |= {int(line["epoch"]) + 1: float(line["dev/score"]) for line in lines if line.get("dev/score")}
    return sorted(scores.items())


def _version(log: Path) -> int:
    return int(log.parent.name.partition("_")[2])


def plot_rounds(made: Sequence[Round], scores: Sequence[tuple[int, float]], per_epoch: int) -> Figure:
    """Return a figure of three panels: the loss over rounds, the score over rounds, and the largest weights.

    `scores` are (epoch, score on development data); an epoch has `per_epoch` rounds, the last one perhaps fewer.
    """
    figure = Figure(figsize=(13, 5), layout="constrained")
    loss, dev, bars = figure.subplots(1, 3, width_ratios=(1, 1, 1.4))
    loss.plot([one.number for one in made], [one.loss for one in made], color="tab:blue")
    loss.set(title="Loss", xlabel="round", yscale="log")
    plain_log_ticks(loss.yaxis)
    ends = [min(epoch * per_epoch, len(made)) for epoch, _ in scores]
    dev.plot(ends, [100 * score for _, score in scores], color="tab:orange")
    dev.set(title="Development data", xlabel="round", ylabel="score (%)")
    draw_bars(bars, f"Largest weights of {len(totals(made))}", totals(made)[:SHOWN])
    for ax in (loss, dev):
        open_frame(ax)
    return figure


def totals(made: Sequence[Round]) -> list[tuple[str, float]]:
    """Return the weight that each feature has after all rounds, the largest first."""
    weights: dict[str, float] = {}
    for one in made:
        weights[one.feature] = weights.get(one.feature, 0.0) + one.step
    return sorted(weights.items(), key=lambda pair: -abs(pair[1]))
