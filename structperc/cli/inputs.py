"""Arguments that name files and saved models, which are checked before the libraries that read them are imported."""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from structperc.data.text_files import check_exists
from structperc.packaged_configs import packaged_path


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
    from structperc.taggers.model_format import check_model_files, model_errors

    folder = Path(path)
    if not folder.is_file():  # a checkpoint
        with model_errors(folder):
            check_model_files(folder)


FILE, MODEL = Input(check_file), Input(check_model)


def check_inputs(actions: Iterable[argparse.Action], options: argparse.Namespace) -> None:
    """Check the parsed values of the arguments whose type is an `Input`.

    Args:
        actions: Arguments of a parser.
        options: The parsed values.
    """
    for action in actions:
        if isinstance(action.type, Input):
            given = getattr(options, action.dest)
            for path in given if isinstance(given, list) else [] if given is None else [given]:
                action.type.check(path)
