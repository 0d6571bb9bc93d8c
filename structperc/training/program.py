"""The program of fit, validate, test and predict: LightningCLI with run folders, results and one-line errors."""

import atexit
import logging
import os
import re
import sys
from contextlib import ExitStack
from contextvars import copy_context
from functools import partial
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from jsonargparse import ArgumentError
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI
from pytorch_lightning.plugins.io import TorchCheckpointIO
from pytorch_lightning.utilities.rank_zero import rank_zero_only

from structperc.class_paths import class_path_of
from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.distributed import all_gather_objects, leave_process_group
from structperc.errors import InputError
from structperc.metrics import Evaluation
from structperc.packaged_configs import split_arguments
from structperc.progress import show_bars
from structperc.reports.training_progress import best_score, progress_options, score_name
from structperc.taggers.base import BaseTagger, flat_labels
from structperc.taggers.checkpoints import CheckpointStorage
from structperc.taggers.tagger import Tagger
from structperc.training.callbacks import CheckTermination, RunSummary
from structperc.training.checkpoints import BestEpoch, LastEpoch, SaveOnDivergence, serve_best
from structperc.training.configuration import ConfigurationParser, Seed
from structperc.training.cost import Stopwatch, by_part, parameters, peak_memory, size_on_disk
from structperc.training.interruptions import resume_hint, resuming
from structperc.training.lightning_messages import hide_lightning_messages
from structperc.training.loggers import LOGS, SaveRunConfig, connect_loggers, log_into, log_scores, plain_configuration
from structperc.training.overlays import composed_arguments
from structperc.training.parser_messages import parser_message
from structperc.training.predictions import write_predictions
from structperc.training.refusals import refusals
from structperc.training.report import LabelledSplit, by_type, label_split, outcome_lines, write_json
from structperc.training.run_card import RunRecord, write_card
from structperc.training.run_folders import checkpoint, lock_folder, lock_new_run, name_of, next_run, root_of, run_of
from structperc.training.trainer_options import options_named

logger = logging.getLogger("pytorch_lightning.structperc")

DEFAULTS: dict[str, Any] = {
    "checkpoint.monitor": "dev/score",
    "checkpoint.mode": "max",
    "checkpoint.filename": "best",
    "checkpoint.enable_version_counter": False,
    "trainer.devices": 1,
    "trainer.log_every_n_steps": 1000,
    "trainer.enable_model_summary": False,
    # another logger gets these options, too, as far as it has them; no folder: that of the run
    "trainer.logger": {
        "class_path": "structperc.training.RunLog",
        "init_args": {"save_dir": "", "name": LOGS},
    },
}


class Program(LightningCLI):
    """Each fit has a folder of its own, ROOT/1, ROOT/2, ..., with config, checkpoints, logs and the saved model.

    ROOT is trainer.default_root_dir, by default runs/NAME-OF-THE-CONFIG.
    """

    base: type[BaseTagger] = BaseTagger  # type: ignore[type-abstract]  # what model.class_path must be
    default: type[BaseTagger] = Tagger  # what it is when a configuration does not say

    prefix: tuple[str, ...] = ()  # what stands before the arguments on the command line

    model: BaseTagger
    folder: Path
    last: Path | None = None  # the checkpoint of the run's last epoch, once there is a folder for it

    def __init__(self, *classes: Any, **options: Any) -> None:
        """All of the command; what it holds it lets go in the end."""
        self.arguments: list[str] = options["args"] or sys.argv[1:]
        self.files, others = split_arguments(self.arguments)
        if self.files:
            options["args"] = [others[0], f"--config={composed_arguments(self.files)}", *others[1:]]
        with ExitStack() as self.held, resume_hint(self.going_on):
            super().__init__(*classes, **options)

    def add_default_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the option of the seed, whose bounds are checked."""
        seed = self.seed_everything_default
        parser.add_argument("--seed_everything", type=bool | Seed, default=seed, help="of all random generators")

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Add the options of the best epoch's checkpoint, and our defaults; that of the last epoch has no options."""
        parser.add_lightning_class_args(BestEpoch, "checkpoint")
        parser.set_defaults({**DEFAULTS, "model": {"class_path": class_path_of(self.default)}})

    def subcommands(self) -> dict[str, set[str]]:  # type: ignore[override]
        """The one that is asked for, if it is one: parsers of all of them take four times as long to make."""
        every = super().subcommands()
        return {name: every[name] for name in self.arguments[:1] if name in every} or every

    def setup_parser(self, *parsers: Any) -> None:
        """Set up the parsers as Lightning does, but let the program itself print the scores, in per cent."""
        super().setup_parser(*parsers)
        for command in self._subcommand_parsers.keys() & {"validate", "test"}:
            self._subcommand_parsers[command].set_defaults(verbose=False)

    def parse_arguments(self, parser: LightningArgumentParser, args: Any) -> None:
        """Parse the arguments. Raises InputError for what is wrong, which may name the option that was meant."""
        try:
            super().parse_arguments(parser, args)
        except ArgumentError as error:
            known = partial(self._known_options, parser, args)
            raise InputError(parser_message(str(error), self.arguments, known)) from None

    def _known_options(self, parser: LightningArgumentParser, args: list[str]) -> list[str]:
        """The options of a command with these configurations, or of any where they cannot be read."""
        try:
            found = parser.parse_args(args[:2] if self.files else args[:1])[args[0]]
        except (ArgumentError, InputError):
            found = self._subcommand_parsers[args[0]].get_defaults()
        return [*dict.fromkeys(re.sub(r"\.(init_args|class_path)\b", "", key) for key in found.keys(branches=True))]

    def before_instantiate_classes(self) -> None:
        """Choose the run's folder; `--ckpt_path last` (or best) means the newest run that has one."""
        config = self.config[self.subcommand]
        name = name_of(["run", *(file for file in self.files if os.path.exists(file))][-1])  # not of inline texts
        self.root = root_of(Path(config.trainer.default_root_dir or Path("runs") / name))
        wanted = config.get("ckpt_path")
        if wanted in ("last", "best"):
            config.ckpt_path = str(checkpoint(self.root, wanted))
        resumed = config.get("ckpt_path")
        if self.subcommand != "fit" and resumed is None:
            raise InputError(f"{self.subcommand} needs --ckpt_path: best, last or a file")
        if resumed is not None and not Path(resumed).is_file():
            raise InputError(f"--ckpt_path {resumed}: no such file")
        self.folder = self.claim(None if resumed is None else Path(resumed))
        self.last = self.folder / "checkpoints" / "last.ckpt"
        config.trainer.default_root_dir = str(self.folder)
        config.checkpoint.dirpath = str(self.folder / "checkpoints")
        log_into(config.trainer.logger, self.folder)

    def claim(self, resumed: Path | None) -> Path:
        """Return the folder of the run, which the first process of a fit holds; the trainer tells it to the others."""
        run = run_of(resumed) if resumed else None
        if self.subcommand != "fit":
            assert resumed is not None
            return run or resumed.parent
        if getattr(rank_zero_only, "rank", 0):
            return run or next_run(self.root)
        if run is None:
            return self.held.enter_context(lock_new_run(self.root))
        self.held.enter_context(lock_folder(run, "wait for it, or start a new run without --ckpt_path"))
        return run

    def going_on(self) -> list[str]:
        """Return the command that goes on where this one is interrupted."""
        command = [*self.prefix, *self.arguments]
        if self.arguments[0] != "fit" or self.last is None or not self.last.is_file():
            return command
        return resuming(command, self.last, self.root)

    def _parse_ckpt_path(self) -> None:
        """Options are those of configuration and command line alone, whatever a checkpoint says about some."""

    def instantiate_trainer(self, **options: Any) -> pl.Trainer:
        """Return the trainer that LightningCLI makes, except that reading its checkpoints runs no code.

        What is configured about progress bars holds for all of them; bars are ours unless the configuration names
        others, and where there are none, epochs are logged. Raises InputError for options that Lightning refuses.
        """
        wanted = self.config_init[self.subcommand].trainer
        given = wanted.callbacks or []
        callbacks = given if isinstance(given, list) else [given]
        show_bars(wanted.enable_progress_bar)
        options = {**progress_options(wanted.enable_progress_bar, callbacks), **options}
        with options_named({**wanted, **options}):
            trainer = super().instantiate_trainer(**options)
        if type(trainer.strategy.checkpoint_io) is TorchCheckpointIO:
            trainer.strategy.checkpoint_io = CheckpointStorage()
        atexit.register(leave_process_group)
        return trainer

    def _run_subcommand(self, subcommand: str) -> None:
        """As of LightningCLI. Raises InputError for a checkpoint that is whole but is not one of this configuration."""
        try:
            super()._run_subcommand(subcommand)
        except Exception as error:
            if not self.trainer._checkpoint_connector._loaded_checkpoint:  # there is one as long as it is restored
                raise
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            told = error if isinstance(error, InputError) else f"it does not fit this configuration ({reason})"
            raise InputError(f"--ckpt_path {self.config[subcommand].ckpt_path}: {told}") from error

    @property
    def checkpoints(self) -> ModelCheckpoint:
        """The callback that keeps the best epoch."""
        callback = self.trainer.checkpoint_callback
        assert isinstance(callback, ModelCheckpoint)
        return callback

    def before_fit(self) -> None:
        """Prepare a fit; without development data the last epoch is kept as the best."""
        self.model.check_processes(self.trainer)
        self.datamodule.corpus("train")
        if not self.datamodule.has("dev"):
            self.checkpoints.monitor = None
        last = LastEpoch(self.folder / "checkpoints", self.checkpoints._every_n_epochs)
        self.stopwatch = Stopwatch()
        connect_loggers(self.trainer.loggers)
        more = [CheckTermination(), self.stopwatch, last, SaveOnDivergence(self.folder), RunSummary(self.folder)]
        self.trainer.callbacks += more  # type: ignore[attr-defined]

    def after_fit(self) -> None:
        """Save the best epoch's model, score and label every split, and say where the files are."""
        self.seconds = self.stopwatch.seconds
        best = serve_best(self.trainer, self.model, self.checkpoints)
        self.model.finalize()
        if self.trainer.is_global_zero:
            self.model.save(self.folder / "model")
        self.model.to(self.trainer.strategy.root_device)  # which the trainer took it from
        splits = [split for split in ("dev", "test") if self.datamodule.has(split)]
        labelled = {split: label_split(self.model, self.datamodule, split) for split in splits}
        results = {split: one.evaluation.compute() for split, one in labelled.items()}
        if not self.trainer.is_global_zero:
            return
        epochs, spent = self.trainer.current_epoch, self.spent()
        seconds = sum(spent.values())
        parts = {"seconds_by_part": spent} if len(spent) > 1 else {}
        cost = {"epochs": epochs, "best_epoch": best, "seconds": seconds, **parts, **self._cost(labelled)}
        types = {split: by_type(one.evaluation) for split, one in labelled.items()}
        kept = [self._keep_predictions(split, one.labels) for split, one in labelled.items()]
        self._keep_card(epochs, best, {split: one.evaluation for split, one in labelled.items()})
        write_json(self.folder / "results.json", {**cost, **results, "types": types})  # the run is complete
        log_scores(self.trainer.loggers, self.trainer.global_step, results, types)
        print("\n".join(outcome_lines(labelled, results)))  # after all files: who reads it may have gone
        if best is not None:
            print(f"best epoch: {best} of {epochs} ({best_score(self.checkpoints, score_name(self.model))})")
        print(f"{epochs} epochs, {seconds:.1f} seconds of training{by_part(spent)}")
        print(f"model: {self.folder / 'model'}")
        print(f"new text: {self.model.input_summary}")
        for path in filter(None, kept):
            print(f"predictions: {path}")

    def _cost(self, labelled: dict[str, LabelledSplit]) -> dict[str, Any]:
        """Weights, memory, and how fast each split was labelled."""
        speed = {split: one.tokens_per_second for split, one in labelled.items()}
        size = {"parameters": parameters(self.model), "model_mb": size_on_disk(self.folder / "model")}
        return {**size, **peak_memory(self.model.device), "tokens_per_second": speed}

    def _keep_card(self, epochs: int, best: int | None, evaluations: dict[str, Evaluation]) -> None:
        configuration = plain_configuration(self._parser(self.subcommand), self.config[self.subcommand])
        command = ["structperc", *self.prefix, *self.arguments]
        record = RunRecord(self.root.name, command, configuration, epochs, best, evaluations)
        write_card(self.folder / "model", self.model, self.datamodule, record)

    def _keep_predictions(self, split: str, predicted: list[str]) -> Path | None:
        """Write them into the run's folder, and return where; words that no column file can hold cost a warning."""
        try:
            return write_predictions(self.folder, split, self.datamodule.corpus(split), predicted)
        except InputError as error:
            if isinstance(error.__cause__, OSError):  # of a full disk the run is not complete
                raise
            logger.warning("no predictions are written: %s", error)
            return None

    def spent(self) -> dict[str, float]:
        """Return the seconds of training by part; here there is one part."""
        return {"training": self.seconds}

    def after_validate(self) -> None:
        """Print the full table of scores."""
        if self.trainer.is_global_zero:
            print(self.model.evaluation.table())

    after_test = after_validate

    def after_predict(self) -> None:
        """Write the labels of the split that data.predict names, as CoNLL columns, into the run's folder."""
        split = self.datamodule.predict_split
        corpus = self.datamodule.corpus(split)
        parts = all_gather_objects(self.trainer.predict_loop.predictions)
        if not self.trainer.is_global_zero:
            return
        predicted = flat_labels(corpus, self.model.labels, parts)
        print(f"predictions: {write_predictions(self.folder, split, self.model.add_columns(corpus, parts), predicted)}")


def train(arguments: list[str], program: type[Program] = Program) -> int:
    """Run a training command and return 0; every mistake in options or configuration becomes an InputError."""
    run(arguments, program)
    return 0


def run(arguments: list[str], program: type[Program] = Program) -> Program:
    """Run a training command as `train` does, and return the program when it is done."""
    hide_lightning_messages()
    with refusals(arguments):
        return copy_context().run(  # of which `show_bars` is a part
            program,
            program.base,
            SequenceDataModule,
            subclass_mode_model=True,
            subclass_mode_data=True,
            seed_everything_default=1,
            save_config_callback=SaveRunConfig,
            save_config_kwargs={"overwrite": True},
            parser_class=ConfigurationParser,
            parser_kwargs={"exit_on_error": False, "prog": "structperc"},
            auto_configure_optimizers=False,  # taggers configure their own
            args=None if arguments == sys.argv[1:] else arguments,
        )
