"""How many sequences are learned in a step where nobody says it; what processes that train together do besides."""

import pytest
import torch
import torch.distributed as dist

from structperc.criteria import CRFLoss, PerceptronLoss
from structperc.datamodules.distributed import leave_process_group, process_group
from structperc.optim import Perceptron as Additive
from tests.tiny import Sentences, fit, make_tagger, sentences

ROWS = 21


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize(
    ("criterion", "optimizer", "given", "steps"),
    [
        (PerceptronLoss(), Additive, {}, 1),  # one after the other: all that is below 65,000 tokens
        (PerceptronLoss(), Additive, {"batch_size": 5}, 5),
        (CRFLoss(), torch.optim.SGD, {}, 3),  # eight at a time
    ],
    ids=["online", "given", "together"],
)
def test_default_batch_size(criterion, optimizer, given, steps, shuffle):
    data = Sentences(sentences(ROWS), shuffle=shuffle, **given)
    make = optimizer if optimizer is Additive else lambda p: optimizer(p, lr=0.1)
    trainer = fit(make_tagger(data, criterion, make), data, epochs=1)
    assert trainer.global_step == steps


def test_a_group_is_left_once(tmp_path):
    leave_process_group()
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    leave_process_group()
    assert not dist.is_initialized()
    assert process_group().size == 1


def test_the_program_leaves_at_its_end(runs, monkeypatch):
    left = []
    monkeypatch.setattr("structperc.training.program.atexit.register", left.append)
    assert runs("fit", "--trainer.max_epochs=1") == 0
    assert leave_process_group in left
