"""What loggers other than the run's own table are told: the configuration, and the scores of the saved model.

Learning curves are logged by Lightning, to all loggers alike.

The files about itself that a run keeps in its folder of logs: configuration and metrics.
"""

import csv
import io
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from jsonargparse import Namespace
from pytorch_lightning.cli import LightningArgumentParser, SaveConfigCallback
from pytorch_lightning.loggers import CSVLogger, Logger, TensorBoardLogger
from pytorch_lightning.loggers.csv_logs import ExperimentWriter
from pytorch_lightning.loggers.logger import rank_zero_experiment

from structperc.data.output import open_atomic, write_errors
from structperc.data.yaml_file import parse_yaml
from structperc.errors import InputError

notes = logging.getLogger("pytorch_lightning.structperc")
OF_THE_PLACE = ("default_root_dir", "logger", "enable_progress_bar")  # options of the trainer, not of the training
TOLD = ("seed_everything", "data", "model", "trainer")
SAVED = "model"  # begins the names of scores of the saved model, as in model/dev/score


def logged_options(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a configuration that says what is learned and how, without what belongs to the place."""
    told = {name: configuration[name] for name in TOLD if name in configuration}
    trainer = told.get("trainer", {})
    return {**told, "trainer": {name: value for name, value in trainer.items() if name not in OF_THE_PLACE}}


def connect_loggers(loggers: Sequence[Logger]) -> None:
    """Begin what loggers that are no files log. Raises InputError for one without network, account or login."""
    for logger in loggers:
        if not isinstance(logger, CSVLogger | TensorBoardLogger):
            with _named(logger):
                getattr(logger, "experiment", None)


def log_configuration(loggers: Sequence[Logger], configuration: Mapping[str, Any]) -> None:
    """Log a configuration, in plain values, where it does not stand beside a table already.

    Raises InputError, which names the logger, if one cannot be reached.
    """
    for logger in loggers:
        if not isinstance(logger, CSVLogger):
            with _named(logger):
                logger.log_hyperparams(logged_options(configuration))


def log_scores(
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


LOGS = "logs"  # the folder of a run's own table
OF_FILES = ("RunLog", "CSVLogger", "TensorBoardLogger")  # loggers whose name is that of a folder


class Metrics(ExperimentWriter):
    """The file metrics.csv, always written as a whole table.

    Raises InputError, with the reason, if it cannot be written.
    """

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
    """Lightning's CSVLogger, but its table appears in the folder whole or not at all."""

    @property
    @rank_zero_experiment
    def experiment(self) -> Metrics:
        """The table of the run; it is made when it is first asked for."""
        if not isinstance(self._experiment, Metrics):
            with write_errors(self.log_dir):
                self._experiment = Metrics(self.log_dir)
        return self._experiment


class SaveRunConfig(SaveConfigCallback):
    """Lightning's SaveConfigCallback, which also tells the loggers what the configuration is.

    The file stands beside the first logs that are files of the run, else in the folder of the run, where an evaluation
    leaves that of the training as it is. Raises InputError, with the reason, where it cannot be written, and for a
    logger that cannot be reached.
    """

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Write the configuration of the run; every process calls this."""
        folders = [one.log_dir for one in trainer.loggers if isinstance(one, CSVLogger | TensorBoardLogger)]
        if self.already_saved or not trainer.is_global_zero:
            return
        if folders or stage == "fit":
            self._write(Path([*folders, trainer.default_root_dir][0]))
        log_configuration(trainer.loggers, plain_configuration(self.parser, self.config))
        self.already_saved = True

    def _write(self, folder: Path) -> None:
        with write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        text = self.parser.dump(self.config, skip_none=False, skip_validation=True)  # it is as it was parsed
        with open_atomic(folder / self.config_filename) as file:
            file.write(text.encode())


def plain_configuration(parser: LightningArgumentParser, config: Namespace) -> dict[str, Any]:
    """Return a configuration that was parsed as plain values, without options that are null."""
    return parse_yaml(parser.dump(config, skip_none=True, skip_validation=True), "configuration")


def log_into(logger: Any, folder: Path) -> None:
    """Give the folder to a configured logger, or to each of several, that has none.

    One that keeps the runs of many folders together also gets the name of this one, such as quickstart/1.
    """
    for one in logger if isinstance(logger, list) else [logger]:
        if not isinstance(one, Namespace):
            continue
        if one.get("init_args.save_dir") == "":
            one.init_args.save_dir = str(folder)
        name = "/".join(folder.parts[-2:])
        if one.get("init_args.name") == LOGS and not one.class_path.endswith(OF_FILES):
            one.init_args.name = name
        if "run_name" in one.get("init_args", {}) and one.init_args.run_name is None:
            one.init_args.run_name = name
