"""Bayes-point initialisation against a naive loop; in processes, in the trainer and in the program."""

import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from functools import partial
from multiprocessing import active_children, get_all_start_methods

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch import nn

from structperc.chain import KBest
from structperc.criteria import HingeLoss, MarginLoss, PerceptronLoss
from structperc.data.labels import LabelSet
from structperc.datamodules.sampler import LengthBatchSampler
from structperc.datamodules.sources import Synthetic
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.optim import PassiveAggressive
from structperc.optim import Perceptron as Additive
from structperc.reranking import bayes_point as module
from structperc.reranking.bayes_point import BayesPoint, bayes_point, learning_parameters, run_forked, write
from structperc.scorers import SparseLinear
from structperc.signals import delay_interrupt
from structperc.taggers.tagger import Tagger
from tests.checkpoints import assert_same, assert_same_training
from tests.tiny import fit

forks = pytest.mark.skipif("fork" not in get_all_start_methods(), reason="this system cannot fork")
LEARNERS = {
    "perceptron": (PerceptronLoss(), Additive),
    "margin": (MarginLoss(C=5), partial(Additive, lr=0.5, average=False)),
    "passive-aggressive": (HingeLoss(), PassiveAggressive),
    "sgd": (HingeLoss(), partial(torch.optim.SGD, lr=0.1)),
}


def passes():
    """Processes that this one has forked; those from which new tests are forked are others."""
    return [child for child in active_children() if type(child).__name__ == "ForkProcess"]


@pytest.fixture
def data():
    return Synthetic(unit="document", train=6, dev=2, test=2, batch_size=1, seed=5)


def prepared(data, criterion=None, optimizer=Additive, cls=Tagger, sparse=True, tagger=None):
    """A tagger with zero weights, as `setup` leaves it."""
    if tagger is None:
        features = FeatureExtractor(node=["kazama2007"])
        tagger = cls(features, SparseLinear(sparse_grad=sparse), criterion or PerceptronLoss(), KBest(2), optimizer)
    train = data.corpus("train")
    tagger.features.fit(train)
    tagger.allocate(LabelSet.from_corpus(train.columns["label"], data.scheme))
    data.encode(tagger.encode, "fit")
    return tagger


def weights_of(tagger):
    return {name: w.clone() for name, w in learning_parameters(tagger).items()}


def rows(data, epoch):
    """The mini-batches of an epoch."""
    order = LengthBatchSampler(data.encoded("train").corpus.lengths, data.batch_size, shuffle=True, seed=data.seed)
    order.set_epoch(epoch)
    return list(order)


def naive_steps(tagger, data, epoch, lr):
    """Yields the weights after every step of w <- w - lr * gradient; the tagger must give dense gradients."""
    parameters = [p for p in tagger.parameters() if p.requires_grad]
    for chosen in rows(data, epoch):
        loss = tagger.training_step(data.encoded("train")[chosen])
        with torch.no_grad():
            for p, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                p.sub_(gradient, alpha=lr)
        yield weights_of(tagger)


def naive_bayes_point(tagger, data, passes, lr=1.0):
    start, finals = weights_of(tagger), []
    for i in range(passes):
        write(tagger, start)
        tagger.on_train_epoch_start()
        *_, final = naive_steps(tagger, data, 2**31 + i, lr)
        finals.append(final)
    write(tagger, start)
    return {name: (sum(f[name].double() for f in finals) / passes).to(start[name].dtype) for name in start}


# -- the function --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("learner", "lr", "processes"),
    [("perceptron", 1.0, 1), pytest.param("margin", 0.5, 2, marks=forks), pytest.param("margin", 0.5, 9, marks=forks)],
)
def test_equals_a_naive_loop(data, learner, lr, processes):
    expected = naive_bayes_point(prepared(data, LEARNERS[learner][0], sparse=False), data, 3, lr)
    found = bayes_point(prepared(data, *LEARNERS[learner]), data, 3, processes)
    assert_same(found, expected)
    assert all(found[name].any() for name in found)
    assert not passes()


def test_start_at_present_weights(data):
    taggers = [prepared(data), prepared(data, sparse=False)]
    torch.manual_seed(1)
    start = {name: torch.randint(-2, 3, w.shape).float() for name, w in learning_parameters(taggers[0]).items()}
    for tagger in taggers:
        write(tagger, start)
    assert_same(bayes_point(taggers[0], data, 2), naive_bayes_point(taggers[1], data, 2))
    assert_same(weights_of(taggers[0]), start)
    assert all(p.grad is None for p in taggers[0].parameters())


class Noisy(Tagger):
    """Draws from every random generator, as dropout does, and has weights outside of its scorer."""

    def allocate(self, labels):
        super().allocate(labels)
        self.extra = nn.Linear(1, len(labels), dtype=torch.float64)
        nn.init.zeros_(self.extra.weight)
        nn.init.zeros_(self.extra.bias)
        self.extra.bias.requires_grad_(False)
        self.threads = set()

    def configure_optimizers(self):
        return self.optimizer([p for p in self.parameters() if p.requires_grad])

    def forward(self, batch):
        noise = torch.rand(1).double() + np.random.rand() + random.random()
        lattice = super().forward(batch)
        return lattice._replace(unary=(lattice.unary + self.extra(noise)).float())

    def training_step(self, batch, batch_idx=0):
        self.threads.add(torch.get_num_threads())
        return super().training_step(batch, batch_idx)


def test_random_state_is_unchanged(data):
    def states():
        by_numpy = [np.asarray(part).tolist() for part in np.random.get_state()]
        return torch.get_rng_state().tolist(), by_numpy, random.getstate()

    tagger = prepared(data, cls=Noisy)
    before = states()
    found = bayes_point(tagger, data, 2)
    assert states() == before
    assert found.keys() == {"scorer.node", "scorer.transition", "extra.weight"}  # those that are trained
    assert found["extra.weight"].dtype == torch.float64
    assert found["extra.weight"].any()


@forks
def test_independence_of_the_random_state(data):
    found = []
    for processes in (1, 2):
        torch.rand(processes), np.random.rand(processes), random.random()
        found.append(bayes_point(prepared(data, cls=Noisy), data, 3, processes))
    assert_same(found[0], found[1])


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_passes_run_on_one_thread(data, two_threads):
    tagger = prepared(data, cls=Noisy)
    bayes_point(tagger, data, 2)
    assert tagger.threads == {1}
    assert torch.get_num_threads() == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_same_on_cuda(data):
    found = bayes_point(prepared(data).cuda(), data, 2, 2)
    assert all(w.is_cuda for w in found.values())
    assert_same({name: w.cpu() for name, w in found.items()}, bayes_point(prepared(data), data, 2))


@pytest.mark.parametrize("name", ["passes", "processes"])
def test_bad_numbers(data, name):
    for call in (BayesPoint, partial(bayes_point, prepared(data), data)):
        with pytest.raises(InputError, match=f"{name} .*0"):
            call(**{name: 0})


# -- processes -----------------------------------------------------------------------------------------------


def slow_first(number):
    time.sleep(0.3 if number == 0 else 0)
    return {"w": torch.tensor([number, os.getpid()])}


@forks
def test_order_of_results():
    found, processes = [], 3
    for result in run_forked(slow_first, 7, processes):
        assert len(passes()) <= processes
        found.append(result["w"].tolist())
    assert [number for number, _ in found] == list(range(7))
    assert len({os.getpid(), *(process for _, process in found)}) == 8
    assert not passes()


@forks
def test_large_and_odd_weights_come_through(two_threads):
    torch.ones(1000, 1000).mul(2)  # starts threads, which processes do not inherit

    def work(number):
        assert torch.get_num_threads() == 1
        return {"big": torch.full((1000, 1000), number), "none": torch.zeros(0, 3), "half": torch.ones(2).bfloat16()}

    for number, result in enumerate(run_forked(work, 3, 3)):
        assert result["big"].eq(number).all()
        assert result["none"].shape == (0, 3)
        assert result["half"].dtype == torch.bfloat16


def missing(number):
    return {}["weights"] if number == 1 else slow_first(number)


def refused(number):
    raise InputError("model.search.k is 1: set it >= 2")


def killed(number):
    os.kill(os.getpid(), signal.SIGKILL)


def interrupted(number):
    if number == 0:
        time.sleep(0.5)  # by then the parent has started the others and waits
        os.kill(os.getppid(), signal.SIGINT)
    time.sleep(60)


@forks
@pytest.mark.parametrize(
    ("work", "kind", "message"),
    [
        (missing, RuntimeError, "Bayes point, pass 2: KeyError: 'weights'"),
        (refused, InputError, "model.search.k is 1: "),
        (killed, InputError, "BayesPoint: the process of pass 1"),
    ],
)
def test_failures_leave_no_process(work, kind, message):
    with pytest.raises(kind) as caught:
        list(run_forked(work, 5, 3))
    assert str(caught.value).startswith(message)
    assert work is killed or f"in {work.__name__}" in caught.value.__notes__[0]
    assert not passes()


@forks
def test_a_death_while_weights_are_sent():
    def work(number):
        if number == 1:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return {"w": torch.zeros(4_000_000 * number)}  # more than a pipe holds: waits for its reader

    results = run_forked(work, 2, 2)
    next(results)
    time.sleep(1)
    with pytest.raises(InputError, match=r"pass 2 .*-9"):
        next(results)
    assert not passes()


@forks
@pytest.mark.usefixtures("heard")
def test_an_interrupted_wait_leaves_no_process():
    with pytest.raises(KeyboardInterrupt):
        list(run_forked(interrupted, 5, 3))
    assert not passes()


@forks
def test_stopped_consumer():
    results = run_forked(lambda number: time.sleep(60 if number else 0) or {}, 9, 3)
    next(results)
    assert len(passes()) == 2
    results.close()
    assert not passes()


@forks
def test_interruption_restores_weights(data, monkeypatch, two_threads):
    def interrupting(results, *options, **more):
        for i, result in enumerate(results):
            if i == 1:
                raise KeyboardInterrupt
            yield result

    monkeypatch.setattr(module, "bar", interrupting)
    tagger = prepared(data)
    with pytest.raises(KeyboardInterrupt):
        bayes_point(tagger, data, 4, 2)
    assert not passes()
    assert not any(w.any() for w in learning_parameters(tagger).values())
    assert torch.get_num_threads() == 2


def wait_in_a_group(started, log):
    """In a process of its own, which leads a group: waits for three passes, and ends."""
    os.setsid()
    sys.stderr = log.open("w")
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def work(number):
        os.write(started, b".")
        try:
            time.sleep(300)
        except KeyboardInterrupt:
            os.write(started, b"!")

    try:
        list(run_forked(work, 3, 2))
    except KeyboardInterrupt:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(1)


@forks
@pytest.mark.slow
def test_ctrl_c_ends_the_whole_group(tmp_path):
    read, write = os.pipe()
    group = os.fork()
    if not group:
        wait_in_a_group(write, tmp_path / "log")
    os.close(write)
    assert os.read(read, 1) + os.read(read, 1) == b".."
    os.killpg(group, signal.SIGINT)
    assert os.waitstatus_to_exitcode(os.waitpid(group, 0)[1]) == 1
    assert os.read(read, 1) == b""  # no pass was interrupted, and none is left
    os.close(read)
    assert (tmp_path / "log").read_text().count("Traceback") == 1


def test_ctrl_c_during_a_fork():
    """Python ignores what callbacks after a fork raise."""
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with delay_interrupt():
            signal.raise_signal(signal.SIGINT)
            assert not seen
        assert seen == [signal.SIGINT]
        with delay_interrupt():
            pass
        assert seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


# -- the callback --------------------------------------------------------------------------------------------


def watched(trainer):
    return {name: float(value) for name, value in trainer.callback_metrics.items()}


@pytest.mark.parametrize("name", ["passive-aggressive", "sgd"])
def test_training_from_the_bayes_point(data, name):
    """Same weights, same counts of the epoch: nothing else of the passes reaches the training."""
    criterion, optimizer = LEARNERS[name]
    taggers = [prepared(data, criterion, optimizer, sparse=name != "sgd") for _ in range(2)]
    for tagger in taggers:
        tagger.fitted = True
    write(taggers[1], bayes_point(taggers[1], data, 3))
    trainers = [fit(taggers[0], data, 1, callbacks=[BayesPoint(3)]), fit(taggers[1], data, 1)]
    assert_same(weights_of(taggers[0]), weights_of(taggers[1]))
    assert watched(trainers[0]) == watched(trainers[1])
    assert watched(trainers[0]).keys() >= {"train/updates", "train/error"}
    bare = prepared(data, criterion, optimizer, sparse=name != "sgd")
    assert watched(fit(bare, data, 1)) != watched(trainers[0])


def test_average_of_steps_after_the_start(data):
    tagger, naive = prepared(data), prepared(data, sparse=False)
    trainer = fit(tagger, data, 1, callbacks=[BayesPoint(3)])
    write(naive, naive_bayes_point(naive, data, 3))
    naive.on_train_epoch_start()
    history = list(naive_steps(naive, data, 0, 1.0))
    trainer.optimizers[0].use_training_weights()
    for name, final in history[-1].items():
        torch.testing.assert_close(learning_parameters(tagger)[name], final)
    assert int(trainer.callback_metrics["train/updates"]) == naive.training_method.sums.updates
    with trainer.optimizers[0].evaluation_weights():
        for name, w in learning_parameters(tagger).items():
            torch.testing.assert_close(w, torch.stack([step[name] for step in history]).double().mean(0).float())


def test_second_fit_of_one_trainer(data):
    class Start(pl.Callback):
        """The weights with which training starts."""

        def on_train_start(self, trainer, pl_module):
            self.weights = weights_of(pl_module)

    tagger, start = prepared(data), Start()
    trainer = fit(tagger, data, 1, callbacks=[BayesPoint(2), start])
    averages = weights_of(tagger)
    trainer.fit_loop.max_epochs = 2
    trainer.fit(tagger, datamodule=data)
    assert trainer.current_epoch == 2
    assert_same(start.weights, averages)  # not a mean of further passes


# -- the program ---------------------------------------------------------------------------------------------


@forks
def test_program_resumes_in_the_same_bits(runs, tmp_path, monkeypatch):
    def with_callback(processes):
        part = {"class_path": "structperc.reranking.BayesPoint", "init_args": {"passes": 2, "processes": processes}}
        path = tmp_path / f"bayes-{processes}.json"
        path.write_text(json.dumps({"trainer": {"callbacks": [part]}}))
        return "-c", str(path)

    starts = []
    monkeypatch.setattr(module, "bayes_point", lambda *given: starts.append(bayes_point(*given)) or starts[-1])
    serial, parallel = with_callback(1), with_callback(2)
    assert runs("fit", "--trainer.max_epochs=2", *parallel) == 0
    assert runs("fit", "--trainer.max_epochs=1", *serial) == 0
    assert len(starts) == 2
    assert_same(*starts)
    assert runs("fit", "--trainer.max_epochs=2", "--ckpt_path=last", *serial) == 0
    assert len(starts) == 2
    assert_same_training(runs.root / "1", runs.root / "2")
