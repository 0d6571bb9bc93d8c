"""Commands, and the arguments that several of them share: saved models, labelled files and how these are read."""

import argparse
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from structperc.data.read_options import SEPARATORS, UNITS, ReadOptions
from structperc.data.tag_schemes import parse_notation
from structperc.errors import InputError
from structperc.spelling import did_you_mean

if TYPE_CHECKING:
    from structperc.taggers.guided_tagger import GuidedTagger


class Command(NamedTuple):
    """One word of the command line: which arguments follow it, what it is for, and what does it."""

    name: str
    arguments: str  # as the overview shows them
    summary: str
    run: Callable[[list[str]], None]


class CommandParser(argparse.ArgumentParser):
    """The parser of a command's arguments. Mistakes become InputErrors of one line; options are written in full."""

    def __init__(self, command: str, description: str, **options: Any) -> None:
        super().__init__(f"structperc {command}", description=description, allow_abbrev=False, **options)
        self.command = command

    def parse_args(self, args: Sequence[str], namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        """Parse the arguments as argparse does, but suggest an option for one that does not exist."""
        options, rest = self.parse_known_args(args, namespace)
        if rest and rest[0].startswith("-"):
            name = rest[0].partition("=")[0]
            self.error(f"there is no option {name}{did_you_mean(name, self._option_string_actions)}")
        if rest:
            self.error(f"{rest[0]!r} is one argument too many")
        return options

    def error(self, message: str) -> NoReturn:
        """Raise InputError with the message and a hint at the command's help."""
        raise InputError(f"{self.command}: {message} (structperc {self.command} --help lists all)")


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
    from structperc.taggers.base import BaseTagger
    from structperc.taggers.guided_tagger import GuidedTagger

    tagger = BaseTagger.load(model, trusted=trusted)
    if not isinstance(tagger, GuidedTagger):
        name = type(tagger).__name__
        raise InputError(f"{model}: a {name} decides all tokens at once; only a GuidedTagger has an order of decisions")
    return tagger


def add_labelled_file(parser: CommandParser, several: bool = False) -> None:
    """Add the arguments of one model, or of several, and of a file that may have gold labels."""
    add_model(parser, several)
    add_file(parser, "gold is `label`; default: those the model reads, then others, gold last")
    add_labels(parser, "gold in the file; default: the model's")


def add_file(parser: CommandParser, columns: str) -> None:
    """Add the argument of a file and the options that say what it is like; `columns` says more about that option."""
    parser.add_argument("file", help="one token per line, blank lines between sentences")
    add_reading(parser, columns)


def add_reading(parser: CommandParser, columns: str) -> None:
    """Add the options that say what a file is like; `columns` says more about that option."""
    parser.add_argument("--columns", nargs="+", help=f"roles of the file's columns, _ skips one; {columns}")
    parser.add_argument("--unit", choices=UNITS, help="default: as the model was trained")
    add_encoding(parser)
    add_line_format(parser)
    parser.set_defaults(labels=None)


def add_labels(parser: CommandParser, what: str) -> None:
    """Add the option of the tag scheme of labels; `what` says of which, and what the default is."""
    how = f"tag scheme, and form of labels that are not written as B-PER, such as 'IOB2 TYPE-B', of {what}"
    parser.add_argument("--labels", type=_notation, metavar="SCHEME", help=how)


def _notation(name: str) -> str:
    try:
        return parse_notation(name).name
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_encoding(parser: CommandParser) -> None:
    """Add the option of the encoding of the files that are read."""
    parser.add_argument("--encoding", default="utf-8", help="of the file: latin-1, utf-16, ... (default utf-8)")


def add_line_format(parser: CommandParser) -> None:
    """Add the options that say how the lines of a file of columns are divided."""
    separator = "what stands between fields: whitespace (spaces and tabs), or tab, for fields that hold spaces"
    parser.add_argument("--separator", choices=SEPARATORS, help=separator)
    comments = 'leave out comments, lines that begin with "#" and have another number of fields than the tokens'
    parser.add_argument("--comments", action=argparse.BooleanOptionalAction, help=comments)


def reading(options: argparse.Namespace) -> ReadOptions:
    """Return how the file is to be read, from the options that `add_file` adds."""
    given = (options.columns, options.unit, options.labels, options.encoding)
    return ReadOptions(*given, options.comments, options.separator)


def add_data_options(parser: CommandParser) -> None:
    """Add the options that say what the files are like."""
    columns = "roles of the columns, _ skips one; default: the word comes first, the label last; of tables: ROLE=COLUMN"
    parser.add_argument("--columns", nargs="+", help=columns)
    add_labels(parser, "the files; default: what fits best")
    add_encoding(parser)
    add_line_format(parser)


def data_reading(options: argparse.Namespace) -> ReadOptions:
    """Return how the files are to be read, from the options that `add_data_options` adds."""
    given = options.columns, None, options.labels, options.encoding
    return ReadOptions(*given, options.comments, options.separator)
