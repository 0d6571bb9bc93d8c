"""How many sequences are learned in a step where nobody says it."""

import pytest
import torch

from structperc.criteria import CRFLoss, PerceptronLoss
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
