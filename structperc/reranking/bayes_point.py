"""Bayes-point initialisation: training starts from the mean of several single passes over reshuffled data."""

import random
import signal
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import cast

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities.seed import isolate_rng
from safetensors.torch import load, save
from torch import Tensor, nn
from torch.optim import Optimizer

from structperc.datamodules.base import BatchForm, SequenceDataModule
from structperc.datamodules.distributed import single_process
from structperc.datamodules.sampler import ResumableSampler
from structperc.errors import InputError
from structperc.progress import bar
from structperc.signals import delay_interrupt
from structperc.structures import Batch, FlatBatch
from structperc.taggers.learning import SequentialTraining
from structperc.taggers.tagger import Tagger

FIRST = 2**31  # pass i has the order of epoch FIRST + i, beyond any training

Weights = dict[str, Tensor]  # by parameter name


def bayes_point(
    tagger: Tagger, data: SequenceDataModule, passes: int = 10, processes: int = 1, show: bool = False
) -> Weights:
    """Return the mean of the final weights of several single passes over reshuffled data.

    This is the Bayes-point initialisation of Kazama & Torisawa 2007, §4.3.

    Each pass starts from the current weights (the paper: zeros, as in a new tagger), takes the training steps of one
    epoch with a new optimizer, and returns its last weights, not their average. Pass i has the order of epoch
    2**31 + i of the data's seed. Trainer options that change a step or shorten an epoch (clipping, accumulation,
    precision, limits) have no effect on passes. The mean covers every trainable parameter and is taken in float64, in
    the order of the passes. The tagger's weights and the random state of torch, numpy and Python are restored.

    Up to `processes` passes run at the same time in forked processes. Where processes cannot be forked, and with CUDA,
    the passes run one after the other. The result is the same bit for bit: a pass depends only on the initial weights,
    the seed and its number, and runs on one thread, since some sums (the norm of passive-aggressive updates, dense
    gradients) depend on the number of threads.

    Args:
        tagger: Tagger with allocated weights, on its device.
        data: Data module whose training split is encoded.
        passes: Number of passes.
        processes: Number of passes that run at the same time; each needs memory for the weights and the state of the
            optimizer.
        show: Show a progress bar.

    Returns:
        The mean weights by the name of the parameter.

    Raises:
        InputError: `passes` or `processes` is below 1, or the process of a pass died.
        RuntimeError: A pass failed in its process; the notes contain the traceback.
    """
    check_numbers(passes, processes)
    start = {name: weights.clone() for name, weights in learning_parameters(tagger).items()}
    sums = {name: torch.zeros_like(weights, dtype=torch.float64) for name, weights in start.items()}
    work = partial(one_pass, tagger, data, start)
    # Forks need a system that has them, and no CUDA, which they break.
    can_fork = "fork" in get_all_start_methods() and tagger.device.type == "cpu" and not torch.cuda.is_initialized()
    run = partial(run_forked, processes=processes) if can_fork and min(passes, processes) > 1 else run_serial
    with preserve_state(tagger, start), closing(run(work, passes)) as results:
        for weights in bar(results, "Bayes point", passes, show):
            for name, total in sums.items():
                total += weights[name]
    return {name: (total / passes).to(start[name].dtype) for name, total in sums.items()}


class BayesPoint(pl.Callback):
    """Callback that starts training from the Bayes point of the training data.

    Kazama & Torisawa 2007, §4.3: the weights before the first epoch are the mean of the final weights of several single
    passes, each over the training data in another order; see `bayes_point`.

    The callback runs once, before the first epoch of a new training, and does nothing in a resumed one. Every process
    of a distributed training computes the same weights by itself, from all of the training data.

    Args:
        passes: Number of single passes (10 in the paper).
        processes: Number of passes that run at the same time.

    Raises:
        InputError: `passes` or `processes` is below 1. In training: the model is a `GlobalReranker`, whose ranker has
            no gradients.

    Example:
        >>> import pytorch_lightning as pl
        >>> from structperc import FeatureExtractor, Tagger
        >>> from structperc.criteria import PerceptronLoss
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.scorers import SparseLinear
        >>> tagger = Tagger(FeatureExtractor(["w[0]"]), SparseLinear(), PerceptronLoss())
        >>> quiet = dict(logger=False, enable_checkpointing=False)
        >>> quiet |= dict(enable_progress_bar=False, enable_model_summary=False)
        >>> trainer = pl.Trainer(max_epochs=1, callbacks=[BayesPoint(passes=2)], **quiet)
        >>> trainer.fit(tagger, datamodule=Synthetic(train=2, dev=0, test=0))
        >>> bool(tagger.scorer.node.any())  # trained weights
        True
    """

    def __init__(self, passes: int = 10, processes: int = 1) -> None:
        check_numbers(passes, processes)
        self.passes, self.processes = passes, processes

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the mean into the parameters unless the run is resumed."""
        if not pl_module.automatic_optimization:
            raise InputError("BayesPoint: not supported with a ranker, which has no gradients; remove it")
        if trainer.ckpt_path or trainer.global_step:
            return
        show = getattr(trainer.progress_bar_callback, "is_enabled", False)
        data: SequenceDataModule = trainer.datamodule  # type: ignore[attr-defined]
        tagger = cast(Tagger, pl_module)
        with single_process():
            write(tagger, bayes_point(tagger, data, self.passes, self.processes, show))


def check_numbers(passes: int, processes: int) -> None:
    """Raise InputError unless both numbers are at least 1."""
    for name, value in (("passes", passes), ("processes", processes)):
        if value < 1:
            raise InputError(f"BayesPoint: {name} must be >= 1, got {value}")


def learning_parameters(module: nn.Module) -> Weights:
    """Return the trainable parameters by name, without gradients; they share memory with the module."""
    return {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}


def write(module: nn.Module, weights: Weights) -> None:
    """Write weights into the parameters in place, so that existing optimizers still refer to them."""
    for name, parameter in learning_parameters(module).items():
        parameter.copy_(weights[name])


# -- one pass ------------------------------------------------------------------------------------------------


def one_pass(tagger: Tagger, data: SequenceDataModule, start: Weights, number: int) -> Weights:
    """Return the weights after pass `number`. They share memory with the tagger: the next pass overwrites them."""
    seed_all(data.seed, FIRST + number)
    write(tagger, start)
    tagger.on_train_epoch_start()
    optimizer = tagger.new_optimizer()
    tagger.bind_optimizer(optimizer)
    for batch in batches(data, tagger.batch_form, FIRST + number):
        take_step(tagger, optimizer, tagger.transfer_batch_to_device(batch, tagger.device, 0))
    return learning_parameters(tagger)


def batches(data: SequenceDataModule, form: BatchForm, epoch: int) -> Iterator[Batch | FlatBatch]:
    """Yield the mini-batches of an epoch of training, on the tagger's device."""
    loader = data.training_batches(form)
    assert isinstance(loader.sampler, ResumableSampler)
    loader.sampler.set_epoch(epoch)
    return iter(loader)


def take_step(tagger: Tagger, optimizer: Optimizer, batch: Batch | FlatBatch) -> None:
    """Take one training step as the trainer does; sequential training has no step of the optimizer."""
    if isinstance(tagger.training_method, SequentialTraining):
        tagger.training_step(batch)
        return

    def closure() -> Tensor:
        loss = tagger.training_step(batch)
        assert loss is not None
        optimizer.zero_grad()
        loss.backward()
        return loss

    optimizer.step(cast(Callable[[], float], closure))


def seed_all(*numbers: int) -> None:
    """Seed the random generators of torch, numpy and Python from some numbers."""
    seed = int(np.random.SeedSequence(numbers).generate_state(1)[0])
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@contextmanager
def preserve_state(tagger: Tagger, start: Weights) -> Iterator[None]:
    """Use one thread within the block; then restore weights, gradients, random state and number of threads."""
    threads, method = torch.get_num_threads(), tagger.training_method
    torch.set_num_threads(1)
    try:
        with isolate_rng(
            include_cuda=tagger.device.type == "cuda"
        ):  # otherwise it would start CUDA, which excludes forks
            yield
    finally:
        torch.set_num_threads(threads)
        write(tagger, start)
        tagger.zero_grad()
        tagger.training_method = method


# -- all passes ----------------------------------------------------------------------------------------------

Work = Callable[[int], Weights]


def run_serial(work: Work, passes: int) -> Generator[Weights, None, None]:
    """Yield work(0), ..., work(passes - 1), which run one after the other in this process."""
    for number in range(passes):
        yield work(number)


def run_forked(work: Work, passes: int, processes: int) -> Generator[Weights, None, None]:
    """Yield the results of `run_serial`; each pass runs in a forked process, up to `processes` ahead of the consumer.

    All processes end with the generator. joblib's pools would pickle tagger and data, which forks share with the
    parent. Each pass has a pipe, so that the parent notices the end of a process that is killed while it sends its
    weights; `ProcessPoolExecutor` would hang.
    """
    running: deque[tuple[BaseProcess, Connection]] = deque()
    try:
        for number in range(passes):
            while len(running) < min(processes, passes - number):
                with delay_interrupt():  # until the process is among those that are ended
                    running.append(launch(work, number + len(running)))
            weights = receive(*running[0], number)
            running.popleft()
            yield weights
    finally:
        for process, pipe in running:
            process.kill()
            process.join()
            pipe.close()


def launch(work: Work, number: int) -> tuple[BaseProcess, Connection]:
    """Start a pass in a forked process; return the process and the pipe for its result."""
    context = get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=send_result, args=(theirs, work, number), daemon=True)
    process.start()
    theirs.close()  # the pipe then ends with the process
    return process, ours


def send_result(pipe: Connection, work: Work, number: int) -> None:
    """Run a pass in the forked process, and send its weights or its error through the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent ends its processes
    torch.set_num_threads(1)  # the parent's threads are not forked: work for them would hang
    result: bytes | Exception
    try:
        result = save({name: w.contiguous() for name, w in work(number).items()})
    except Exception as error:  # sent as text, since errors cannot always be pickled
        message = f"Bayes point, pass {number + 1}: {type(error).__name__}: {error}"
        result = InputError(str(error)) if isinstance(error, InputError) else RuntimeError(message)
        result.add_note(traceback.format_exc())
    pipe.send(result)


def receive(process: BaseProcess, pipe: Connection, number: int) -> Weights:
    """Return the weights of a pass, or raise its error."""
    try:
        result = pipe.recv()
    except (EOFError, OSError):  # before or within a message
        process.join(timeout=10)
        died = f"BayesPoint: the process of pass {number + 1} ended with exit code {process.exitcode}"
        raise InputError(f"{died}, perhaps out of memory: set fewer processes") from None
    if isinstance(result, Exception):
        raise result
    process.join()
    pipe.close()
    return load(result)
