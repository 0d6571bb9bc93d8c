"""Errors that users can correct: bad files, fields and options, and invalid scores."""

from collections.abc import Iterator
from contextlib import contextmanager

from structperc.spelling import visible

__all__ = []


class InputError(ValueError):
    """Bad input. The message is one line with the file and line, field or option, and what to change.

    Invisible characters in quoted data are shown as escapes.

    Args:
        message: the message; objects other than strings are kept as they are.
        further: further arguments of ValueError.

    Example:
        >>> from structperc import LabelSet
        >>> try:
        ...     LabelSet(("O", "B-PER", "I-PER")).encode(["B-LOC"], "train.txt:7")
        ... except InputError as error:
        ...     print(error)
        train.txt:7: unknown label 'B-LOC'; ...
    """

    def __init__(self, message: object = "", *further: object) -> None:
        super().__init__(visible(message) if isinstance(message, str) else message, *further)


class InvalidScoreError(InputError):
    """A score is +inf or NaN, so that no path is the best. In training, the weights have diverged."""


@contextmanager
def errors_at(place: object) -> Iterator[None]:
    """Begin the message of an InputError within the block with a place, such as "file:line"."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
