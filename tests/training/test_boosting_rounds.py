"""Rounds of boosting: the strings of the lists, as files, and scores in the logs of a run."""

import csv
import math

import pytest

from structperc.reranking import Boosting
from structperc.training.reranking import (
    FIGURE,
    SHOWN,
    TABLE,
    Round,
    boosting_rounds,
    plot_rounds,
    totals,
    write_rounds,
)
from tests.rerankers import Text, ready, training_lists
from tests.tiny import fit


@pytest.fixture(scope="module")
def data():
    return Text()


@pytest.fixture(scope="module")
def boosted(tmp_path_factory, data):
    """After two epochs of eight rounds."""
    made = ready(tmp_path_factory.mktemp("candidates"), data, Boosting(rounds=8), min_sequences=2)
    fit(made, data, 2)
    return made


def pairs_of(made, data):
    """(difference of first scores, strings that only the correct and that only the other candidate has), all pairs."""
    for correct, listed in zip(made.examples.correct.tolist(), training_lists(made, data), strict=True):
        found = [(first, {string for _, string in strings}) for _, first, strings in listed]
        score, right = found[correct]
        for first, other in found[:correct] + found[correct + 1 :]:
            yield score - first, right - other, other - right


def test_rounds_by_strings(boosted, data):
    made, ranker = boosting_rounds(boosted), boosted.ranker
    assert [one.number for one in made] == list(range(1, 17))
    history = (ranker.steps, ranker.losses, ranker.touched)
    assert [one[2:] for one in made] == list(zip(*(values.tolist() for values in history), strict=True))
    pairs, weights = list(pairs_of(boosted, data)), {}
    for one in made:
        weights[one.feature] = weights.get(one.feature, 0.0) + one.step
        margins = [
            ranker.first_weight * first + sum(weights.get(s, 0) for s in ours) - sum(weights.get(s, 0) for s in other)
            for first, ours, other in pairs
        ]
        assert one.loss == pytest.approx(sum(math.exp(-margin) for margin in margins), rel=1e-9)
        assert one.pairs == sum(one.feature in ours | other for _, ours, other in pairs)
    assert len(weights) > 5
    assert dict(totals(made)) == pytest.approx(weights)


def test_weights_after_all_rounds():
    made = [Round(i, *one, 1.0, 1) for i, one in enumerate([("a", 0.5), ("b", -2.0), ("a", 0.25), ("c", 1.0)], 1)]
    assert totals(made) == [("b", -2.0), ("c", 1.0), ("a", 0.75)]
    assert totals([]) == []


def test_files_hold_the_rounds(boosted, tmp_path):
    made = boosting_rounds(boosted)
    write_rounds(tmp_path, made, 8)
    with open(tmp_path / TABLE, newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    assert tuple(head) == Round._fields
    assert [Round(int(i), name, float(d), float(z), int(n)) for i, name, d, z, n in rows] == made
    assert (tmp_path / FIGURE).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.filterwarnings("ignore:Glyph", "ignore:Attempt to set non-positive")
@pytest.mark.parametrize("name", [None, 'WE=\\$_{ $a,"日本"\u0007/PER'])
def test_files_take_any_string_and_no_rounds(tmp_path, name):
    made = [Round(1, name, 0.5, 2.0, 3)] if name else []
    write_rounds(tmp_path, made, 5)
    with open(tmp_path / TABLE, newline="", encoding="utf-8") as file:
        assert [row[1] for row in csv.reader(file)][1:] == [one.feature for one in made]
    assert (tmp_path / FIGURE).exists()


def test_the_figure_shows_loss_scores_and_weights():
    made = [Round(i, f"s{i % 40}", i / 10, 100.0 / i, 1) for i in range(1, 58)]
    loss, dev, bars = plot_rounds(made, [(2, 0.5), (4, 0.75), (6, 0.7)], 10).axes
    assert [line.get_xydata().tolist() for line in loss.lines] == [[[i, 100.0 / i] for i in range(1, 58)]]
    assert loss.get_yscale() == "log"
    (line,) = dev.lines
    assert line.get_xydata().tolist() == [[20, 50], [40, 75], [57, 70]]  # the last epoch has seven rounds
    assert [bar.get_width() for bar in bars.patches] == [weight for _, weight in totals(made)][:SHOWN]
    assert [text.get_text() for text in bars.get_yticklabels()] == [name for name, _ in totals(made)][:SHOWN]
    assert bars.get_title() == "Largest weights of 40"
