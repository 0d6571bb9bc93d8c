"""Learning rates that change: which rate each step has, what it does to the weights, and resuming."""

import math
import warnings

import pytest
import torch
from pytorch_lightning.callbacks import EMAWeightAveraging, StochasticWeightAveraging
from torch.optim import lr_scheduler as torchs

from structperc.criteria import CRFLoss, PerceptronLoss
from structperc.errors import InputError
from structperc.optim import LBFGS, InverseTime, PassiveAggressive, SequentialOptimizers, WarmupDecay
from structperc.optim import Perceptron as PerceptronSteps
from structperc.reranking.jackknife import JackKnife
from structperc.taggers.learning import SequentialTraining
from structperc.training.report import Stopwatch
from tests.checkpoints import assert_same, assert_same_training, checkpoint
from tests.errors import error_message
from tests.tiny import Sentences, fit, make_tagger, sentences

EPOCHS, BATCHES = 4, 3  # of 6 sentences, 2 in each mini-batch
STEPS = EPOCHS * BATCHES


class Watched(torch.optim.SGD):
    """SGD that notes the rate of each step."""

    def __init__(self, params, lr=0.1) -> None:
        super().__init__(params, lr=lr)
        self.rates = []

    def step(self, closure=None):
        self.rates.append(self.param_groups[0]["lr"])
        return super().step(closure)


def small():
    return Sentences(sentences(6, seed=3), batch_size=2)


def trained(schedule, optimizer=Watched, criterion=None, epochs=EPOCHS, **options):
    data = small()
    tagger = make_tagger(data, criterion or CRFLoss(), optimizer, lr_scheduler=schedule)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*lr_scheduler")  # about the order of steps
        return tagger, fit(tagger, data, epochs, **options)


def rates(schedule, **options):
    return trained(schedule, **options)[1].optimizers[0].rates


def by_hand(schedule, steps, per=1):
    """The rates of torch's schedule if it is stepped after every so many steps."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    made, seen = schedule(optimizer), []
    for i in range(steps):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if (i + 1) % per == 0:
            made.step()
    return seen


@pytest.mark.parametrize(
    ("schedule", "per"),
    [
        (lambda o: torchs.StepLR(o, 2, gamma=0.5), BATCHES),
        (lambda o: torchs.OneCycleLR(o, 1.0, total_steps=STEPS, cycle_momentum=False), 1),
    ],
    ids=["StepLR", "OneCycleLR"],
)
def test_schedules_of_torch(schedule, per):
    assert rates(schedule) == pytest.approx(by_hand(schedule, STEPS, per))


def test_rates_of_our_own():
    risen, total = 3, STEPS
    falls = {"linear": lambda r: 1 - r, "cosine": lambda r: (1 + math.cos(math.pi * r)) / 2, "constant": lambda r: 1}
    for decay, fall in falls.items():
        left = [0.2 + 0.8 * fall((s - risen) / (total - risen)) for s in range(risen, total)]
        wanted = [0.1 * f for f in [1 / 3, 2 / 3, 1, *left]]
        assert rates(lambda o, decay=decay: WarmupDecay(o, 0.25, decay, end=0.2)) == pytest.approx(wanted)
    assert rates(InverseTime) == pytest.approx([0.1 / (1 + 0.05 * e) for e in range(EPOCHS) for _ in range(BATCHES)])


def test_accumulated_steps():
    found = rates(lambda o: WarmupDecay(o, 0.5), accumulate_grad_batches=2)  # of 3: two steps an epoch
    assert found == pytest.approx([0.1 * f for f in (0.25, 0.5, 0.75, 1, 1, 0.75, 0.5, 0.25)])
    assert len(rates(lambda o: WarmupDecay(o, 0), epochs=-1, max_steps=5)) == 5


def test_longer_training():
    """As it is resumed: optimizer, then schedule."""
    rates = []
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    first = WarmupDecay(optimizer, 0)
    first.plan(4)
    for _ in range(4):
        optimizer.step()
        first.step()
    assert optimizer.param_groups[0]["lr"] == 0
    again = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    second = WarmupDecay(again, 0)
    second.plan(8)
    again.load_state_dict(optimizer.state_dict())
    second.load_state_dict(first.state_dict())
    for _ in range(4):
        rates.append(again.param_groups[0]["lr"])
        again.step()
        second.step()
    assert rates == pytest.approx([4 / 8, 3 / 8, 2 / 8, 1 / 8])


def test_a_plateau_of_the_objective():
    falls = {"mode": "min", "patience": 0, "factor": 0.5, "threshold": 1e9}  # nothing is ever better
    found = rates(lambda o: torchs.ReduceLROnPlateau(o, **{**falls, "threshold_mode": "abs"}))
    assert found == pytest.approx([0.1 * 0.5 ** max(0, e) for e in (0, 0, 1, 2) for _ in range(BATCHES)])


@pytest.mark.parametrize("average", [True, False])
def test_rate_of_online_optimizers(average):
    """Without a rate from the second epoch on the weights stay where they are, while the averages go on."""
    one, four = (
        trained(
            lambda o: torchs.StepLR(o, 1, gamma=0.0),
            lambda p: PerceptronSteps(p, average=average),
            PerceptronLoss(),
            epochs,
        )
        for epochs in (1, 4)
    )
    assert isinstance(four[0].training_method, SequentialTraining)
    for _, trainer in (one, four):
        trainer.optimizers[0].use_training_weights()
    assert_same([*one[0].parameters()], [*four[0].parameters()])
    assert four[1].optimizers[0].param_groups[0]["steps"] == 4 * 6
    free, _ = trained(None, lambda p: PerceptronSteps(p, average=average), PerceptronLoss())
    assert not torch.equal(free.scorer.node, four[0].scorer.node)


@pytest.mark.parametrize(
    ("schedule", "optimizer", "complaint"),
    [
        (InverseTime, LBFGS, "model.lr_scheduler: LBFGS"),
        (InverseTime, PassiveAggressive, "model.lr_scheduler: PassiveAggressive"),
        (InverseTime, lambda p: SequentialOptimizers(p, Watched, 1, LBFGS), "model.lr_scheduler: SequentialOptimizers"),
        (lambda o: InverseTime(o, -1), Watched, "InverseTime: rate "),
        (lambda o: torchs.OneCycleLR(o, 1.0), Watched, "model.lr_scheduler: You"),
        (lambda o: torchs.OneCycleLR(o, 1.0, 9, cycle_momentum=False), Watched, "to 12, not 9"),
        (lambda o: torchs.ReduceLROnPlateau(o, "max"), Watched, "mode max needs development data"),
    ],
)
def test_invalid_combinations(schedule, optimizer, complaint):
    assert complaint in error_message(trained, schedule, optimizer)


def test_a_plan_needs_an_end():
    with pytest.raises(InputError, match=r"WarmupDecay .*trainer\.max_epochs"):
        trained(WarmupDecay, epochs=-1)


@pytest.mark.parametrize("callback", [StochasticWeightAveraging(0.1), EMAWeightAveraging()], ids=["SWA", "EMA"])
def test_lightnings_averages_are_refused(callback):
    with pytest.raises(InputError, match=rf"trainer\.callbacks: {type(callback).__name__}"):
        trained(None, callbacks=[callback])


def test_first_models_are_kept_by_their_schedule():
    data, made = small(), set()
    for schedule in (None, InverseTime, lambda o: InverseTime(o, 0.1)):
        made.add(JackKnife().fingerprint(make_tagger(data, CRFLoss(), Watched, lr_scheduler=schedule), data, 1))
    assert len(made) == 3


def test_rates_of_a_resumed_run(runs, monkeypatch):
    """No epoch after the first passes the threshold of the plateau."""
    options = (
        "--model.lr_scheduler={class_path: torch.optim.lr_scheduler.ReduceLROnPlateau,"
        " init_args: {mode: max, patience: 0, factor: 0.1, threshold: 0.5}}",
        "--trainer.max_epochs=4",
    )
    assert runs("fit", *options) == 0
    with monkeypatch.context() as patch:
        patch.setattr(Stopwatch, "on_train_batch_end", interrupt)
        assert runs("fit", *options) == 1
    assert checkpoint(runs.root / "2")["epoch"] == 1
    assert runs("fit", *options, "--ckpt_path=last") == 0
    assert_same_training(runs.root / "1", runs.root / "2")
    assert checkpoint(runs.root / "2")["optimizer_states"][0]["param_groups"][0]["lr"] < 0.5


def interrupt(self, trainer, *_):
    if trainer.current_epoch == 2:
        raise KeyboardInterrupt
