"""Training in memory without files, and copying and pickling of taggers."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any, NamedTuple

import pytorch_lightning as pl
import torch
from torch import Tensor

from structperc.builder import Builder
from structperc.data.corpus import Corpus
from structperc.datamodules import SequenceDataModule
from structperc.taggers import Tagger
from structperc.training.lightning_messages import at_level


class TaggerState(NamedTuple):
    """Configuration and tensors of a saved model, and the trusted modules of its parts."""

    config: dict[str, Any]
    tensors: dict[str, Tensor]
    trusted: tuple[str, ...]


def state_of(tagger: Tagger) -> TaggerState:
    """Return the state of a tagger with its current weights."""
    return TaggerState(*tagger.to_state(), Builder.trusting(tagger, *tagger.features.user_objects).trusted)


def tagger_of(state: TaggerState) -> Tagger:
    """Return a tagger with this state and without a trainer."""
    tagger = Tagger.from_state(state.config, state.tensors, Builder(state.trusted))
    tagger.features.progress = False
    return tagger


LOGGERS = ("pytorch_lightning", "lightning_fabric")
_TRAINING = RLock()  # trainers and loggers are shared by the threads of a process


class InMemoryData(SequenceDataModule):
    """A corpus as training data, without other splits."""

    def __init__(self, corpus: Corpus, **options: Any) -> None:
        super().__init__(**options)
        self.training_corpus = corpus

    def read(self, split: str) -> tuple[str, Corpus] | None:
        """Return the training data; None for other splits."""
        return (self.training_corpus.name, self.training_corpus) if split == "train" else None


def fit_tagger(
    tagger: Tagger, data: SequenceDataModule, iterations: int, seed: int, verbose: bool, metrics: bool
) -> tuple[Tagger, int]:
    """Train a tagger; return a copy with evaluation weights and without a trainer, and the number of iterations.

    Args:
        tagger: The tagger.
        data: The training data.
        iterations: Maximum number of epochs.
        seed: Seed of random numbers.
        verbose: Show a progress bar and messages.
        metrics: Compute the metrics of epochs, which a schedule of learning rates may read; slow for small data.
    """
    with _TRAINING, _silence(verbose), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        trainer = pl.Trainer(
            max_epochs=iterations,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_model_summary=False,
            enable_progress_bar=verbose,
            barebones=not (verbose or metrics),
            limit_val_batches=0,
        )
        trainer.fit(tagger, datamodule=data)
        return tagger_of(state_of(tagger)), trainer.current_epoch


@contextmanager
def _silence(verbose: bool) -> Iterator[None]:
    """Hide warnings and log messages of training within the block, unless verbose."""
    if verbose:
        yield
        return
    with warnings.catch_warnings(), at_level(logging.ERROR, LOGGERS):
        warnings.simplefilter("ignore")
        yield
