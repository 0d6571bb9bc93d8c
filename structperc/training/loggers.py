"""Loggers of a run: its table of metrics, its saved configuration, and the values for other loggers.

Lightning logs learning curves to all loggers.
"""

import csv
import io
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger
from pytorch_lightning.loggers.csv_logs import ExperimentWriter
from pytorch_lightning.loggers.logger import rank_zero_experiment

from structperc.builder import Builder
from structperc.constructors import CLASS, OPTIONS, parameters_of
from structperc.data.output import open_atomic, write_errors
from structperc.errors import InputError
from structperc.training.overlays import to_yaml

LOGS = "logs"  # folder of the run's table
FILE_LOGGERS = ("RunLog", "CSVLogger", "TensorBoardLogger")  # their name is that of a folder
LOCAL_OPTIONS = ("default_root_dir", "logger", "enable_progress_bar")  # trainer options without effect on the model
LOGGED = ("seed_everything", "data", "model", "trainer")
SAVED = "model"  # begins the names of scores of the saved model, as in model/dev/score

notes = logging.getLogger("pytorch_lightning.structperc")


class Metrics(ExperimentWriter):
    """The file metrics.csv, which is written whole. Raises InputError with the reason if it cannot be written."""

    def save(self) -> None:
        """Write all rows so far."""
        names = sorted({name for row in self.metrics for name in row})
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, names)
        writer.writeheader()
        writer.writerows(self.metrics)
        with open_atomic(self.metrics_file_path) as file:
            file.write(text.getvalue().encode())


class RunLog(CSVLogger):
    """Lightning's CSVLogger, with a table that is written whole or not at all.

    Args:
        save_dir, name, version, prefix, flush_logs_every_n_steps: See `pytorch_lightning.loggers.CSVLogger`.

    Example:
        >>> log = RunLog("run", name="logs")
        >>> log.log_metrics({"dev/score": 0.875}, step=1)
        >>> log.save()
        >>> print(open("run/logs/version_0/metrics.csv").read())
        dev/score,step
        0.875,1
    """

    @property
    @rank_zero_experiment
    def experiment(self) -> Metrics:
        """The table of the run, created on first use."""
        if not isinstance(self._experiment, Metrics):
            with write_errors(self.log_dir):
                self._experiment = Metrics(self.log_dir)
        return self._experiment


class SaveRunConfig(pl.Callback):
    """Writes config.yaml and passes the configuration to the loggers.

    The file is in the folder of the first file logger, else in the folder of the run; there an evaluation does not
    replace the file of the training. Raises InputError with the reason if it cannot be written, and for an unavailable
    logger.

    Args:
        values: plain values of all options.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values, self.saved = values, False

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Write the configuration, in the first process."""
        if self.saved or not trainer.is_global_zero or trainer.fast_dev_run:  # type: ignore[attr-defined]
            return
        folders = [part.log_dir for part in trainer.loggers if isinstance(part, CSVLogger | TensorBoardLogger)]
        if folders or stage == "fit":
            folder = Path([*folders, trainer.default_root_dir][0])
            with write_errors(folder):
                folder.mkdir(parents=True, exist_ok=True)
            with open_atomic(folder / "config.yaml") as file:
                file.write(to_yaml(self.values).encode())
        for logger in trainer.loggers:  # tables have config.yaml in their folder
            if not isinstance(logger, CSVLogger):
                with _named_errors(logger):
                    logger.log_hyperparams(without_null(logged_options(self.values)))
        self.saved = True


def with_log_folder(logger: Any, builder: Builder) -> Any:
    """Return the configured logger, or each of several, with its options for the folder of the run.

    These are `save_dir` and `name`, if the logger has them; `log_into` sets them.
    """
    if isinstance(logger, list):
        return [with_log_folder(part, builder) for part in logger]
    described = {CLASS: logger} if isinstance(logger, str) else logger
    if not isinstance(described, dict) or CLASS not in described:
        return logger
    try:
        parameters = parameters_of(builder.find(described[CLASS], Logger, "trainer.logger"))
    except InputError:  # raised again later, with file and line
        return logger
    given = described.get(OPTIONS)
    if not isinstance(given, dict | None):
        return logger
    options = {name: value for name, value in (("save_dir", ""), ("name", LOGS)) if name in parameters}
    return {**described, OPTIONS: {**options, **(given or {})}}


def log_into(logger: Any, folder: Path) -> Any:
    """Return the configured logger, or each of several, with the folder of the run unless it has another one.

    A logger that stores the runs of many folders also gets the name of this one, such as quickstart/1.
    """
    if isinstance(logger, list):
        return [log_into(part, folder) for part in logger]
    if not isinstance(logger, dict):
        return logger
    options, name = dict(logger.get(OPTIONS, {})), "/".join(folder.parts[-2:])
    if options.get("save_dir") == "":
        options["save_dir"] = str(folder)
    if options.get("name") == LOGS and not logger[CLASS].endswith(FILE_LOGGERS):
        options["name"] = name
    if "run_name" in options and options["run_name"] is None:
        options["run_name"] = name
    return {**logger, OPTIONS: options}


def logged_options(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that determine the trained model."""
    logged = {name: configuration[name] for name in LOGGED if name in configuration}
    trainer = logged.get("trainer", {})
    return {**logged, "trainer": {name: value for name, value in trainer.items() if name not in LOCAL_OPTIONS}}


def connect_loggers(loggers: Sequence[Logger]) -> None:
    """Open the experiments of remote loggers. Raises InputError without network, account or login."""
    for logger in loggers:
        if not isinstance(logger, CSVLogger | TensorBoardLogger):
            with _named_errors(logger):
                getattr(logger, "experiment", None)


def log_scores(
    loggers: Sequence[Logger],
    step: int,
    results: Mapping[str, Mapping[str, float]],
    types: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> None:
    """Log the scores of the saved model and of its types by split, as model/SPLIT/NAME, and close the loggers.

    Tables have rows of epochs only; these scores are in the results of the run. If a logger fails, a warning is logged,
    as the run is complete.
    """
    scores = {f"{SAVED}/{split}/{name}": score for split, row in results.items() for name, score in row.items()}
    scores |= {f"{SAVED}/{split}/{t}/score": score["score"] for split, row in types.items() for t, score in row.items()}
    for logger in loggers:
        if scores and not isinstance(logger, CSVLogger):
            try:
                with _named_errors(logger):
                    logger.log_metrics({**scores}, step)
                    logger.finalize("success")
                    end = getattr(getattr(logger, "experiment", None), "finish", None)
                    if callable(end):  # W&B would continue the same run in this process
                        end()
            except InputError as error:
                notes.warning("the scores of the saved model are not logged: %s", error)


def without_null(values: Any) -> Any:
    """Return plain values without null options."""
    if isinstance(values, dict):
        return {name: without_null(value) for name, value in values.items() if value is not None}
    return [without_null(value) for value in values] if isinstance(values, list) else values


@contextmanager
def _named_errors(logger: Logger) -> Iterator[None]:
    """Turn the errors of a logger without network or login into InputErrors."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"trainer.logger: {type(logger).__name__} cannot be used ({reason})") from error
