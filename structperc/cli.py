"""The command line: dispatches to a command, and says in one line what went wrong."""

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence

from structperc.commands import COMMANDS
from structperc.errors import InputError
from structperc.spelling import did_you_mean
from structperc.termination import terminable
from structperc.version import __version__

UNEXPECTED = 70  # exit status of failures that are no mistake of the user
LONGEST = 600  # characters of a complaint


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; -> exit status (0 fine, 1 interrupted, 2 bad input or a file that cannot be used, 70 a bug).

    Every complaint is one line on standard error; with --debug anywhere, after the traceback.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with terminable():
            run([one for one in given if one != "--debug"])
        return 0
    except (Exception, KeyboardInterrupt) as error:
        if "--debug" in given:
            traceback.print_exception(error)
        return complain(error)


def run(arguments: list[str]) -> None:
    """Dispatches to a command. InputError for an unknown one."""
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
            known = [*(command.name for command in COMMANDS), "help", "--help", "--version"]
            raise InputError(f"unknown command {first!r}{did_you_mean(first, known)} (structperc --help lists all)")
        if os.getcwd() not in sys.path and "" not in sys.path:
            sys.path.append(os.getcwd())  # configurations may name classes in the folder one starts from
        command.run(rest)


def overview() -> str:
    """All commands."""
    lines = [f"  {command.name:<11} {command.arguments:<23} {command.summary}" for command in COMMANDS]
    ends = ["structperc help COMMAND says more, structperc --version which one this is.", "--debug shows tracebacks."]
    return "\n".join(["usage: structperc COMMAND ...", "", *lines, "", *ends])


def complain(error: BaseException) -> int:
    """One line about what ended a command, unless it was the reader of our output; -> exit status."""
    if isinstance(error, BrokenPipeError):  # has seen enough
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if isinstance(error, KeyboardInterrupt):
        print("; ".join(["structperc: interrupted", *map(str, error.args)]), file=sys.stderr)
        return 1
    print(f"structperc: error: {shortened(printable(message(error)))}", file=sys.stderr)
    return 2 if isinstance(error, InputError | OSError) or lacks_memory(error) else UNEXPECTED


def message(error: BaseException) -> str:
    """What is wrong, of an error that ended a command."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError):
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{error.strerror or error}"
    if lacks_memory(error):
        return "there is not enough memory for this; ask for fewer candidates, or smaller batch sizes under data"
    return f"unexpected failure ({type(error).__name__}: {error}); --debug shows the traceback"


def lacks_memory(error: BaseException) -> bool:
    """Whether memory was asked for that is not there; of tensors PyTorch says so in words alone."""
    said = str(error).lower()
    return isinstance(error, MemoryError) or "can't allocate memory" in said or "out of memory" in said


def printable(text: str) -> str:
    """The text in one line, without characters that move the cursor."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in " ".join(text.split()))


def shortened(text: str) -> str:
    """The text, without its middle where that is what a file or an option holds far too much of."""
    part = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:part]} ... {text[-part:]}"
