"""When processes mix what they learn online: often at first, then seldom, and wherever else weights are looked at."""

import math

import pytest
import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint

from structperc.criteria import PerceptronLoss
from structperc.datamodules.distributed import ProcessGroup
from structperc.models.checkpoint_files import read_checkpoint
from structperc.online.learner import OnlineLearner
from structperc.optim import Perceptron as Additive
from structperc.taggers import learning
from structperc.taggers import sequential_learning as mixing
from structperc.taggers import tagger as tagger_module
from structperc.taggers.sequential_learning import ParameterAveragingLearner
from tests.tiny import Sentences, make_tagger, sentences

BATCHES = 25
PROCESSES = 4
FIRST = [math.ceil(BATCHES * i / 16) for i in range(1, 17)]  # 4 PROCESSES mixtures in the first epoch


class Judged(Sentences):
    """The training sentences are the development data, too."""

    def read(self, split):
        return None if split == "test" else ("sentences", self.rows)


class Looks(pl.Callback):
    """Notes whether the weights that are looked at are mixed."""

    def __init__(self):
        self.mixed = []

    def on_validation_batch_start(self, trainer, tagger, *args):
        self.mixed.append(tagger.training_method.learner.synced)

    def on_train_end(self, trainer, tagger):
        self.mixed.append(tagger.training_method.learner.synced)


@pytest.fixture
def mixtures(monkeypatch):
    """After how many mini-batches there was a mixture."""
    learned, found = [], []
    learn, mix = OnlineLearner.learn, ParameterAveragingLearner.sync

    def mixed(self):
        if not self.synced:
            found.append(len(learned))
        return mix(self)

    monkeypatch.setattr(OnlineLearner, "learn", lambda self, batch: learned.append(batch) or learn(self, batch))
    monkeypatch.setattr(ParameterAveragingLearner, "sync", mixed)
    for module in (tagger_module, mixing, learning):
        monkeypatch.setattr(module, "process_group", lambda: ProcessGroup(0, PROCESSES))
    return found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, FIRST),
        ({"max_epochs": 3}, [*FIRST, *(25 + math.ceil(25 * i / 8) for i in range(1, 9)), 55, 59, 63, 67, 71, 75]),
        ({"limit_train_batches": 3}, [1] * 5 + [2] * 5 + [3] * 6),
        ({"val_check_interval": 5}, sorted({*FIRST, 5, 10, 15, 20})),
        ({"max_steps": 9}, [n for n in FIRST if n < 9] + [9]),
        ({"callbacks": [ModelCheckpoint(every_n_train_steps=4)]}, sorted({*FIRST, *range(4, BATCHES, 4)})),
    ],
    ids=["epoch", "epochs", "few", "validations", "ends early", "steps are saved"],
)
def test_sync_interval_grows(options, expected, mixtures, tmp_path):
    data, looks = Judged(sentences(BATCHES), batch_size=1), Looks()
    callbacks = [*options.pop("callbacks", []), looks]
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    limits = {"max_epochs": 1, "accelerator": "cpu", "default_root_dir": tmp_path, **options}
    trainer = pl.Trainer(callbacks=callbacks, enable_checkpointing=len(callbacks) > 1, **limits, **quiet)
    trainer.fit(make_tagger(data, PerceptronLoss(), Additive), datamodule=data)
    assert mixtures == expected
    assert looks.mixed
    assert all(looks.mixed)


def test_averages_in_checkpoints(mixtures, monkeypatch, tmp_path):
    sync = ParameterAveragingLearner.sync

    def ahead(self):  # another process has made more steps, and moved all weights
        if needed := sync(self):
            self.optimizer.param_groups[0]["steps"] += 1000
            for p in self.optimizer.moved_weights:
                p.data += 1.0
        return needed

    monkeypatch.setattr(ParameterAveragingLearner, "sync", ahead)
    data = Judged(sentences(BATCHES), batch_size=1)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    limits = {"max_epochs": 1, "accelerator": "cpu", "default_root_dir": tmp_path, "limit_val_batches": 0}
    saves = ModelCheckpoint(tmp_path, filename="{step}", every_n_train_steps=3, save_top_k=-1)
    pl.Trainer(callbacks=[saves], **limits, **quiet).fit(make_tagger(data, PerceptronLoss(), Additive), datamodule=data)
    assert not {3, 6} & {*FIRST}
    saved = [read_checkpoint(tmp_path / f"step={n}.ckpt") for n in (3, 6)]
    steps = [one["optimizer_states"][0]["param_groups"][0]["steps"] for one in saved]
    assert steps == [2003, 5006]  # mixed after mini-batches 2 and 3, then 4, 5 and 6
    means = [float(one["state_dict"]["scorer.node"].mean()) for one in saved]
    assert means == pytest.approx([2, 5], abs=0.5)
