"""Messages of Lightning: notices that are hidden, and errors about options as one line that names the option."""

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

WARNINGS = (  # without a category of their own
    "Checkpoint directory .* exists and is not empty",  # a resumed run continues in its own folder
    "Be aware that when using `ckpt_path`",  # callbacks without options are added by the program itself
    "Total length of .* across ranks is zero",  # no development data, so none to validate with
    ".*LeafSpec.* is deprecated",
    r".*monitor='dev/score'\)` could not find the monitored key",  # of an epoch cut short, which is not validated
)
LOGGERS = (  # their notices (hardware, seeds, checkpoints, ends of trainings) are those of the program in other words
    "pytorch_lightning.accelerators.cuda",
    "pytorch_lightning.utilities.rank_zero",
    "pytorch_lightning.trainer.connectors.signal_connector",
    "lightning_fabric.utilities.seed",
)


def hide_lightning_messages() -> None:
    """Hide, from now on, the warnings and messages of Lightning that only programmers can act on."""
    warnings.filterwarnings("ignore", category=PossibleUserWarning)
    for warning in WARNINGS:
        warnings.filterwarnings("ignore", message=warning)
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("pytorch_lightning.structperc").addFilter(_is_of_first_process)


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


def _is_of_first_process(record: logging.LogRecord) -> bool:
    """Whether a message is a warning or of the first of several processes that train together."""
    return record.levelno >= logging.WARNING or not getattr(rank_zero_only, "rank", 0)


LEAST = {  # which Lightning does not check
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
ADVICE = {  # what optimizers and callbacks cannot do -> where they are configured, and what to do
    "sparse gradients": ("model.optimizer", "; or set model.scorer.init_args.sparse_grad: false"),
    "does not allow for gradient clipping": (
        "model.optimizer",
        "; set its option fused: false, or leave out trainer.gradient_clip_val",
    ),
    "Early stopping conditioned on metric": ("trainer.callbacks", ""),
}
LIGHTNING = ("pytorch_lightning.", "lightning_fabric.")


@contextmanager
def named_errors(options: Mapping[str, Any]) -> Iterator[None]:
    """Raise InputError, which names the option, if no trainer can be made of these options within the block."""
    _check_numbers(options)
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise _first_wrong(options, error) from error


def _check_numbers(options: Mapping[str, Any]) -> None:
    """Raise InputError for numbers that are too small or too large, and for an option that sequences do not go with."""
    for name, least in LEAST.items():
        value = options.get(name)
        if value is not None and value < least:
            raise InputError(f"trainer.{name} must be >= {least}, got {value}")
    for name in ABOVE_ZERO:
        if isinstance(options.get(name), int | float) and options[name] == 0:
            raise InputError(f"trainer.{name} must be > 0, got {options[name]}")
    if options.get("overfit_batches"):
        raise InputError("trainer.overfit_batches is not supported; leave it out, and name a small file")
    for name, most in MOST.items():
        value = options.get(name)
        if value is not None and value > most:
            raise InputError(f"trainer.{name} must be <= {most}, got {value}: such a training never ends")


def _first_wrong(options: Mapping[str, Any], error: Exception) -> InputError:
    """The error of the first option with which no trainer can be made, given those before it."""
    fine: dict[str, Any] = {}
    with at_level(logging.WARNING, LOGGERS):
        for name in (name for name in DEFAULTS if name in options and options[name] != DEFAULTS[name]):
            fine[name] = options[name]
            try:
                pl.Trainer(**{option: _copied(value) for option, value in fine.items()})
            except Exception as own:
                return InputError(f"trainer.{name}: {_line(own)}")
    return InputError(f"trainer: {_line(error)}")


@contextmanager
def input_errors() -> Iterator[None]:
    """Turn complaints of Lightning about its use, and of optimizers about their options, into InputErrors."""
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
    """The name of the module that an error comes from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


def _copied(value: Any) -> Any:
    """Trainers add to lists that they get."""
    return [*value] if isinstance(value, list) else value
