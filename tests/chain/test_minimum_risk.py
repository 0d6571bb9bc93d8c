from collections import Counter

import pytest
import torch

from structperc.chain import Constraints, KBest, LabelBias, MinimumSegmentRisk, kbest, marginals, viterbi
from structperc.chain.decoders import add_label_bias
from structperc.chain.minimum_risk import minimum_segment_risk, minimum_token_risk, probable_segments, scale
from structperc.data import LabelSet, spans
from structperc.errors import InputError
from structperc.structures import Lattice
from tests import oracle

IOB2 = LabelSet(("O", "B-LOC", "I-LOC", "B-PER", "I-PER"), "IOB2")
IOBES = LabelSet(("O", "B-PER", "I-PER", "E-PER", "S-PER"), "IOBES")


@pytest.fixture(params=[IOB2, IOBES], ids=lambda labels: labels.scheme)
def labels(request) -> LabelSet:
    return request.param


@pytest.fixture
def legal(labels: LabelSet) -> Lattice:
    """Random scores of sequences of 4, 3 and 1 tokens that respect the tag scheme."""
    draw = torch.Generator().manual_seed(5)
    unary, edge = (torch.randn(3, 4, *size, generator=draw, dtype=torch.float64) for size in ((5,), (5, 5)))
    constraints = Constraints()
    constraints.allocate(labels)
    return constraints(Lattice(unary, edge, torch.tensor([4, 3, 1])))


def span_probabilities(lattice: Lattice, row: int, labels: LabelSet) -> Counter:
    found: Counter = Counter()
    for p, path in oracle.probabilities(lattice, row):
        found.update(dict.fromkeys(spans(labels.decode(path)), p))
    return found


def by_row(segments, labels: LabelSet, rows: int) -> list[dict]:
    found: list[dict] = [{} for _ in range(rows)]
    for row, start, end, kind, p in zip(*(part.tolist() for part in segments), strict=True):
        found[row][labels.type_names[kind], start, end] = p
    return found


@pytest.mark.parametrize("threshold", [0.0, 0.1])
def test_probable_segments_are_all_above_the_threshold(legal, labels, threshold):
    found = by_row(probable_segments(legal, labels, threshold), labels, 3)
    for row in range(3):
        wanted = {tuple(span): p for span, p in span_probabilities(legal, row, labels).items() if p > threshold}
        assert wanted
        assert found[row] == pytest.approx(wanted)


@pytest.mark.parametrize("threshold", [0.0, 0.05, 0.3, 0.6])
def test_minimum_segment_risk_by_enumeration(legal, labels, threshold):
    sums, best = minimum_segment_risk(legal, labels, threshold)
    for row, length in enumerate(legal.lengths.tolist()):
        known = span_probabilities(legal, row, labels)

        def gain(path, known=known):
            return sum(known[span] - threshold for span in spans(labels.decode(path)))

        assert float(sums[row]) == pytest.approx(max(gain(path) for _, path in oracle.sorted_paths(legal, row)))
        assert gain(best[row, :length].tolist()) == pytest.approx(float(sums[row]))
        assert not best[row, length:].any()


def test_minimum_token_risk_by_enumeration(legal):
    sums, best = minimum_token_risk(legal)
    table = marginals(legal)
    for row, length in enumerate(legal.lengths.tolist()):

        def right(path, row=row):
            return float(sum(table[row, t, y] for t, y in enumerate(path)))

        possible = [path for _, path in oracle.sorted_paths(legal, row)]
        assert float(sums[row]) == pytest.approx(max(map(right, possible)))
        assert tuple(best[row, :length].tolist()) in possible
        assert right(best[row, :length].tolist()) == pytest.approx(float(sums[row]))


def test_label_bias_is_added_once_for_each_token(legal, labels):
    decoder = LabelBias({"O": -1.5, "B-PER": 0.5}, k=3)
    decoder.allocate(labels)
    biased = add_label_bias(legal, decoder.added)
    assert decoder.added[labels.index("B-PER")] == 0.5
    for found, wanted in zip(decoder(legal), kbest(biased, 3), strict=True):
        assert found.equal(wanted)
    assert decoder.best(legal).equal(viterbi(biased)[1])


def test_temperature_keeps_the_best_and_its_inverse_restores_the_scores(legal):
    assert viterbi(scale(legal, 3.0))[1].equal(KBest(1).best(legal))
    torch.testing.assert_close(scale(scale(legal, 4.0), 0.25), legal)


def test_empty_sequences(labels):
    empty = Lattice(torch.zeros(2, 0, 5), torch.zeros(1, 1, 5, 5), torch.tensor([0, 0]))
    decoder = MinimumSegmentRisk()
    decoder.allocate(labels)
    assert decoder.best(empty).shape == (2, 0)


def test_invalid_options():
    with pytest.raises(InputError, match="IOB1"):
        MinimumSegmentRisk().allocate(LabelSet(("O", "I-PER", "B-PER"), "IOB1"))
    with pytest.raises(InputError, match="threshold"):
        MinimumSegmentRisk(threshold=1.0)
    with pytest.raises(InputError, match="temperature"):
        MinimumSegmentRisk(temperature=0.0)
    with pytest.raises(InputError, match="B-ORG"):
        LabelBias({"B-ORG": 1.0}).allocate(IOB2)
