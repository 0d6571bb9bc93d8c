"""Models that version 0.1 has saved: later versions load them, with the same labels and probabilities."""

from pathlib import Path

import pytest

import structperc
from structperc.models import Model

SAVED = Path(__file__).parent / "saved_models"
SENTENCE = [["Bo", "left", "Rome", "."]]
each_load = pytest.mark.parametrize("load", [structperc.load, Model.load], ids=["without PyTorch", "with PyTorch"])


@each_load
@pytest.mark.parametrize("name", ["perceptron", "crf"])
def test_labels(name, load):
    assert load(SAVED / name).tag(SENTENCE) == [["B-PER", "O", "B-LOC", "O"]]


@each_load
def test_probabilities(load):
    (found,) = load(SAVED / "crf").entities(SENTENCE)
    assert [span.type for span in found.spans] == ["PER", "LOC"]
    assert [span.probability for span in found.spans] == pytest.approx([0.360218, 0.587806], abs=1e-5)
    assert found.probability == pytest.approx(0.180155, abs=1e-5)


def test_weights_may_be_read_by_those_who_may_read_the_configuration(tmp_path):
    Model.load(SAVED / "crf").save(tmp_path / "model")
    config, weights = (tmp_path / "model" / name for name in ("model.json", "model.safetensors"))
    assert config.stat().st_mode == weights.stat().st_mode
