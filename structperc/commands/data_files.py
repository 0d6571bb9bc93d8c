"""Options of the commands that read labelled files without a model."""

import argparse

from structperc.commands.command import CommandParser
from structperc.commands.labelled_file import add_encoding, add_labels, add_line_format
from structperc.data.reading import Reading


def add_data_options(parser: CommandParser) -> None:
    """Add the options that say what the files are like."""
    columns = "roles of the columns, _ skips one; default: the word comes first, the label last; of tables: ROLE=COLUMN"
    parser.add_argument("--columns", nargs="+", help=columns)
    add_labels(parser, "the files; default: what fits best")
    add_encoding(parser)
    add_line_format(parser)


def data_reading(options: argparse.Namespace) -> Reading:
    """Return how the files are to be read, from the options that `add_data_options` adds."""
    given = options.columns, None, options.labels, options.encoding
    return Reading(*given, options.comments, options.separator)
