"""Options of the commands that read labelled files without a model."""

import argparse

from structperc.commands.command import CommandParser
from structperc.commands.labelled_file import add_encoding
from structperc.data.reading import Reading
from structperc.data.tags import SCHEMES


def add_data_options(parser: CommandParser) -> None:
    """Add the options that say what the files are like."""
    columns = "roles of the columns, _ skips one; default: the word comes first, the label last; of tables: ROLE=COLUMN"
    parser.add_argument("--columns", nargs="+", help=columns)
    parser.add_argument("--labels", choices=SCHEMES, help="tag scheme; default: the one that fits best")
    add_encoding(parser)


def data_reading(options: argparse.Namespace) -> Reading:
    """Return how the files are to be read, from the options that `add_data_options` adds."""
    return Reading(options.columns, None, options.labels, options.encoding)
