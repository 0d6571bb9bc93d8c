"""Figures of studies can be read: plain numbers, a legend that covers nothing; figures as files."""

import random
from statistics import stdev

import pytest
from matplotlib.figure import Figure

from structperc.experiments.experiment import ExperimentRow
from structperc.experiments.study_report import COST_LABELS, RowResults, plot_comparison, plot_study
from structperc.reports.figures import plain_log_ticks, series_style


def test_figure_has_a_labelled_point_per_row():
    numbers = {"a$b": [(10.0, 0.5), (30.0, 0.75)], "c": [(10.0, 0.5)], "failed": []}
    lines = [
        RowResults(ExperimentRow(name, "fit", [], [], [1, 2]), [], [{"seconds": x, "score": y} for x, y in runs])
        for name, runs in numbers.items()
    ]
    (ax,) = plot_study(lines, "F1", "dev").axes
    assert ax.get_xscale() == "log"
    assert [bars.lines[0].get_xydata().tolist() for bars in ax.containers] == [[[20.0, 62.5]], [[10.0, 50.0]]]
    assert [bars.has_yerr for bars in ax.containers] == [True, False]
    low, high = ax.containers[0].lines[2][1].get_segments()[0][:, 1]
    assert high - low == pytest.approx(2 * 100 * stdev([0.5, 0.75]))


def test_figure_of_learning_curves():
    scores = {"a": {200: [0.5, 0.75], 100: [0.25, 0.75]}, "b": {100: [0.5, 0.5], 200: [0.75, 0.75]}}
    lines = [
        RowResults(
            ExperimentRow(f"{name}, {size}", "fit", [], [], [1, 2], curve=name),
            [],
            [{"train_sequences": size, "seconds": 1.0, "score": score} for score in found],
        )
        for name, sizes in scores.items()
        for size, found in sizes.items()
    ]
    figure = plot_study(lines, "F1", "dev")
    (ax,), (legend,) = figure.axes, figure.legends
    assert ax.get_xscale() == "log"
    curves = [bars.lines[0].get_xydata().tolist() for bars in ax.containers]
    assert curves == [[[100, 50], [200, 62.5]], [[100, 50], [200, 75]]]
    assert [bars.lines[0].get_linestyle() for bars in ax.containers] == ["-", "-"]
    low, high = ax.containers[0].lines[2][0].get_segments()[0][:, 1]
    assert high - low == pytest.approx(2 * 100 * stdev([0.25, 0.75]))
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]


def made_up(n):
    """Rows like those of the embedded corpus: seconds over two decades, scores in two groups, three seeds."""
    draw = random.Random(n)
    for i in range(n):
        seconds, score = 10 ** draw.uniform(0.9, 2.6), draw.choice([0.82, 0.94]) + draw.uniform(-0.03, 0.03)
        runs = [{"seconds": seconds * (1 + 0.1 * d), "score": score + 0.005 * d} for d in (-1, 0, 1)]
        yield RowResults(
            ExperimentRow(f"learner {i} of some kind"[: draw.randint(9, 25)], "fit", [], [], [1, 2, 3]), [], runs
        )


@pytest.mark.parametrize(
    ("limits", "ticks"),
    [
        ((3, 800), ["5", "10", "20", "50", "100", "200", "500"]),
        ((0.2, 1.1), ["0.2", "0.5", "1"]),
        ((0.002, 40), ["0.003", "0.01", "0.03", "0.1", "0.3", "1", "3", "10", "30"]),
    ],
)
def test_ticks_are_plain_numbers(limits, ticks):
    ax = Figure().subplots()
    ax.set(xscale="log", xlim=limits)
    plain_log_ticks(ax.xaxis)
    assert [label.get_text() for label in ax.get_xticklabels()] == ticks
    assert not ax.get_xticklabels(minor=True)
    ax.set(yscale="log", ylim=(0.5, 1e30))
    plain_log_ticks(ax.yaxis, 3)
    assert 2 <= len(ax.get_yticks()) <= 3


def test_panels_of_a_comparison():
    costs = {"seconds": 10.0, "tokens_per_second": 1e4, "model_mb": 3.0, "peak_memory_mb": 700.0}
    rows = [
        RowResults(ExperimentRow(f"{i}", "fit", [], [], [1, 2]), [], [{"score": 0.1 * i, **costs}]) for i in range(1, 8)
    ]
    rows[1].numbers[0].pop("seconds")
    figure = plot_comparison({"chunks": ("F1", "test", rows), "words": ("accuracy", "dev", rows[:3])})
    panels = [[len(ax.containers) for ax in figure.axes[a : a + len(COST_LABELS)]] for a in (0, len(COST_LABELS))]
    assert panels == [[6, 7, 7, 7], [2, 3, 3, 3]]
    assert [ax.get_ylabel() for ax in figure.axes if ax.get_ylabel()] == [
        "chunks\ntest F1 (%)",
        "words\ndev accuracy (%)",
    ]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"{i}" for i in range(1, 8)]
    second = figure.axes[1].containers[6].lines[0]  # the same learner has the same mark in all panels
    assert (second.get_color(), second.get_marker()) == (
        legend.legend_handles[6].get_color(),
        legend.legend_handles[6].get_marker(),
    )
    assert second.get_xdata()[0] == 1e4


def test_distinct_series():
    styles = [series_style(number) for number in range(30)]
    assert len({(style["color"], style["marker"]) for style in styles}) == 30
    assert len({style["marker"] for style in styles[:13]}) == 13
    assert len({(style["color"], style["linestyle"]) for style in styles[:20]}) == 20
