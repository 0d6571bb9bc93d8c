"""What a kind of input gives for a case: what it spoiled, and the command to run on that."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple


class Attempt(NamedTuple):
    """A command on inputs of which one was changed."""

    mutation: str  # the same words for the same kind of change; `legal.py` knows those that must be accepted
    arguments: list[str]
    written: tuple[str, ...] = ()  # files that the command is told to write


Kind = Callable[[Random, Path], Attempt]  # changes something in a folder of right inputs
Change = Callable[[Random, bytes], bytes]  # of a file
