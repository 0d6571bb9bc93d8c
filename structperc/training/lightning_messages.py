"""Messages of Lightning: hidden notices, and errors about options as one line with the option's name."""

import inspect
import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytorch_lightning as pl
from lightning_fabric.utilities.warnings import PossibleUserWarning
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from structperc.errors import InputError

WARNINGS = (  # without a category
    "Checkpoint directory .* exists and is not empty",  # a resumed run continues in its folder
    "Be aware that when using `ckpt_path`",  # the program adds callbacks without options
    "Total length of .* across ranks is zero",  # no development data
    ".*LeafSpec.* is deprecated",
    r".*monitor='dev/score'\)` could not find the monitored key",  # an interrupted epoch without validation
)
LOGGERS = (  # their notices (hardware, seeds, checkpoints, ends of trainings) repeat those of the program
    "pytorch_lightning.accelerators.cuda",
    "pytorch_lightning.utilities.rank_zero",
    "pytorch_lightning.trainer.connectors.signal_connector",
    "lightning_fabric.utilities.seed",
)


def hide_lightning_messages() -> None:
    """Hide warnings and messages of Lightning that users do not need.

    They repeat what the program logs, or concern only its developers. The commands call this; call it in a script that
    trains by `pl.Trainer` for the same output.

    Example:
        >>> import logging
        >>> hide_lightning_messages()
        >>> logging.getLogger("pytorch_lightning.utilities.rank_zero").level == logging.WARNING
        True
    """
    warnings.filterwarnings("ignore", category=PossibleUserWarning)
    for warning in WARNINGS:
        warnings.filterwarnings("ignore", message=warning)
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("pytorch_lightning.structperc").addFilter(_is_shown)


@contextmanager
def at_level(level: int, names: Sequence[str]) -> Iterator[None]:
    """Give loggers this level within the block."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, before in zip(loggers, levels, strict=True):
            logger.setLevel(before)


def _is_shown(record: logging.LogRecord) -> bool:
    """Return True for warnings, and for messages of the first of several processes."""
    return record.levelno >= logging.WARNING or not getattr(rank_zero_only, "rank", 0)


LEAST = {  # not checked by Lightning
    "accumulate_grad_batches": 1,
    "check_val_every_n_epoch": 1,
    "gradient_clip_val": 0,
    "log_every_n_steps": 0,
    "min_epochs": 0,
    "min_steps": 0,
    "num_sanity_val_steps": -1,
    "reload_dataloaders_every_n_epochs": 0,
}
MOST = {"max_epochs": 10**6, "min_epochs": 10**6}
ABOVE_ZERO = ("limit_train_batches", "val_check_interval")
DEFAULTS = {name: option.default for name, option in inspect.signature(pl.Trainer).parameters.items()}
ADVICE = {  # part of an error message -> option, advice
    "sparse gradients": (
        "model.optimizer",
        "; use structperc.optim.LazyAdamW, or set sparse_grad: false of all linear scorers in model.scorer",
    ),
    "does not allow for gradient clipping": (
        "model.optimizer",
        "; set its option fused: false, or remove trainer.gradient_clip_val",
    ),
    "Early stopping conditioned on metric": ("trainer.callbacks", ""),
}
LIGHTNING = ("pytorch_lightning.", "lightning_fabric.")


@contextmanager
def named_errors(options: Mapping[str, Any]) -> Iterator[None]:
    """Raise InputError with the name of the wrong option if creating a trainer fails within the block."""
    _check_numbers(options)
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise _first_wrong(options, error) from error


def _check_numbers(options: Mapping[str, Any]) -> None:
    """Raise InputError for numbers that are too small or too large."""
    for name, least in LEAST.items():
        value = options.get(name)
        if value is not None and value < least:
            raise InputError(f"trainer.{name} must be >= {least}, got {value}")
    for name in ABOVE_ZERO:
        if isinstance(options.get(name), int | float) and options[name] == 0:
            raise InputError(f"trainer.{name} must be > 0, got {options[name]}")
    for name, most in MOST.items():
        value = options.get(name)
        if value is not None and value > most:
            raise InputError(f"trainer.{name} must be <= {most}, got {value}: such a training never ends")


def _first_wrong(options: Mapping[str, Any], error: Exception) -> InputError:
    """Return the error of the first wrong option, given those before it."""
    fine: dict[str, Any] = {}
    with at_level(logging.WARNING, LOGGERS):
        for name in (name for name in DEFAULTS if name in options and options[name] != DEFAULTS[name]):
            fine[name] = options[name]
            try:
                copies: dict[str, Any] = {n: [*v] if isinstance(v, list) else v for n, v in fine.items()}
                pl.Trainer(**copies)  # trainers append to lists
            except Exception as own:
                advice = "; set it to cpu, or to auto" if "backend found" in str(own) else ""
                return InputError(f"trainer.{name}: {_line(own)}{advice}")
    return InputError(f"trainer: {_line(error)}")


@contextmanager
def input_errors() -> Iterator[None]:
    """Turn errors of Lightning about its use, and of optimizers about their options, into InputErrors."""
    try:
        yield
    except InputError:
        raise
    except (ValueError, TypeError, MisconfigurationException) as error:
        if isinstance(error, MisconfigurationException) or _raised_in(error).startswith(LIGHTNING):
            named = [word for word in re.findall(r"[`(](\w+)[`=]", str(error)) if word in DEFAULTS]
            raise InputError(f"trainer.{named[0]}: {_line(error)}" if named else _line(error)) from error
        if type(error) is ValueError and _raised_in(error).startswith("torch.optim."):
            raise InputError(f"model.optimizer: {_line(error)}") from error
        raise
    except RuntimeError as error:
        for words, (place, advice) in ADVICE.items():
            if words in str(error):
                raise InputError(f"{place}: {_line(error)}{advice}") from error
        raise


def _raised_in(error: Exception) -> str:
    """Return the name of the module that raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
