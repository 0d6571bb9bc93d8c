"""Options of the trainer that cannot be: one line that names them; when training stops."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EarlyStopping, Timer

from structperc.errors import InputError
from structperc.optim import LBFGS, SequentialOptimizers
from structperc.reranking import GlobalReranker
from structperc.reranking.bayes_point import BayesPoint
from structperc.training.run_callbacks import CheckTermination, StopWhenConverged

REFUSED = {
    "accelerator=gpuu": "trainer.accelerator: ",
    "devices=0": "trainer.devices: ",
    "devices=99": "trainer.devices is 99, ",
    "strategy=nonsense": "trainer.strategy: ",
    "precision=8": "trainer.precision: expected one of ",
    "max_epochs=-1": "trainer.max_epochs is -1 ",
    "max_time=soon": "trainer.max_time: ",
    "val_check_interval=50": "trainer.val_check_interval: ",
    "gradient_clip_algorithm=most": "trainer.gradient_clip_algorithm: ",
    "gradient_clip_val=-1": "trainer.gradient_clip_val must be >= 0, got -1",
    "limit_train_batches=0": "trainer.limit_train_batches must be > 0, got 0",
}
OTHERS = {
    "--seed_everything=-1": "seed_everything",
    "--data.seed=-1": "data.seed must be >= 0, got -1",
    "--checkpoint.every_n_epochs=-1": "every_n_epochs=-1",
    "--checkpoint.monitor=luck": "monitor='luck'",
    "--lr_scheduler=torch.optim.lr_scheduler.StepLR": "lr_scheduler",
    "--optimizer=torch.optim.SGD": "optimizer",
}


@pytest.mark.parametrize("way", ["trainer", "others"])
def test_each_is_refused_in_one_line(way, runs, complaint):
    given = {f"--trainer.{option}": told for option, told in REFUSED.items()} if way == "trainer" else OTHERS
    for option, told in given.items():
        assert told in complaint(option)
        assert not list(runs.root.rglob("*.ckpt"))


class Own(pl.Callback):
    """May do whatever it wants."""


def ends(optimizer=None, tagger=None, callbacks=()):
    """Whether a training without a last epoch may begin with these."""
    weights = [torch.nn.Parameter(torch.zeros(1))]
    optimizers = [(optimizer or (lambda p: torch.optim.SGD(p, lr=1.0)))(weights)]
    trainer = SimpleNamespace(max_epochs=-1, max_steps=-1, optimizers=optimizers, callbacks=[BayesPoint(), *callbacks])
    try:
        CheckTermination().on_train_start(trainer, tagger)
    except InputError:
        return False
    return True


def test_interrupted_training_without_last_epoch(runs):
    for callback in (StopWhenConverged(), EarlyStopping("dev/score"), Timer("00:00:00:01"), Own()):
        assert ends(callbacks=[callback])
    assert ends(LBFGS)
    assert ends(lambda p: SequentialOptimizers(p, torch.optim.Adagrad, 3, LBFGS))
    assert ends(tagger=Mock(spec=GlobalReranker))
    assert not ends()
    assert not ends(lambda p: SequentialOptimizers(p, LBFGS, 3, torch.optim.Adagrad))
    assert runs("fit", "--trainer.max_epochs=-1", "--trainer.max_steps=3") == 0


def stops_at(errors, **options):
    rule = StopWhenConverged(**options)
    return next((i for i, error in enumerate(errors) if rule.observe(error)), None)


def test_three_small_changes_in_a_row():
    assert stops_at([0.5, 0.1, 0.100001, 0.100002, 0.2, 0.200001, 0.200002, 0.200003, 0.3]) == 7
    assert stops_at([1 / 2**i for i in range(50)]) is None
    assert stops_at([0.1, 0.0, 0.0, 0.0, 0.0]) == 4


def test_state_survives_a_resume():
    errors = [0.5, 0.1, 0.1, 0.1, 0.1]
    first = StopWhenConverged()
    for error in errors[:3]:
        assert not first.observe(error)
    resumed = StopWhenConverged()
    resumed.load_state_dict(first.state_dict())
    assert [resumed.observe(error) for error in errors[3:]] == [False, True]


def test_bad_options():
    with pytest.raises(InputError, match="patience"):
        StopWhenConverged(patience=0)
