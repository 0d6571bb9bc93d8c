"""Commands of the command line, and how their arguments are read."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from structperc.errors import InputError
from structperc.spelling import did_you_mean


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
