"""The entry point of the command line: runs one command."""

import os
import sys
import traceback
from collections.abc import Sequence

from structperc.cli import COMMANDS
from structperc.cli.messages import complete_output, report_error, show_messages
from structperc.errors import InputError
from structperc.signals import sigterm_as_interrupt
from structperc.spelling import did_you_mean
from structperc.version import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status.

    The status is 0 for success, 1 if interrupted or if the reader of the output closed it, 2 for bad input or a file
    that cannot be used, such as output on a full disk, and 70 for a bug. Every error is one line on standard error;
    with --debug anywhere, after the traceback.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    show_messages()
    try:
        with sigterm_as_interrupt(), complete_output():
            dispatch([argument for argument in given if argument != "--debug"])
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in given:
            traceback.print_exception(error)
        return report_error(error, next((argument for argument in given if argument != "--debug"), ""))


def dispatch(arguments: list[str]) -> None:
    """Run the command that the first argument names with the other arguments. Raises InputError for an unknown one."""
    first, rest = (arguments or ["--help"])[0], arguments[1:]
    if first == "help" and rest:
        first, rest = rest[0], ["--help"]
    if first in ("-h", "--help", "help"):
        print(overview())
    elif first == "--version":
        print(f"structperc {__version__}")
    else:
        command = {command.name: command for command in COMMANDS}.get(first)
        if command is None:
            names = [*(command.name for command in COMMANDS), "help", "--help", "--version"]
            raise InputError(f"unknown command {first!r}{did_you_mean(first, names)} (structperc --help lists all)")
        if os.getcwd() not in sys.path and "" not in sys.path:
            sys.path.append(os.getcwd())  # configurations may name classes of modules in the current folder
        command.run(rest)


def overview() -> str:
    """Return the text of `structperc --help`, which lists all commands."""
    lines = [f"  {command.name:<12} {command.arguments:<22} {command.summary}" for command in COMMANDS]
    ends = ["structperc help COMMAND shows its options, structperc --version the version.", "--debug shows tracebacks."]
    return "\n".join(["usage: structperc COMMAND ...", "", *lines, "", *ends])
