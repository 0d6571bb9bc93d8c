"""The files about itself that a run keeps in its folder of logs: configuration and metrics."""

import csv
import io
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from jsonargparse import Namespace
from pytorch_lightning.cli import SaveConfigCallback
from pytorch_lightning.loggers import CSVLogger
from pytorch_lightning.loggers.csv_logs import ExperimentWriter
from pytorch_lightning.loggers.logger import rank_zero_experiment

from structperc.data.output import complaints, opened


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
    """Lightning's SaveConfigCallback, but raises InputError, with the reason, where the file cannot be written."""

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        """Write the configuration of the run; every process calls this."""
        with complaints(Path(trainer.log_dir or ".") / self.config_filename):
            super().setup(trainer, pl_module, stage)


def log_into(logger: Any, folder: Path) -> None:
    """Give the folder to a configured logger, or to each of several, that has none."""
    for one in logger if isinstance(logger, list) else [logger]:
        if isinstance(one, Namespace) and one.get("init_args.save_dir") == "":
            one.init_args.save_dir = str(folder)
