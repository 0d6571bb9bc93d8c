"""Runs with dropout and random words go on bit for bit; what checkpoints say about random numbers."""

import random
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from structperc.cli.main import main
from structperc.datamodules.distributed import ProcessGroup
from structperc.taggers import callbacks as random_states
from structperc.taggers.callbacks import KEY, RandomStateCheckpoint, random_state, restore_random_state
from tests.checkpoints import assert_same, assert_same_training, checkpoint

NEURAL = """
trainer: {gradient_clip_val: 5}
data: {init_args: {unit: document, batch_size: 2}}
model:
  class_path: structperc.taggers.Tagger
  init_args:
    features: null
    scorer:
      class_path: structperc.scorers.Neural
      init_args:
        encoder:
          class_path: structperc.encoders.BiLSTM
          init_args:
            inputs:
              - {class_path: structperc.encoders.WordEmbedding, init_args: {width: 6, word_dropout: 0.3}}
              - {class_path: structperc.encoders.CharCNN, init_args: {width: 4, characters: 4, dropout: 0.2}}
            hidden: 6
            dropout: 0.5
    criterion: {class_path: structperc.criteria.CRFLoss}
    optimizer: {class_path: torch.optim.Adam, init_args: {lr: 0.01}}
checkpoint: {monitor: epoch, mode: min}
"""
CPU = torch.device("cpu")


@pytest.fixture
def neural(runs, tmp_path):
    """fit of a network with all kinds of dropout, so many epochs; the first one is the best."""
    config = tmp_path / "neural.yaml"
    config.write_text(NEURAL)

    def arguments(epochs, *options):
        few = ["--data.train=6", "--data.dev=3", "--data.test=1"]
        return runs.arguments("fit", f"--config={config}", f"--trainer.max_epochs={epochs}", *few, *options)

    def fit(*arguments):
        assert main(fit.arguments(*arguments)) == 0

    fit.root, fit.arguments = runs.root, arguments
    return fit


def test_network_resumed_from_last_or_best(neural):
    neural(3)
    neural(2)
    shutil.copytree(neural.root / "2", neural.root / "3")
    assert checkpoint(neural.root / "3", "best")["epoch"] == 0
    neural(3, f"--ckpt_path={neural.root / '2' / 'checkpoints' / 'last.ckpt'}")
    neural(3, f"--ckpt_path={neural.root / '3' / 'checkpoints' / 'best.ckpt'}")
    for resumed in ("2", "3"):
        assert_same_training(neural.root / resumed, neural.root / "1")


def test_resumed_with_rare_validation(neural):
    settled = "--trainer.callbacks=[{class_path: structperc.training.StopWhenConverged}]"
    rare = ["--trainer.check_val_every_n_epoch=2", "--checkpoint.mode=max", settled]
    rare += ["--model.criterion=structperc.criteria.PerceptronLoss", "--model.search.k=1"]
    neural(3, *rare)
    neural(2, *rare)
    best = neural.root / "2" / "checkpoints" / "best.ckpt"
    assert checkpoint(neural.root / "2", "best")["epoch"] == 1
    neural(3, f"--ckpt_path={best}", *rare)
    assert_same_training(neural.root / "2", neural.root / "1")
    resumed, whole = checkpoint(neural.root / "2"), checkpoint(neural.root / "1")
    assert_same(resumed["callbacks"]["StopWhenConverged"], whole["callbacks"]["StopWhenConverged"])


def test_resumed_corpus_level_criteria(neural):
    """Dropout draws before the first mini-batch, too."""
    options = ["--model.criterion=structperc.criteria.MCEFLoss", "--model.search.k=2", "--data.shuffle=false"]
    options += ["--model.optimizer=structperc.optim.QuickProp", "--model.optimizer.lr=0.1"]
    options += ["--trainer.gradient_clip_val=null"]
    neural(2, *options)
    neural(1, *options)
    neural(2, "--ckpt_path=last", *options)
    assert_same_training(neural.root / "2", neural.root / "1")


def test_checkpoint_without_random_states(neural, caplog):
    neural(1)
    path = neural.root / "1" / "checkpoints" / "last.ckpt"
    old = torch.load(path, weights_only=True)
    del old[KEY]
    torch.save(old, path)
    with caplog.at_level("WARNING"):
        neural(2, "--ckpt_path=last")
    assert len([record for record in caplog.records if "no random states" in record.getMessage()]) == 1
    assert checkpoint(neural.root / "1")["epoch"] == 1


def test_damaged_random_states(neural, fails, tmp_path):
    neural(1)
    path = neural.root / "1" / "checkpoints" / "last.ckpt"
    whole = torch.load(path, weights_only=True)
    for damage in ({"numpy": {}}, {"torch": torch.zeros(3, dtype=torch.uint8)}, {"python": {"version": 3}}):
        torch.save({**whole, KEY: [{**whole[KEY][0], **damage}]}, path)
        message = fails(*neural.arguments(2, "--ckpt_path=last"))
        assert f"--ckpt_path {path}: the checkpoint is incompatible with this configuration" in message


def draws():
    return torch.rand(3).tolist(), np.random.random(3).tolist(), random.random(), np.random.normal(), random.gauss()


def test_all_generators_are_restored(tmp_path):
    np.random.normal(), random.gauss()  # each keeps a second number for the next call
    torch.save(random_state(CPU), tmp_path / "random_state")
    expected = draws()
    draws()
    restore_random_state(torch.load(tmp_path / "random_state", weights_only=True), CPU)
    assert draws() == expected


def test_states_of_a_device(monkeypatch):
    device, put = torch.device("cuda", 1), []

    class Module:
        def get_rng_state(self):
            return torch.tensor([7], dtype=torch.uint8)

        def set_rng_state(self, state):
            put.append(state)

    monkeypatch.setattr(torch, "get_device_module", lambda given: {device: Module()}[given])
    saved = random_state(device)
    restore_random_state(saved, CPU)
    assert put == []
    restore_random_state(saved, device)
    assert put == [saved["cuda"]]
    restore_random_state(random_state(CPU), device)
    assert len(put) == 1


class Trainer:
    strategy = SimpleNamespace(root_device=CPU)
    train_dataloader = ()


def test_states_of_processes(monkeypatch, caplog):
    process = {}
    monkeypatch.setattr(random_states, "process_group", lambda: process["group"])
    saved, drawn = [], []
    for _ in range(2):
        saved.append(random_state(CPU))
        drawn.append(draws())
    for number in (1, 0):
        process["group"] = ProcessGroup(number, 2)
        callback = RandomStateCheckpoint()
        callback.on_load_checkpoint(Trainer, None, {KEY: saved})
        callback.on_train_epoch_start(Trainer, None)
        assert draws() == drawn[number]
    process["group"] = ProcessGroup(0, 3)
    RandomStateCheckpoint().on_load_checkpoint(Trainer, None, {KEY: saved})
    assert "random states of 2 processes" in caplog.text
