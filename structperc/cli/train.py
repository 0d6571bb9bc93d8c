"""The commands fit, validate, test, predict and rerank, which read configurations."""

import gc
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from structperc.cli.arguments import Command, CommandParser
from structperc.errors import InputError
from structperc.packaged_configs import split_arguments


@contextmanager
def frozen_imports() -> Iterator[None]:
    """Exclude the objects of modules that are imported within the block from garbage collection.

    There are hundreds of thousands of these objects, and they live until the process ends: collecting them would take
    a fifth of the startup time of a training.
    """
    enabled, loaded = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
        if len(sys.modules) > loaded:  # else only other objects would be frozen
            gc.freeze()
    finally:
        if enabled:
            gc.enable()


HELP, HELP_ALL = ("-h", "--help"), "--help-all"


class OptionHelp(NamedTuple):
    """An option in the short help of a command."""

    name: str
    default: str  # as text; "" without one
    text: str


CONFIG = OptionHelp("-c FILE", "", "a file, pkg:NAME of the package, or STUDY#ROW; later ones override earlier ones")
ROW = OptionHelp("--row ROW", "", "the row of the study that -c names before it")
CHECKPOINT = OptionHelp("--ckpt_path WHICH", "", "best or last of the newest run, or a file")
RUNS = OptionHelp("--trainer.default_root_dir DIR", "runs/NAME", "folder of the runs; NAME: name of the configuration")
DEVICE = OptionHelp("--trainer.accelerator NAME", "auto", "device: cpu, gpu, ...")
TRAINING = (
    OptionHelp("--seed_everything N", "1", "random seed"),
    OptionHelp("--trainer.max_epochs N", "1000", "passes over the training data"),
    DEVICE,
    RUNS,
    OptionHelp("--trainer.enable_progress_bar B", "null", "true, false; null: on a terminal"),
    OptionHelp("--data.files.train FILE", "", "training data within --data.path; likewise dev, test"),
    OptionHelp("--data.unit UNIT", "sentence", "unit of a sequence: sentence or document"),
    OptionHelp("--data.batch_size N", "null", "sequences per step; null: 8, or some hundred if learned one by one"),
    OptionHelp("--data.holdout N", "0", "training sequences held out as development data"),
    OptionHelp("--data.seed N", "", "seed for shuffling the training data; by default that of --seed_everything"),
    OptionHelp("--model.criterion CLASS", "", "training criterion, e.g. structperc.criteria.CRFLoss"),
    OptionHelp("--model.optimizer CLASS", "by criterion", "update rule; --model.optimizer.lr sets its rate"),
    OptionHelp("--model.search.k N", "by criterion", "best candidates that are compared with gold"),
    OptionHelp("--model.features.cutoff N", "2", "minimum occurrences of a feature"),
    OptionHelp("--model.init_from FOLDER", "null", "start from the weights of a saved model"),
)
JACKKNIFE = (
    OptionHelp("--model.jackknife.folds N", "5", "number of folds; each is decoded by a model trained on the others"),
    OptionHelp("--model.jackknife.epochs N", "20", "epochs of each first model"),
)
RESUME = OptionHelp("--ckpt_path WHICH", "null", "last: resume the newest run; or a file")
SPLIT = OptionHelp("--data.predict SPLIT", "dev", "train, dev or test: the split to label")
EVALUATION = (CHECKPOINT, DEVICE, RUNS)
SPLITS_READ = {  # splits of the data that commands read, but for `predict`, which has an option for it
    **dict.fromkeys(("fit", "rerank"), ("train", "dev", "test")),
    "validate": ("dev",),
    "test": ("test",),
}


class TrainingCommand(NamedTuple):
    """A command that reads configurations, with its short help: frequently used options and example calls."""

    command: str
    text: str
    options: tuple[OptionHelp, ...]
    examples: tuple[str, ...]
    run: Callable[[list[str]], None]

    def start(self, arguments: list[str]) -> None:
        """Run the command, or print its help: the short one, or all options after --help-all."""
        if not arguments:
            first = "structperc init train.txt -o own.yaml && structperc fit -c own.yaml"
            raise InputError(f"{self.command}: no configuration given; to start from a column file: {first}")
        if HELP_ALL in arguments:
            arguments = [*(arguments[:1] if not arguments[0].startswith("-") else []), HELP[1]]
        elif any(argument in HELP for argument in arguments):
            print("\n".join(self.help()))
            return
        command, options = (arguments[0], arguments[1:]) if arguments[0] in TRAININGS else (self.command, arguments)
        check_configuration(options, SPLITS_READ.get(command, ()))
        self.run(arguments)

    def help(self) -> Iterator[str]:
        """Yield the lines of the short help."""
        yield f"usage: structperc {self.command} -c FILE [-c FILE ...] [--KEY VALUE ...]"
        yield from ("", self.text, "", "Every key of a configuration is an option. Most used, with their defaults:", "")
        for option in (CONFIG, ROW, *self.options):
            default = f" (default {option.default})" if option.default else ""
            yield f"  {option.name:<32} {option.text}{default}"
        yield from ("", "Examples:", "", *(f"  structperc {example}" for example in self.examples), "")
        yield f"structperc {self.command} {HELP_ALL} lists all options, --model.optimizer.help CLASS those of a class,"
        yield f"structperc {self.command} -c FILE --print_config the resulting configuration, structperc configs"
        yield "the configurations of the package."


def check_configuration(arguments: list[str], splits: Iterable[str]) -> None:
    """Raise InputError for missing files in the arguments of a training command, see `overlays.check_paths`."""
    from structperc.training.overlays import check_paths  # imports YAML

    check_paths(arguments, splits)


def parse_with_configuration(parser: CommandParser, arguments: list[str]) -> tuple[Namespace, list[str]]:
    """Return the parsed arguments of a command, `-c FILE --row ROW` as `-c FILE#ROW`, and those of fit.

    Raises InputError for missing files.
    """
    files, others = split_arguments(arguments)
    options, rest = parser.parse_known_args([*(f"--config={file}" for file in files), *others])
    if files:
        check_configuration([*(f"--config={file}" for file in files), *rest], ("train",))
    return options, rest


def _train(command: str, arguments: list[str]) -> None:
    with frozen_imports():
        from structperc.training.program import run

    run([command, *arguments])


def _rerank(arguments: list[str]) -> None:
    with frozen_imports():
        from structperc.training.reranking import rerank

    rerank(arguments)


TRAININGS = {
    "fit": TrainingCommand(
        "fit",
        "Train a tagger, print the scores of development and test data, and save it in runs/NAME/1/model.",
        (*TRAINING, RESUME),
        (
            "init train.txt --dev dev.txt -o own.yaml",
            "fit -c own.yaml",
            "fit -c own.yaml --trainer.max_epochs 20 --data.seed 2",
            "fit -c pkg:quickstart -c pkg:overlays/methods#pa",
            "fit -c own.yaml --ckpt_path last --trainer.max_epochs 30",
        ),
        partial(_train, "fit"),
    ),
    "validate": TrainingCommand(
        "validate",
        "Print the scores of a checkpoint on the development data of a configuration.",
        EVALUATION,
        ("validate -c own.yaml --ckpt_path best",),
        partial(_train, "validate"),
    ),
    "test": TrainingCommand(
        "test",
        "Print the scores of a checkpoint on the test data of a configuration.",
        EVALUATION,
        ("test -c own.yaml --ckpt_path best",),
        partial(_train, "test"),
    ),
    "predict": TrainingCommand(
        "predict",
        "Label a split of the data of a configuration; the columns are written into the folder of the run.",
        (CHECKPOINT, SPLIT, DEVICE, RUNS),
        ("predict -c own.yaml --ckpt_path best --data.predict test",),
        partial(_train, "predict"),
    ),
    "rerank": TrainingCommand(
        "rerank",
        "Train first models on parts of the data, then a re-ranker of their candidates; save it as fit does.",
        (*(one for one in TRAINING if "features" not in one.name and "init_from" not in one.name), *JACKKNIFE, RESUME),
        (
            "rerank -c pkg:studies/embedded#reranking1",
            "rerank -c own.yaml --trainer.max_epochs 20",
            "rerank validate -c own.yaml --ckpt_path best",
        ),
        _rerank,
    ),
}

FIT = Command("fit", "-c FILE", "train, print scores, save the model", TRAININGS["fit"].start)
VALIDATE = Command("validate", "-c FILE --ckpt_path F", "scores on the development split", TRAININGS["validate"].start)
TEST = Command("test", "-c FILE --ckpt_path F", "scores on the test split", TRAININGS["test"].start)
PREDICT = Command("predict", "-c FILE --ckpt_path F", "write predicted labels as columns", TRAININGS["predict"].start)
RERANK = Command("rerank", "-c FILE", "jack-knife first models, train a re-ranker", TRAININGS["rerank"].start)
