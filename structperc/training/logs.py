"""The files about itself that a run keeps in its folder of logs: configuration and metrics."""

import csv
import io
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from jsonargparse import Namespace
from pytorch_lightning.cli import LightningArgumentParser, SaveConfigCallback
from pytorch_lightning.loggers import CSVLogger, TensorBoardLogger
from pytorch_lightning.loggers.csv_logs import ExperimentWriter
from pytorch_lightning.loggers.logger import rank_zero_experiment

from structperc.data.output import complaints, opened
from structperc.data.yaml_file import parse_yaml
from structperc.training.trackers import tell_options

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
        with opened(self.metrics_file_path) as file:
            file.write(text.getvalue().encode())


class RunLog(CSVLogger):
    """Lightning's CSVLogger, but its table appears in the folder whole or not at all."""

    @property
    @rank_zero_experiment
    def experiment(self) -> Metrics:
        """The table of the run; it is made when it is first asked for."""
        if not isinstance(self._experiment, Metrics):
            with complaints(self.log_dir):
                self._experiment = Metrics(self.log_dir)
        return self._experiment


class SavedConfig(SaveConfigCallback):
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
        tell_options(trainer.loggers, plain_configuration(self.parser, self.config))
        self.already_saved = True

    def _write(self, folder: Path) -> None:
        with complaints(folder):
            folder.mkdir(parents=True, exist_ok=True)
        text = self.parser.dump(self.config, skip_none=False, skip_validation=True)  # it is as it was parsed
        with opened(folder / self.config_filename) as file:
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
