"""What loggers other than the run's own table are told: the configuration, and the scores of the saved model.

Learning curves are logged by Lightning, to all loggers alike.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger

from structperc.errors import InputError

notes = logging.getLogger("pytorch_lightning.structperc")
OF_THE_PLACE = ("default_root_dir", "logger", "enable_progress_bar")  # options of the trainer, not of the training
TOLD = ("seed_everything", "data", "model", "trainer")
SAVED = "model"  # begins the names of scores of the saved model, as in model/dev/score


def told_options(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a configuration that says what is learned and how, without what belongs to the place."""
    told = {name: configuration[name] for name in TOLD if name in configuration}
    trainer = told.get("trainer", {})
    return {**told, "trainer": {name: value for name, value in trainer.items() if name not in OF_THE_PLACE}}


def reach(loggers: Sequence[Logger]) -> None:
    """Begin what loggers that are no files log. Raises InputError for one without network, account or login."""
    for logger in loggers:
        if not isinstance(logger, CSVLogger | TensorBoardLogger):
            with _named(logger):
                getattr(logger, "experiment", None)


def tell_options(loggers: Sequence[Logger], configuration: Mapping[str, Any]) -> None:
    """Log a configuration, in plain values, where it does not stand beside a table already.

    Raises InputError, which names the logger, if one cannot be reached.
    """
    for logger in loggers:
        if not isinstance(logger, CSVLogger):
            with _named(logger):
                logger.log_hyperparams(told_options(configuration))


def tell_scores(
    loggers: Sequence[Logger],
    step: int,
    results: Mapping[str, Mapping[str, float]],
    types: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> None:
    """Log the scores of the saved model and of its types by split, as model/SPLIT/NAME, and end what is logged.

    Tables of CSV have a row for each epoch alone: these scores are in the results of the run. A logger that refuses
    them costs a warning: by now the run is complete.
    """
    scores = {f"{SAVED}/{split}/{name}": score for split, row in results.items() for name, score in row.items()}
    scores |= {f"{SAVED}/{split}/{t}/score": one["score"] for split, row in types.items() for t, one in row.items()}
    for logger in loggers:
        if scores and not isinstance(logger, CSVLogger):
            try:
                _tell_last(logger, scores, step)
            except InputError as error:
                notes.warning("the scores of the saved model are not logged: %s", error)


def _tell_last(logger: Logger, scores: Mapping[str, float], step: int) -> None:
    with _named(logger):
        logger.log_metrics({**scores}, step)
        logger.finalize("success")
        end = getattr(getattr(logger, "experiment", None), "finish", None)
        if callable(end):  # of W&B, whose next run in this process would otherwise be the same
            end()


@contextmanager
def _named(logger: Logger) -> Iterator[None]:
    """What a logger does not do within the block, for want of a network or of a login, becomes an InputError."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"trainer.logger: {type(logger).__name__} cannot be used ({reason})") from error
