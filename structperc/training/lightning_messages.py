"""Notices that are hidden: those that only programmers can act on, and what the first of several processes says."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from pytorch_lightning.utilities.rank_zero import rank_zero_only

from structperc.log_levels import at_level

WARNINGS = (
    "Checkpoint directory .* exists and is not empty",  # a resumed run goes on in its own folder
    "Be aware that when using `ckpt_path`",  # callbacks without options are added by the program itself
    "The number of training batches",
    "Total length of .* across ranks is zero",  # no development data, so none to validate with
    ".*LeafSpec.* is deprecated",
    r".*monitor='dev/score'\)` could not find the monitored key",  # of an epoch cut short, which is not validated
    "Found .* module.* in eval mode at the start of training",  # the first model of a re-ranker
    "The '.*_dataloader' does not have many workers",  # batches are cut from arrays in memory
    "It is recommended to use `self.log.*sync_dist",  # what is logged is the same in all processes
)
MESSAGES = (
    "litlogger",
    "GPU available: False",
    "TPU available",
    "LOCAL_RANK: ",
    "that has Tensor Cores",  # advice about precision to those who write programs
    "Seed set to",
    "Restoring states",
    "`Trainer.fit` stopped: `max_epochs=",
    "to estimate number of stepping batches",  # which a schedule of learning rates asks for
    "Detected KeyboardInterrupt",  # the program says how to go on
    "Received SIGTERM",
)
LOGGERS = (
    "pytorch_lightning.accelerators.cuda",
    "pytorch_lightning.utilities.rank_zero",
    "pytorch_lightning.trainer.connectors.signal_connector",
    "lightning_fabric.utilities.seed",
)


def hide_lightning_messages() -> None:
    """Hide, from now on, the warnings and messages of Lightning that only programmers can act on."""
    for warning in WARNINGS:
        warnings.filterwarnings("ignore", message=warning)
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_tells)
    logging.getLogger("pytorch_lightning.structperc").addFilter(_is_of_the_first)


@contextmanager
def quiet() -> Iterator[None]:
    """Hide, within the block, the notices of trainers that are made to find mistakes; warnings are still shown."""
    with at_level(logging.WARNING, LOGGERS):
        yield


def _tells(record: logging.LogRecord) -> bool:
    """Whether a message is for users."""
    return not any(words in record.getMessage() for words in MESSAGES)


def _is_of_the_first(record: logging.LogRecord) -> bool:
    """Whether nobody else says it: of several processes that train together the first one tells how they get on."""
    return record.levelno >= logging.WARNING or not getattr(rank_zero_only, "rank", 0)
