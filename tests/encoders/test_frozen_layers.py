"""Transformers of which only the upper layers are trained, and gradual unfreezing."""

import pytest
import pytorch_lightning as pl
import torch

from structperc.encoders import Transformer
from structperc.errors import InputError
from structperc.optim import Averaging
from structperc.training import GradualUnfreezing
from tests.encoders.test_transformer_training import adam, data, trained
from tests.encoders.tiny_models import save_bert


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_bert(tmp_path_factory.mktemp("models") / "bert", hidden_dropout_prob=0.1)


def loaded(folder, **options):
    encoder = Transformer(str(folder), **options)
    encoder.build_vocabulary(data().corpus("train"))
    return encoder.train()


def moved(network, before):
    """The parts of a network in which a weight differs: embeddings, or the number of a layer."""
    names = [n for n, p in network.named_parameters() if not torch.equal(p, before[n])]
    return {n.split(".")[2] if "layer" in n else n.partition(".")[0] for n in names}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {"embeddings", "0", "1"}),
        ({"frozen_layers": 0}, {"0", "1"}),
        ({"frozen_layers": 1}, {"1"}),
        ({"frozen": True}, set()),
    ],
)
def test_weights_that_training_moves(folder, options, expected):
    tagger = trained(folder, 1, **options)
    assert moved(tagger.scorer.encoder.network, dict(loaded(folder).network.named_parameters())) == expected


def test_frozen_layers_have_no_dropout(folder):
    parts = loaded(folder, frozen_layers=1).network
    assert not any(m.training for part in (parts.embeddings, parts.encoder.layer[0]) for m in part.modules())
    assert all(m.training for m in parts.encoder.layer[1].modules())


def test_number_of_layers_is_checked(folder):
    with pytest.raises(InputError, match="frozen_layers must be <= 2"):
        loaded(folder, frozen_layers=3)


class Moved(pl.Callback):
    """The parts of the network that each epoch has moved."""

    def __init__(self):
        self.parts, self.before = [], {}

    def on_train_epoch_start(self, trainer, module):
        self.before = {n: p.detach().clone() for n, p in module.scorer.encoder.network.named_parameters()}

    def on_train_epoch_end(self, trainer, module):
        self.parts.append(moved(module.scorer.encoder.network, self.before))


def test_frozen_layers_stay_frozen(folder):
    seen = Moved()
    trained(folder, 3, [GradualUnfreezing(first=0), seen], frozen_layers=1)
    assert seen.parts == [set(), {"1"}, {"1"}]


def test_gradual_unfreezing_and_averages(folder):
    class Weights(pl.Callback):
        def __init__(self):
            self.values = []

        def on_train_batch_end(self, trainer, module, *_):
            self.values.append([p.detach().double().clone() for p in module.parameters()])

    seen, own = Weights(), Moved()
    tagger = trained(folder, 4, [GradualUnfreezing(first=0), seen, own], lambda p: Averaging(p, adam))
    assert own.parts == [set(), {"1"}, {"0", "1"}, {"embeddings", "0", "1"}]
    trainer = tagger.trainer
    with trainer.optimizers[0].evaluation_weights():
        for p, values in zip(tagger.parameters(), zip(*seen.values, strict=True), strict=True):
            torch.testing.assert_close(p.double(), torch.stack(values).mean(0), atol=1e-5, rtol=1e-5)


def test_unfreezing_needs_a_trained_transformer(folder):
    with pytest.raises(InputError, match="GradualUnfreezing needs"):
        trained(folder, 1, [GradualUnfreezing()], frozen=True)


@pytest.mark.parametrize("options", [{"first": -1}, {"step": 0}])
def test_invalid_schedules(options):
    with pytest.raises(InputError, match="GradualUnfreezing"):
        GradualUnfreezing(**options)
