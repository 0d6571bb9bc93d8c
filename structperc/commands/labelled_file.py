"""Options of the commands that read a file of columns for a saved model."""

import argparse

from structperc.commands.command import CommandParser
from structperc.commands.saved_model import add_model
from structperc.data.reading import SEPARATORS, UNITS, Reading
from structperc.data.tags import notation
from structperc.errors import InputError


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
        return notation(name).name
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


def reading(options: argparse.Namespace) -> Reading:
    """Return how the file is to be read, from the options that `add_file` adds."""
    given = (options.columns, options.unit, options.labels, options.encoding)
    return Reading(*given, options.comments, options.separator)
