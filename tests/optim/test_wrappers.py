"""SequentialOptimizers and Averaging against their parts."""

from functools import partial

import pytest
import pytorch_lightning as pl
import torch

from structperc.criteria import CRFLoss
from structperc.errors import InputError
from structperc.optim import (
    GPD,
    LBFGS,
    Averaging,
    InverseTime,
    ParameterGroups,
    Perceptron,
    QuickProp,
    SequentialOptimizers,
)
from tests.tiny import Sentences, fit, make_tagger, sentences

FIRST, THEN = partial(GPD, lr=0.02, decay_steps=5), partial(QuickProp, lr=0.02)


def parameter():
    return torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))


def step(p, optimizer):
    def closure():
        optimizer.zero_grad()
        value = (p - 0.3).pow(4).sum() + (p * p).sum()
        value.backward()
        return value.detach()

    optimizer.step(closure)


def run(p, optimizer, epochs):
    """Three steps an epoch, or one."""
    for epoch in epochs:
        optimizer.begin_epoch(epoch)
        for _ in range(1 if optimizer.full_batch else 3):
            step(p, optimizer)


def test_first_one_then_the_other():
    p, q = parameter(), parameter()
    phases = SequentialOptimizers([p], FIRST, 2, THEN)
    run(p, phases, range(5))
    gpd = FIRST([q])
    for _ in range(6):
        step(q, gpd)
    quickprop = THEN([q])
    for _ in range(3):
        step(q, quickprop)
    assert torch.equal(p, q)
    assert phases.status == quickprop.status
    with phases.evaluation_weights(), quickprop.evaluation_weights():
        assert torch.equal(p, q)


def test_status_of_the_active_optimizer():
    p = parameter()
    phases = SequentialOptimizers([p], FIRST, 2, THEN)
    for epoch in range(2):
        phases.begin_epoch(epoch)
        assert isinstance(phases.active, GPD)
        assert not phases.full_batch
        assert phases.stop_reason is phases.status is None
        assert phases.param_groups[0]["decay_steps"] == 5
        assert phases.evaluation_state() == {}
    phases.begin_epoch(2)
    assert isinstance(phases.active, QuickProp)
    assert phases.full_batch
    assert phases.divergence_hint == "set a smaller lr"
    assert phases.param_groups[0]["growth"] == 1.75
    for _ in range(100):
        step(p, phases)
    assert "converged" in phases.stop_reason
    assert phases.state[p]["best"].equal(p.detach())


def test_second_starts_from_evaluation_weights():
    p, q = parameter(), parameter()
    phases, alone = SequentialOptimizers([p], partial(Perceptron, lr=0.02), 2, LBFGS), Perceptron([q], lr=0.02)
    run(p, phases, range(2))
    for _ in range(6):
        step(q, alone)
    assert torch.equal(p, q)
    phases.begin_epoch(2)
    with alone.evaluation_weights():
        assert torch.equal(p, q)


def test_switch_after_convergence():
    p = parameter()
    phases = SequentialOptimizers([p], partial(LBFGS, epsilon=1e-3), 1000, partial(GPD, lr=1e-3, decay_steps=1))
    for epoch in range(1000):
        phases.begin_epoch(epoch)
        if isinstance(phases.active, GPD):
            break
        assert phases.stop_reason is None  # the trainer must not stop
        step(p, phases)
    assert 2 < epoch < 50
    best = p.detach().clone()
    step(p, phases)
    torch.testing.assert_close(p.detach(), best, atol=1e-3, rtol=0)


@pytest.mark.parametrize("stop", [2, 4])
def test_resume_is_exact_in_either_phase(stop):
    p = parameter()
    phases = SequentialOptimizers([p], partial(GPD, lr=0.02, decay_steps=5, average=True), 3, THEN)
    run(p, phases, range(stop))
    q, state = torch.nn.Parameter(p.detach().clone()), phases.state_dict()
    averages = phases.evaluation_state()
    with phases.evaluation_weights():
        assert torch.equal(averages.get(p, q), p.detach())
        assert torch.equal(phases.state_dict()["state"][0]["training_weights"], q)
    resumed = SequentialOptimizers([q], partial(GPD, lr=0.02, decay_steps=5, average=True), 3, THEN)
    resumed.load_state_dict(state)
    run(p, phases, range(stop, 7))
    run(q, resumed, range(stop, 7))
    assert torch.equal(p, q)
    assert phases.status == resumed.status


def test_groups():
    p, q = parameter(), parameter()
    groups = [{"params": [p], "lr": 0.2}, {"params": [q]}]
    phases = SequentialOptimizers(groups, FIRST, 1, partial(torch.optim.SGD, lr=0.05))
    assert [group["lr"] for group in phases.param_groups] == [0.2, 0.02]
    phases.begin_epoch(1)
    assert [group["lr"] for group in phases.param_groups] == [0.2, 0.05]
    assert groups == [{"params": [p], "lr": 0.2}, {"params": [q]}]


# -- Lightning ------------------------------------------------------------------------------------------------


class Module(pl.LightningModule):
    """Fits a line; one batch an epoch, so that it is the corpus."""

    def __init__(self, optimizer):
        super().__init__()
        self.optimizer, self.line = optimizer, torch.nn.Linear(2, 1)

    def configure_optimizers(self):
        return self.optimizer(self.parameters())

    def on_train_epoch_start(self):
        self.trainer.optimizers[0].begin_epoch(self.current_epoch)

    def training_step(self, batch, index):
        x, y = batch
        return (self.line(x)[:, 0] - y).square().sum()


def fit_module(folder, epochs, resume=None):
    pl.seed_everything(0)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(20, 2, generator=generator)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:, 0] - 2 * x[:, 1] + 3), batch_size=20)
    module = Module(
        partial(SequentialOptimizers, first=partial(GPD, lr=0.005, decay_steps=10), first_epochs=2, second=LBFGS)
    )
    options = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    trainer = pl.Trainer(max_epochs=epochs, default_root_dir=folder, enable_checkpointing=False, **options)
    trainer.fit(module, loader, ckpt_path=resume)
    return trainer, module


def test_resumed_by_lightning(tmp_path):
    trainer, module = fit_module(tmp_path, 7)
    half, _ = fit_module(tmp_path, 1)
    half.save_checkpoint(tmp_path / "half.ckpt")
    resumed, other = fit_module(tmp_path, 7, tmp_path / "half.ckpt")
    assert isinstance(trainer.optimizers[0].active, LBFGS)
    assert trainer.optimizers[0].status == resumed.optimizers[0].status
    for a, b in zip(module.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)


# -- averages ---------------------------------------------------------------------------------------------------------


ADAM = partial(torch.optim.Adam, lr=0.1)


def weights(n):
    torch.manual_seed(5)
    return [torch.nn.Parameter(torch.randn(3)) for _ in range(n)]


def run_averaging(optimizer, parameters, epochs, seen=None):
    """Two steps an epoch; the last parameter has no gradient in the first one."""
    for epoch in epochs:
        optimizer.begin_epoch(epoch)
        for i in range(2):
            for p in parameters:
                p.grad = p.detach() - 0.3 if epoch + i or p is not parameters[-1] else None
            optimizer.step()
            if seen is not None:
                seen.append((epoch, [p.detach().clone() for p in parameters]))


@pytest.mark.parametrize(("start", "decay"), [(0, None), (2, None), (0, 0.6), (1, 0.9)])
def test_averages_by_naive_sums(start, decay):
    own, plain, seen = weights(2), weights(2), []
    optimizer = Averaging(own, ADAM, start, decay)
    run_averaging(optimizer, own, range(4), seen)
    adam = ADAM(plain)
    adam.begin_epoch = lambda epoch: None
    run_averaging(adam, plain, range(4))
    assert all(torch.equal(a, b) for a, b in zip(own, plain, strict=True))
    average, n = None, 0
    for _, found in ((epoch, found) for epoch, found in seen if epoch >= start):
        n += 1
        share = 1 / n if decay is None else max(1 / n, 1 - decay)
        mixed = found if average is None else [a + share * (f - a) for a, f in zip(average, found, strict=True)]
        average = mixed
    if decay is None:
        average = [sum(parts) / n for parts in zip(*(found for epoch, found in seen if epoch >= start), strict=True)]
    with optimizer.evaluation_weights():
        for p, wanted in zip(own, average, strict=True):
            torch.testing.assert_close(p.detach(), wanted)
    assert torch.equal(own[0], plain[0])


def test_evaluation_weights_before_the_first_epoch():
    own = weights(1)
    optimizer = Averaging(own, ADAM, start=3)
    run_averaging(optimizer, own, range(3))
    assert optimizer.evaluation_state() == {}


def test_evaluation_weights_of_taggers():
    groups = ParameterGroups({"scorer.transition": 0.1})
    data = Sentences(sentences(6, seed=3), batch_size=2)
    tagger = make_tagger(
        data, CRFLoss(), lambda p: Averaging(p, ADAM), lr_scheduler=InverseTime, parameter_groups=groups
    )
    trainer = fit(tagger, data, 3)
    (optimizer,) = trainer.optimizers
    assert optimizer.averaged == 9
    assert optimizer.active.param_groups[0]["lr"] == pytest.approx(0.1 / 1.15)
    averages = [optimizer.averages[p].clone() for p in tagger.parameters()]
    assert all(torch.equal(p, q) for p, q in zip(tagger.parameters(), averages, strict=True))
    optimizer.use_training_weights()
    assert not torch.equal(tagger.scorer.node, averages[0])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"optimizer": ADAM, "start": -1}, "Averaging: start "),
        ({"optimizer": ADAM, "decay": 1.0}, "Averaging: decay "),
        ({"optimizer": Perceptron}, "Averaging: Perceptron "),
        ({"optimizer": LBFGS}, "Averaging: LBFGS "),
    ],
)
def test_refusals(options, complaint):
    with pytest.raises(InputError, match=complaint):
        Averaging(weights(1), **options)
