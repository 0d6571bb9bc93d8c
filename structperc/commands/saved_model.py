"""The argument of the commands that load a saved model, and whose code that may run; loading a guided tagger.

The folder of a run stands for the model in it, and so does a folder above, if there is one run below it.
"""

import argparse
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structperc.commands.command import CommandParser
from structperc.errors import InputError

if TYPE_CHECKING:
    from structperc.taggers.guided_tagger import GuidedTagger

MODEL = "model"  # folder of a run's model
FILES = ("model.json", "model.safetensors")  # of a model
DEEPEST = 5  # levels between a folder and the runs below it: of a study these are row, seed and number of the run
NAMED = 10  # runs in a message

logger = logging.getLogger("pytorch_lightning.structperc")


def add_model(parser: CommandParser, several: bool = False) -> None:
    """Add the argument of a model's folder, or of several, and the option for modules that models may name."""
    what = "or of a run, e.g. runs/quickstart/1"
    if several:
        what = f"folders of saved models, {what}"
        parser.add_argument("models", nargs="+", metavar="model", action=ModelArgument, help=what)
    else:
        parser.add_argument("model", action=ModelArgument, help=f"folder of a saved model, {what}")
    trust = "let the model use classes of this module, whose code runs; again for a second module"
    parser.add_argument("--trust", action="append", default=[], metavar="MODULE", help=trust)


class ModelArgument(argparse.Action):
    """Keeps the folder of the model, or of each, that an argument stands for; see `model_folder`."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Find the models that the argument names."""
        found = [model_folder(one) for one in values] if isinstance(values, list) else model_folder(values)
        setattr(namespace, self.dest, found)


def model_folder(place: str) -> str:
    """Return the folder of the saved model that a path stands for, and log it where that is another path.

    The path may be the folder itself, one of its files, the folder of a run, or a folder with one run below it, as
    that of a configuration or of a row of a study. Any other path is returned as it is. Raises InputError for a
    folder with several runs below, and for a checkpoint.
    """
    path = Path(place)
    if path.suffix == ".ckpt" and path.is_file():
        raise InputError(f"{place}: this is a checkpoint of a training{_beside(path)}")
    if path.name in FILES and path.is_file():
        return _said(place, path.parent)
    if not path.is_dir() or (path / FILES[0]).is_file():
        return place
    run = run_folder(place, f"{MODEL}/{FILES[0]}")
    if run is not None:
        return _said(place, run / MODEL)
    if (path / "checkpoints").is_dir():
        raise InputError(f"{place}: this run has no model yet; it is saved when training ends (fit --ckpt_path last)")
    return place


def run_folder(place: str, kept: str) -> Path | None:
    """Return the run that a folder is, or the only one below it, of those which keep a file; None if there is none.

    Raises InputError, which names them, for several runs.
    """
    path = Path(place)
    if (path / kept).exists():
        return path
    found = sorted(_runs_below(path, kept, DEEPEST), key=_in_order)
    if len(found) > 1:
        named = ", ".join(map(str, found[:NAMED]))
        more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
        raise InputError(f"{place}: {len(found)} runs are below this folder, name one: {named}{more}")
    return found[0] if found else None


def prediction_folder(place: str) -> str:
    """Return the folder of the run whose predictions a path stands for, as `model_folder` does for its model."""
    path = Path(place)
    if not path.is_dir():
        return place
    within = path.parent if path.name in (MODEL, "predictions") else path
    run = run_folder(str(within), "predictions")
    return place if run is None else _said(place, run)


def _runs_below(folder: Path, kept: str, levels: int) -> Iterator[Path]:
    """Yield the folders of runs, whose names are numbers."""
    for path in (one for one in folder.iterdir() if one.is_dir() and not one.name.startswith(".")):
        if path.name.isdecimal() and (path / kept).exists():
            yield path
        elif levels > 1 and not path.is_symlink():
            yield from _runs_below(path, kept, levels - 1)


def _in_order(run: Path) -> list[tuple[int, str]]:
    """The key by which 9 stands before 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in run.parts]


def _said(place: str, found: Path) -> str:
    if Path(place) != found:
        logger.info("%s: taking %s", place, str(found))
    return str(found)


def _beside(checkpoint: Path) -> str:
    """Advice for a checkpoint: the model of its run."""
    model = checkpoint.parent.parent / MODEL
    there = (model / FILES[0]).is_file()
    return f"; give the saved model, {model}" if there else "; a model is saved when training ends"


def load_guided(model: str, trusted: Sequence[str]) -> "GuidedTagger":
    """Return a saved guided tagger. Raises InputError for a model that has no order of decisions."""
    from structperc.taggers.guided_tagger import GuidedTagger
    from structperc.taggers.sequence_tagger import SequenceTagger

    tagger = SequenceTagger.load(model, trusted=trusted)
    if not isinstance(tagger, GuidedTagger):
        name = type(tagger).__name__
        raise InputError(f"{model}: a {name} decides all tokens at once; only a GuidedTagger has an order of decisions")
    return tagger
