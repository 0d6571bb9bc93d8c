"""Commands and their parsers, and the arguments that several of them share: saved models and labelled files."""

import argparse
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from structperc.data.read_options import DROPPED, INPUT_FORMATS, SEPARATORS, UNITS, ReadOptions
from structperc.data.tag_schemes import check_labels_option
from structperc.data.text_files import check_exists
from structperc.errors import InputError
from structperc.packaged_configs import packaged_path
from structperc.spelling import did_you_mean
from structperc.text.tokenizer import SENTENCES, TOKENIZERS


class Command(NamedTuple):
    """A command of the command line.

    Args:
        name: Name of the command.
        arguments: Its arguments, as the overview shows them.
        summary: Its description, as the overview shows it.
        run: Runs the command with the arguments after its name.
        parser: Returns the parser of the arguments; None: `run` parses them.

    Example:
        >>> hello = Command("hello", "NAME", "greet somebody", lambda arguments: print("Hello", *arguments))
        >>> hello.run(["Anna"])
        Hello Anna
    """

    name: str
    arguments: str
    summary: str
    run: Callable[[list[str]], None]
    parser: "Callable[[], CommandParser] | None" = None


class Input(NamedTuple):
    """The type of an argument that names an input, in `add_argument`; paths remain as they are given.

    Args:
        check: Raises InputError, which names the path and what to change, for a path without such an input.

    Example:
        >>> FILE("train.txt")
        'train.txt'
    """

    check: Callable[[str], None]

    def __call__(self, path: str) -> str:
        """Return the path."""
        return path


def check_file(path: str) -> None:
    """Raise InputError unless the path is a file, a folder, "-" or a packaged configuration."""
    if path != "-":
        check_exists(packaged_path(path))


def check_model(path: str) -> None:
    """Raise InputError for a path without a saved model."""
    from structperc.models.model_format import check_model_files, model_errors

    folder = Path(path)
    if not folder.is_file():  # a checkpoint
        with model_errors(folder):
            check_model_files(folder)


FILE, MODEL = Input(check_file), Input(check_model)


class CommandParser(argparse.ArgumentParser):
    """The parser of a command's arguments; raises InputError for mistakes, and accepts no abbreviated options."""

    def __init__(self, command: str, description: str, **options: Any) -> None:
        self.command = command
        self.given: Sequence[str] = ()
        self.arguments: list[argparse.Action] = []
        super().__init__(f"structperc {command}", description=description, allow_abbrev=False, **options)

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Add an argument as argparse does; `start` checks those whose type is an `Input`."""
        self.arguments.append(super().add_argument(*names, **options))
        return self.arguments[-1]

    def start(self, run: Callable[[argparse.Namespace], None], given: Sequence[str]) -> None:
        """Run a function with the parsed arguments. Raises InputError for missing inputs."""
        options = self.parse_args(given)
        for argument in self.arguments:
            if isinstance(argument.type, Input):
                value = getattr(options, argument.dest)
                for path in value if isinstance(value, list) else [] if value is None else [value]:
                    argument.type.check(path)
        run(options)

    def parse_args(self, args: Sequence[str], namespace: None = None) -> argparse.Namespace:  # type: ignore[override]
        """Parse the arguments as argparse does, and suggest an option for an unknown one."""
        self.given = args
        options, rest = self.parse_known_args(args, namespace)
        if rest and rest[0].startswith("-"):
            name = rest[0].partition("=")[0]
            self.error(f"unknown option {name}{did_you_mean(name, re.findall(r'--[a-z-]+', self.format_help()))}")
        if rest:
            self.error(f"unexpected argument {rest[0]!r}")
        return options

    def error(self, message: str) -> NoReturn:
        """Raise InputError with the message and a hint at the command's help.

        Another hint follows if an option with several values may have taken the arguments after them.
        """
        usage = " ".join(self.format_usage().split())
        several = [
            option for option, _ in re.findall(r"(--[a-z-]+) (\S+) \[\2 \.\.\.\]", usage) if option in self.given
        ]
        taken = next(
            (option for option in several if "are required: " in message or f"{option}: invalid" in message), None
        )
        if taken is not None:
            message += f"; {taken} takes all arguments up to the next option, so give the others before it"
        raise InputError(f"{self.command}: {message} (structperc {self.command} --help lists all)")


def command(
    arguments: str, summary: str, add_arguments: Callable[[CommandParser], None]
) -> Callable[[Callable[[argparse.Namespace], None]], Command]:
    """Return a decorator that makes a command from a function of parsed arguments.

    Its name is that of the function, with "-" in place of "_". The help begins with the docstring of the function.

    Args:
        arguments: The arguments, as the overview shows them.
        summary: The description, as the overview shows it.
        add_arguments: Adds the arguments to the parser.

    Example:
        >>> @command("NAME", "greet somebody", lambda parser: parser.add_argument("name"))
        ... def hello(options):
        ...     '''Greet somebody.'''
        ...     print("Hello", options.name)
        >>> hello.run(["Anna"])
        Hello Anna
    """

    def decorate(run: Callable[[argparse.Namespace], None]) -> Command:
        name = run.__name__.replace("_", "-")

        def parser() -> CommandParser:
            made = CommandParser(name, run.__doc__ or "")
            add_arguments(made)
            return made

        return Command(name, arguments, summary, lambda given: parser().start(run, given), parser)

    return decorate


MODEL_FOLDER = "model"  # of a run
MODEL_FILES = ("model.json", "model.safetensors")
MAX_DEPTH = 5  # levels between a folder and the runs below it: for a study, row, seed and number of the run
MAX_LISTED = 10  # runs in a message

logger = logging.getLogger("pytorch_lightning.structperc")


def add_model(parser: CommandParser) -> None:
    """Add the argument of a model's folder, and the option of trusted modules."""
    what = "folder of a saved model, or of a run, e.g. runs/quickstart/1"
    parser.add_argument("model", type=MODEL, action=ModelArgument, help=what)
    add_trust(parser)


def add_trust(parser: CommandParser) -> None:
    """Add the option of trusted modules."""
    trust = "allow the model to use classes of this module, whose code is run; repeat for several modules"
    parser.add_argument("--trust", action="append", default=[], metavar="MODULE", help=trust)


class ModelArgument(argparse.Action):
    """Replaces the path of an argument by the folder of the model that it stands for; see `model_folder`."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        """Store the folder."""
        setattr(namespace, self.dest, model_folder(values))


def model_folder(place: str) -> str:
    """Return the folder of the saved model that a path stands for, and log it if it is another path.

    The path may be the folder itself, one of its files, the folder of a run, or a folder with one run below it, such
    as that of a configuration or of a row of a study. Any other path is returned unchanged. Raises InputError for a
    folder with several runs below it, and for a checkpoint.
    """
    path = Path(place)
    if path.suffix == ".ckpt" and path.is_file():
        model = path.parent.parent / MODEL_FOLDER
        there = (model / MODEL_FILES[0]).is_file()
        advice = f"use the saved model, {model}" if there else "a model is saved when training ends"
        raise InputError(f"{place}: this is a training checkpoint; {advice}")
    if path.name in MODEL_FILES and path.is_file():
        return _logged(place, path.parent)
    if not path.is_dir() or (path / MODEL_FILES[0]).is_file():
        return place
    run = run_folder(place, f"{MODEL_FOLDER}/{MODEL_FILES[0]}")
    if run is not None:
        return _logged(place, run / MODEL_FOLDER)
    if (path / "checkpoints").is_dir():
        raise InputError(f"{place}: this run has no model yet; it is saved when training ends (fit --ckpt_path last)")
    return place


def run_folder(place: str, content: str) -> Path | None:
    """Return the folder itself if it has this file or folder, else the only run below it that has; None without any.

    Raises InputError, which names them, for several runs.
    """
    path = Path(place)
    if (path / content).exists():
        return path
    runs = sorted(_runs_below(path, content, MAX_DEPTH), key=_natural_order)
    if len(runs) > 1:
        named = ", ".join(map(str, runs[:MAX_LISTED]))
        more = f" and {len(runs) - MAX_LISTED} more" if len(runs) > MAX_LISTED else ""
        raise InputError(f"{place}: found {len(runs)} runs in this folder; specify one: {named}{more}")
    return runs[0] if runs else None


def prediction_folder(place: str) -> str:
    """Return the folder of the run whose predictions a path stands for, as `model_folder` does for its model."""
    path = Path(place)
    if not path.is_dir():
        return place
    run = run_folder(str(path.parent if path.name in (MODEL_FOLDER, "predictions") else path), "predictions")
    return place if run is None else _logged(place, run)


def _runs_below(folder: Path, content: str, levels: int) -> Iterator[Path]:
    for path in (entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith(".")):
        if path.name.isdecimal() and (path / content).exists():
            yield path
        elif levels > 1 and not path.is_symlink():
            yield from _runs_below(path, content, levels - 1)


def _natural_order(run: Path) -> list[tuple[int, str]]:
    """Sort key that puts 9 before 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in run.parts]


def _logged(place: str, found: Path) -> str:
    if Path(place) != found:
        logger.info("%s: using %s", place, str(found))
    return str(found)


def refuse(command: str, options: argparse.Namespace, names: Iterable[str], reason: str) -> None:
    """Raise InputError for the first of these options, without a default, that is set but would have no effect."""
    for name in names:
        if getattr(options, name) not in (None, False, []):
            option = ("-" if len(name) == 1 else "--") + name.replace("_", "-")
            raise InputError(f"{command}: {option} {reason}; leave it out")


def add_bias(parser: CommandParser) -> None:
    """Add the option of the bias with which a model predicts."""
    text = "bias of the model, fitted by calibrate; none: without one; default: the default bias of the model"
    parser.add_argument("--bias", metavar="NAME", help=text)


def add_labelled_file(parser: CommandParser) -> None:
    """Add the arguments of a model and of a file that has gold labels."""
    add_model(parser)
    parser.add_argument("file", type=FILE, help="one token per line, blank lines between sentences")
    add_gold_reading(parser)


def add_gold_reading(parser: CommandParser) -> None:
    """Add the options for reading a file that may have gold labels."""
    _add_columns(parser, "`label` is gold; default: the columns that the model reads, then others, gold last")
    add_labels(parser, "the gold labels in the file; default: that of the model")
    spans = {
        "misaligned": "gold spans whose edges are not token edges: refuse, expand to whole tokens, or drop",
        "overlaps": "overlapping gold spans: refuse, or keep the longest or the first",
    }
    for name, text in spans.items():
        parser.add_argument(f"--{name}", help=f"{text}; default: as in training")
    dropped = "gold spans that these two leave out: missed (default), or ignored"
    parser.add_argument("--dropped", choices=DROPPED, default="missed", help=dropped)


def add_text_reading(parser: CommandParser) -> None:
    """Add the options for reading columns, running text or JSON lines without labels."""
    formats = "input format; default: detected from the file"
    parser.add_argument("--input", dest="form", choices=INPUT_FORMATS, help=formats)
    add_splitting(parser)
    _add_columns(parser, "default: first the columns that the model reads")
    parser.set_defaults(labels=None)


def _add_columns(parser: CommandParser, default: str) -> None:
    roles = f"roles of the file's columns, _ skips one; {default}"
    parser.add_argument("--columns", nargs="+", action="extend", help=roles)
    parser.add_argument("--unit", choices=UNITS, help="unit of a sequence; default: as in training")
    add_encoding(parser)
    add_line_format(parser)


def add_data_options(parser: CommandParser) -> None:
    """Add the options for reading files of training data."""
    columns = "roles of the columns, _ skips one; default: the word comes first, the label last; of tables: ROLE=COLUMN"
    parser.add_argument("--columns", nargs="+", action="extend", help=columns)
    add_labels(parser, "the files; default: the one that fits best")
    add_encoding(parser)
    add_line_format(parser)
    parser.set_defaults(unit=None)


def add_labels(parser: CommandParser, what: str) -> None:
    """Add the option of the tag scheme; the help names the labels, `what`, and the default."""

    def notation(name: str) -> str:
        try:
            return check_labels_option(name)
        except InputError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    how = f"tag scheme, and form of labels that are not written as B-PER, such as 'IOB2 TYPE-B' or brackets, of {what}"
    parser.add_argument("--labels", type=notation, metavar="SCHEME", help=how)


def add_encoding(parser: CommandParser) -> None:
    """Add the option of the encoding of the input files."""
    parser.add_argument(
        "--encoding", default="utf-8", help="encoding of the file: latin-1, utf-16, ... (default utf-8)"
    )


def add_line_format(parser: CommandParser) -> None:
    """Add the options of separators and comments in files of columns."""
    separator = "field separator: whitespace (spaces and tabs), or tab, for fields that contain spaces"
    parser.add_argument("--separator", choices=SEPARATORS, help=separator)
    comments = 'skip comments: lines that begin with "#" and have another number of fields than the tokens'
    parser.add_argument("--comments", action=argparse.BooleanOptionalAction, help=comments)


def add_splitting(parser: CommandParser) -> None:
    """Add the options of the tokenizer and the sentence splitter of running text."""
    tokens = (
        "tokenizer of running text: as CoNLL-2003 (conll, default), as UD English (ud), or for Chinese, Japanese, Thai"
    )
    parser.add_argument("--tokens", choices=TOKENIZERS, default="conll", help=tokens)
    sentences = "sentences of running text: by rules (default), one for each line, or one for each text"
    parser.add_argument("--sentences", choices=SENTENCES, default="rules", help=sentences)


def read_options(options: argparse.Namespace) -> ReadOptions:
    """Return the parsed options for reading files."""
    given = {name: value for name, value in vars(options).items() if name in ReadOptions._fields}
    return ReadOptions(**given)
