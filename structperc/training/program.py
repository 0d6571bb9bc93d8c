"""The commands fit, validate, test and predict: from a configuration to a run of the trainer and to results."""

import atexit
import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack
from contextvars import copy_context
from copy import copy
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.plugins.io import TorchCheckpointIO
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.distributed import all_gather_objects, leave_process_group
from structperc.errors import InputError
from structperc.packaged_configs import name_of, split_row
from structperc.progress import show_bars
from structperc.reports.tables import write_json
from structperc.reports.training_progress import best_score, progress_options, score_name
from structperc.taggers.base import BaseTagger
from structperc.taggers.data_requirements import check_processes
from structperc.taggers.tagger import Tagger
from structperc.training.configuration import Configuration
from structperc.training.curves import write_curves
from structperc.training.lightning_messages import hide_lightning_messages, input_errors, named_errors
from structperc.training.loggers import SaveRunConfig, connect_loggers, log_into, log_scores, without_null
from structperc.training.overlays import parse_arguments, to_yaml
from structperc.training.predictions import write_predictions
from structperc.training.report import (
    LabelledSplit,
    RunRecord,
    Stopwatch,
    by_part,
    label_split,
    outcome_lines,
    parameters,
    peak_memory,
    size_on_disk,
    write_card,
)
from structperc.training.run_callbacks import (
    CheckTermination,
    LastEpoch,
    RestoringEnds,
    RunCheckpoints,
    RunSummary,
    SaveOnDivergence,
    best_epoch_options,
    use_best_weights,
)
from structperc.training.run_folders import (
    checkpoint,
    lock_folder,
    lock_new_run,
    next_run,
    resume_hint,
    resuming,
    root_of,
    run_of,
)

logger = logging.getLogger("pytorch_lightning.structperc")


class Program:
    """One training command.

    Each fit has a new folder, ROOT/1, ROOT/2, ..., with config, checkpoints, logs and the saved model. ROOT is
    trainer.default_root_dir, by default runs/NAME-OF-THE-CONFIG.

    Args:
        arguments: the command (fit, validate, test or predict) and its options.

    Raises:
        InputError: wrong options or configurations, with file and line.
    """

    base: Any = BaseTagger  # type hint of what model.class_path may name
    default: type[BaseTagger] = Tagger  # the class of a model without class_path
    prefix: tuple[str, ...] = ()  # arguments before the command on the command line

    model: BaseTagger
    datamodule: SequenceDataModule
    trainer: pl.Trainer
    folder: Path
    last: Path | None = None  # the checkpoint of the run's last epoch, once the run has a folder

    def __init__(self, arguments: Sequence[str]) -> None:
        self.arguments = [*arguments]
        self.command, *options = arguments
        given = parse_arguments(options)
        self.shown_only: list[str] | None = None  # lines of --help and --print_config
        self.configuration = Configuration(given, self.base, self.default)
        if given.help_for is not None:
            self.shown_only = [*self.configuration.help_lines(*given.help_for)]
            return
        self.configuration.check()
        self.config = self.configuration.values
        if given.print_config:
            self.shown_only = [to_yaml(self.config).rstrip()]
            return
        name = name_of(["run", *(f for f in given.files if os.path.exists(split_row(f)[0]))][-1])  # not inline texts
        self.root = root_of(Path(self.config["trainer"]["default_root_dir"] or Path("runs") / name))
        self.resumed = self._resumed(self.config["ckpt_path"])

    def _resumed(self, wanted: str | None) -> Path | None:
        """Return the checkpoint to load; `--ckpt_path last` (or best) is that of the newest run with one."""
        if wanted in ("last", "best"):
            return checkpoint(self.root, wanted)
        if wanted is None and self.command != "fit":
            raise InputError(f"{self.command} needs --ckpt_path: best, last or a file")
        if wanted is not None and not Path(wanted).is_file():
            raise InputError(f"--ckpt_path {wanted}: no such file")
        return None if wanted is None else Path(wanted)

    def run(self) -> None:
        """Run the command in the folder of its run, which the first process of a fit locks."""
        if self.shown_only is not None:
            print("\n".join(self.shown_only))
            return
        with ExitStack() as locks, resume_hint(self.resume_command):
            self.build(self._run_folder(locks))
            getattr(self, f"before_{self.command}", lambda: None)()
            try:
                quiet = {"verbose": False} if self.command in ("validate", "test") else {}
                start = getattr(self.trainer, self.command)
                start(self.model, datamodule=self.datamodule, ckpt_path=self.resumed and str(self.resumed), **quiet)
            except Exception as error:
                if not self.files.restoring:
                    raise
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                shown = (
                    error
                    if isinstance(error, InputError)
                    else f"the checkpoint is incompatible with this configuration ({reason})"
                )
                raise InputError(f"--ckpt_path {self.resumed}: {shown}") from error
            getattr(self, f"after_{self.command}")()

    def _run_folder(self, locks: ExitStack) -> Path:
        run = run_of(self.resumed) if self.resumed else None
        if self.command != "fit":
            assert self.resumed is not None
            return run or self.resumed.parent
        if getattr(rank_zero_only, "rank", 0):
            return run or next_run(self.root)
        if run is None:
            return locks.enter_context(lock_new_run(self.root))
        locks.enter_context(lock_folder(run, "wait for it, or start a new run without --ckpt_path"))
        return run

    def resume_command(self) -> list[str]:
        """Return the command that resumes this run."""
        command = [*self.prefix, *self.arguments]
        if self.command != "fit" or self.last is None or not self.last.is_file():
            return command
        return resuming(command, self.last, self.root)

    def build(self, folder: Path) -> None:
        """Seed random generators, and create the data module, the model and the trainer of a run in this folder.

        The option for progress bars applies to all of them; bars are those of `reports.training_progress` by default,
        and without bars epochs are logged. Reading checkpoints runs no code.
        """
        self.folder, self.last = folder, folder / "checkpoints" / "last.ckpt"
        options = self.config["trainer"]
        options["default_root_dir"] = str(folder)
        self.config["checkpoint"]["dirpath"] = str(folder / "checkpoints")
        if (seed := self.config["seed_everything"]) is not False:
            self.config["seed_everything"] = pl.seed_everything(None if seed is True else seed, workers=True)
        made = copy(self.configuration)
        made.values = {**self.config, "trainer": {**options, "logger": log_into(options["logger"], folder)}}
        made.values["checkpoint"] = best_epoch_options(self.config["checkpoint"], options)
        trainer = made.build_group("trainer")
        self.model, self.datamodule = made.build("model"), made.build("data")
        configured = trainer["callbacks"] or []
        callbacks = configured if isinstance(configured, list) else [configured]
        show_bars(options["enable_progress_bar"])
        trainer |= progress_options(options["enable_progress_bar"], callbacks)
        trainer["enable_autolog_hparams"] = False  # loggers get the whole configuration
        self.checkpoints = ModelCheckpoint(**made.build_group("checkpoint"))
        trainer["callbacks"] += [self.checkpoints, SaveRunConfig(self.config)]
        with named_errors(trainer):
            self.trainer = pl.Trainer(**trainer)
        self.files = RunCheckpoints(self.checkpoints)
        if type(self.trainer.strategy.checkpoint_io) is TorchCheckpointIO:
            self.trainer.strategy.checkpoint_io = self.files
        self.trainer.callbacks.append(RestoringEnds(self.files))  # type: ignore[attr-defined]
        atexit.register(leave_process_group)

    def before_fit(self) -> None:
        """Prepare a fit; without development data the last epoch is kept as the best."""
        check_processes(self.model, self.trainer)
        self.datamodule.corpus("train")
        if not self.datamodule.has("dev"):
            self.checkpoints.monitor = None
        options = self.config["checkpoint"]
        steps = options["every_n_train_steps"] is not None or options["train_time_interval"] is not None
        last = LastEpoch(self.folder / "checkpoints", options["every_n_epochs"] or int(not steps))
        self.stopwatch = Stopwatch()
        connect_loggers(self.trainer.loggers)
        more = [CheckTermination(), self.stopwatch, last, SaveOnDivergence(self.folder), RunSummary(self.folder)]
        self.trainer.callbacks += more  # type: ignore[attr-defined]

    def after_fit(self) -> None:
        """Save the best epoch's model, score and label every split, and print the paths of the files."""
        self.seconds = self.stopwatch.seconds
        best = use_best_weights(self.model, self.checkpoints)
        self.model.finalize()
        if self.trainer.is_global_zero:
            self.model.save(self.folder / "model")
        self.model.to(self.trainer.strategy.root_device)  # the trainer has moved it
        splits = [split for split in ("dev", "test") if self.datamodule.has(split)]
        labelled = {split: label_split(self.model, self.datamodule, split) for split in splits}
        results = {split: result.evaluation.compute() for split, result in labelled.items()}
        if not self.trainer.is_global_zero:
            return
        epochs, spent = self.trainer.current_epoch, self.seconds_by_part()
        seconds = sum(spent.values())
        parts = {"seconds_by_part": spent} if len(spent) > 1 else {}
        size = {"train_sequences": len(self.datamodule.corpus("train"))}
        cost = {**size, "epochs": epochs, "best_epoch": best, "seconds": seconds, **parts, **self._cost(labelled)}
        types = {split: result.evaluation.scores().by_type() for split, result in labelled.items()}
        files = [self._write_predictions(split, result.labels) for split, result in labelled.items()]
        evaluations = {split: result.evaluation for split, result in labelled.items()}
        command = ["structperc", *self.prefix, *self.arguments]
        record = RunRecord(self.root.name, command, without_null(self.config), epochs, best, evaluations)
        write_card(self.folder / "model", self.model, self.datamodule, record)
        curves = write_curves(self.folder, score_name(self.model), best)
        write_json(self.folder / "results.json", {**cost, **results, "types": types})  # the run is complete
        log_scores(self.trainer.loggers, self.trainer.global_step, results, types)
        print("\n".join(outcome_lines(labelled, results)))  # after all files: standard output may be closed
        if best is not None:
            print(f"best epoch: {best} of {epochs} ({best_score(self.checkpoints, score_name(self.model))})")
        print(f"{epochs} epochs, {seconds:.1f} seconds of training{by_part(spent)}")
        if curves is not None:
            print(f"training curves: {curves}")
        print(f"model: {self.folder / 'model'}")
        print(f"expected input: {self.model.input_summary}")
        for path in filter(None, files):
            print(f"predictions: {path}")

    def _cost(self, labelled: dict[str, LabelledSplit]) -> dict[str, Any]:
        """Return the number of weights, memory, and tokens per second of each split."""
        speed = {split: result.tokens_per_second for split, result in labelled.items()}
        size = {"parameters": parameters(self.model), "model_mb": size_on_disk(self.folder / "model")}
        return {**size, **peak_memory(self.model.device), "tokens_per_second": speed}

    def _write_predictions(self, split: str, predicted: list[str]) -> Path | None:
        """Write predictions into the run's folder, and return their path; log a warning for unsuitable words."""
        try:
            return write_predictions(self.folder, split, self.datamodule.corpus(split), predicted)
        except InputError as error:
            if isinstance(error.__cause__, OSError):  # such as a full disk: the run is not complete
                raise
            logger.warning("no predictions are written: %s", error)
            return None

    def seconds_by_part(self) -> dict[str, float]:
        """Return the seconds of training by part."""
        return {"training": self.seconds}

    def after_validate(self) -> None:
        """Print the full table of scores."""
        if self.trainer.is_global_zero:
            print(self.model.evaluation.table())

    after_test = after_validate

    def after_predict(self) -> None:
        """Write the labels of the split in data.predict, as CoNLL columns, into the run's folder."""
        split = self.datamodule.predict_split
        corpus = self.datamodule.corpus(split)
        shares = all_gather_objects([[labels for batch in self.trainer.predict_loop.predictions for labels in batch]])
        if not self.trainer.is_global_zero:
            return
        for role, values in self.model.further_columns(corpus).items():
            corpus = corpus.replace_column(role, values)
        turns = (divmod(row, len(shares)) for row in range(len(corpus)))  # processes take turns
        predicted = [label for turn, process in turns for label in shares[process][turn]]
        print(f"predictions: {write_predictions(self.folder, split, corpus, predicted)}")


def run(arguments: Sequence[str], program: type[Program] = Program) -> None:
    """Run a training command. Raises InputError for wrong options and configurations."""
    hide_lightning_messages()
    with input_errors():
        copy_context().run(lambda: program(arguments).run())  # limits the effect of `show_bars`
