"""fit, validate, test and predict: LightningCLI with run folders, results and one-line errors."""

import logging
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentError, Namespace
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.cli import LightningArgumentParser, LightningCLI

from structperc.data.conll import write_conll
from structperc.errors import InputError
from structperc.training.checkpoints import load_weights
from structperc.training.datamodule import SequenceData
from structperc.training.epochs import BestEpoch, LastEpoch
from structperc.training.inference import flat_labels
from structperc.training.report import evaluate, results_table, write_json
from structperc.training.runs import checkpoint, next_run, root_of
from structperc.training.tagger import Tagger

DEFAULTS: dict[str, Any] = {
    "checkpoint.monitor": "dev/score",
    "checkpoint.mode": "max",
    "checkpoint.filename": "best",
    "checkpoint.enable_version_counter": False,
    "trainer.devices": 1,
    "trainer.log_every_n_steps": 1000,
}
NOTICES = (
    "LightningCLI's args parameter",
    "Checkpoint directory .* exists and is not empty",  # a resumed run goes on in its own folder
    "The number of training batches",
    ".*LeafSpec.* is deprecated",
    "Found .* module.* in eval mode at the start of training",  # the first model of a re-ranker
    "The '.*_dataloader' does not have many workers",  # batches are cut from arrays in memory
)


class Program(LightningCLI):
    """Each fit has a folder of its own, ROOT/1, ROOT/2, ..., with config, checkpoints, logs and the saved model.

    ROOT is trainer.default_root_dir, by default runs/NAME-OF-THE-CONFIG.
    """

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """The checkpoint of the best epoch; that of the last one has nothing to set."""
        parser.add_lightning_class_args(BestEpoch, "checkpoint")
        parser.set_defaults(DEFAULTS)

    def before_instantiate_classes(self) -> None:
        """Choose the run's folder; `--ckpt_path last` (or best) means the newest run that has one."""
        config = self.config[self.subcommand]
        self.root = root_of(Path(config.trainer.default_root_dir or Path("runs") / config_name(config)))
        wanted = config.get("ckpt_path")
        if wanted in ("last", "best"):
            config.ckpt_path = str(checkpoint(self.root, wanted))
        resumed = config.get("ckpt_path")
        if self.subcommand != "fit" and not resumed:
            raise InputError(f"{self.subcommand} needs --ckpt_path: best, last or a file")
        if resumed and not Path(resumed).is_file():
            raise InputError(f"--ckpt_path {resumed}: no such file")
        self.folder = Path(resumed).parent.parent if resumed else next_run(self.root)
        config.trainer.default_root_dir = str(self.folder)
        config.checkpoint.dirpath = str(self.folder / "checkpoints")
        if config.trainer.logger is None:
            options = Namespace(save_dir=str(self.folder), name="logs")
            config.trainer.logger = Namespace(class_path="pytorch_lightning.loggers.CSVLogger", init_args=options)

    @property
    def checkpoints(self) -> ModelCheckpoint:
        """The callback that keeps the best epoch."""
        callback = self.trainer.checkpoint_callback
        assert isinstance(callback, ModelCheckpoint)
        return callback

    def before_fit(self) -> None:
        """Without development data the last epoch is the best."""
        self.datamodule.corpus("train")
        if not self.datamodule.has("dev"):
            self.checkpoints.monitor = None
        self.trainer.callbacks.append(LastEpoch(self.folder / "checkpoints"))  # type: ignore[attr-defined]
        self.started = time.perf_counter()

    def after_fit(self) -> None:
        """Save the best epoch's model, score every split, say where things lie."""
        self.seconds = time.perf_counter() - self.started
        best = self.checkpoints.best_model_path
        if best:
            load_weights(self.model, best)
        self.model.save(self.folder / "model")
        splits = [split for split in ("dev", "test") if self.datamodule.has(split)]
        evaluations = {split: evaluate(self.model, self.datamodule, split) for split in splits}
        results = {split: evaluation.compute() for split, evaluation in evaluations.items()}
        for evaluation in evaluations.values():
            print(evaluation.table(), end="\n\n")
        if results:
            print(results_table(results))
        epochs, spent = self.trainer.current_epoch, self.spent()
        seconds = sum(spent.values())
        print(f"{epochs} epochs, {seconds:.1f} seconds of training{by_part(spent)}")
        print(f"model: {self.folder / 'model'}")
        parts = {"seconds_by_part": spent} if len(spent) > 1 else {}
        write_json(self.folder / "results.json", {"epochs": epochs, "seconds": seconds, **parts, **results})

    def spent(self) -> dict[str, float]:
        """Seconds of training by part; here there is one part."""
        return {"training": self.seconds}

    def after_validate(self) -> None:
        """Print the full table."""
        print(self.model.evaluation.table())

    after_test = after_validate

    def after_predict(self) -> None:
        """Write the labels of the split data.predict as CoNLL columns into the run's folder."""
        split = self.datamodule.predict_split
        corpus = self.datamodule.corpus(split)
        predicted = flat_labels(corpus, self.model.labels, self.trainer.predict_loop.predictions)
        path = self.folder / "predictions" / f"{split}.conll"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_conll(path, corpus, predicted=predicted)
        print(f"predictions: {path}")


def config_name(config: Namespace) -> str:
    """The (last) configuration file without its ending, from a folder "configs" on; "run" when none was given."""
    files = config.get("config") or []
    if not files:
        return "run"
    path = Path(str(files[-1])).with_suffix("")
    return str(Path(*path.parts[path.parts.index("configs") + 1 :])) if "configs" in path.parts else path.name


def by_part(seconds: dict[str, float]) -> str:
    """ " (folds 70.1, first model 16.0, ...)"; nothing for a single part."""
    return f" ({', '.join(f'{part} {spent:.1f}' for part, spent in seconds.items())})" if len(seconds) > 1 else ""


def quieten() -> None:
    """Hide notices that users can do nothing about."""
    for notice in NOTICES:
        warnings.filterwarnings("ignore", message=notice)
    logging.getLogger("pytorch_lightning.utilities.rank_zero").addFilter(lambda r: "litlogger" not in r.getMessage())


def train(arguments: list[str], program: type[Program] = Program, tagger: type[Tagger] = Tagger) -> int:
    """Runs a training command; every mistake in options or configuration becomes an InputError."""
    quieten()
    try:
        program(
            tagger,
            SequenceData,
            subclass_mode_data=True,
            seed_everything_default=1,
            save_config_kwargs={"overwrite": True},
            parser_kwargs={"exit_on_error": False},
            args=None if arguments == sys.argv[1:] else arguments,
        )
    except ArgumentError as error:
        raise InputError(one_line(error)) from None
    except ValueError as error:
        raise cause(error) from None
    except RuntimeError as error:
        if "sparse gradients" not in str(error):
            raise
        raise InputError(f"model.optimizer: {error}; or set model.scorer.init_args.sparse_grad: false") from None
    return 0


def cause(error: BaseException) -> BaseException:
    """The InputError that the parser wrapped while it built the configured objects; else the error itself."""
    chained = error
    while not isinstance(chained, InputError) and chained.__cause__ is not None:
        chained = chained.__cause__
    return chained if isinstance(chained, InputError) else error


def one_line(error: BaseException) -> str:
    """A parser's message without line breaks and without the types that a value might also have had."""
    text = " ".join(str(error).split())
    return re.sub(r"Does not validate against any of the Union subtypes.*?Errors: - (.*?) - Expected a .*", r"\1", text)
