"""Options of the commands that read a file with gold labels, for a saved model."""

import argparse
from typing import NamedTuple

from structperc.commands.command import CommandParser
from structperc.commands.saved_model import add_model

UNITS = ("sentence", "document")
SCHEMES = ("IOB1", "IOB2", "IOBES", "BILOU")


class Reading(NamedTuple):
    """How the file is read, in the order in which the functions of these commands take it."""

    columns: list[str] | None
    unit: str | None
    labels: str | None


def add_labelled_file(parser: CommandParser, several: bool = False) -> None:
    """One model, or several, a file, and what the file is like."""
    add_model(parser, several)
    parser.add_argument("file", help="one token per line, blank lines between sentences")
    columns = "roles of the file's columns, gold is `label`; default: those the model reads, then others, gold last"
    parser.add_argument("--columns", nargs="+", help=columns)
    parser.add_argument("--unit", choices=UNITS, help="default: as the model was trained")
    parser.add_argument("--labels", choices=SCHEMES, help="tag scheme of gold in the file; default: the model's")


def reading(options: argparse.Namespace) -> Reading:
    """What `add_labelled_file` asked for."""
    return Reading(options.columns, options.unit, options.labels)
