"""Averages beside any optimizer: by naive sums, resumed, and served by taggers and checkpoints."""

from functools import partial

import pytest
import torch

from structperc.criteria import CRFLoss
from structperc.errors import InputError
from structperc.optim import LBFGS, Averaging, InverseTime, Perceptron
from structperc.taggers.checkpoints import use_evaluation_weights
from tests.tiny import Sentences, fit, make_tagger, sentences

ADAM = partial(torch.optim.Adam, lr=0.1)


def weights(n):
    torch.manual_seed(5)
    return [torch.nn.Parameter(torch.randn(3)) for _ in range(n)]


def run(optimizer, parameters, epochs, seen=None):
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
def test_averages_are_those_of_naive_sums(start, decay):
    own, plain, seen = weights(2), weights(2), []
    optimizer = Averaging(own, ADAM, start, decay)
    run(optimizer, own, range(4), seen)
    adam = ADAM(plain)
    adam.begin_epoch = lambda epoch: None
    run(adam, plain, range(4))
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


def test_before_its_first_epoch_the_raw_weights_are_served():
    own = weights(1)
    optimizer = Averaging(own, ADAM, start=3)
    run(optimizer, own, range(3))
    assert optimizer.use_evaluation_weights() == {}


def test_a_resumed_run_is_an_unbroken_one(tmp_path):
    whole, first, second = weights(2), weights(2), weights(2)
    unbroken, before, after = (Averaging(p, ADAM, 1, 0.8) for p in (whole, first, second))
    run(unbroken, whole, range(4))
    run(before, first, range(2))
    torch.save(before.state_dict(), tmp_path / "state.pt")
    with torch.no_grad():
        for p, q in zip(second, first, strict=True):
            p.copy_(q)
    after.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    run(after, second, range(2, 4))
    with unbroken.evaluation_weights(), after.evaluation_weights():
        assert all(torch.equal(p, q) for p, q in zip(whole, second, strict=True))


def test_taggers_and_checkpoints_serve_it():
    data = Sentences(sentences(6, seed=3), batch_size=2)
    tagger = make_tagger(data, CRFLoss(), lambda p: Averaging(p, ADAM), lr_scheduler=InverseTime)
    trainer = fit(tagger, data, 3)
    (optimizer,) = trainer.optimizers
    assert optimizer.averaged == 9
    assert optimizer.active.param_groups[0]["lr"] == pytest.approx(0.1 / 1.15)
    names = [name for name, _ in tagger.named_parameters()]
    checkpoint = {"state_dict": {**tagger.state_dict()}, "optimizer_states": [optimizer.state_dict()]}
    use_evaluation_weights(checkpoint, names)
    with optimizer.evaluation_weights():
        assert all(torch.equal(checkpoint["state_dict"][name], p) for name, p in tagger.named_parameters())
    assert not torch.equal(checkpoint["state_dict"][names[0]], tagger.state_dict()[names[0]])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"of": ADAM, "start": -1}, "Averaging: start must be >= 0, got -1"),
        ({"of": ADAM, "decay": 1.0}, "Averaging: decay must be > 0 and < 1, got 1.0"),
        ({"of": Perceptron}, "Averaging: Perceptron has"),
        ({"of": LBFGS}, "Averaging: LBFGS has"),
    ],
)
def test_refusals(options, complaint):
    with pytest.raises(InputError, match=complaint):
        Averaging(weights(1), **options)
