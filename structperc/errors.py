"""Errors that users can correct: bad files, fields and options, and invalid scores."""

from structperc.spelling import visible


class InputError(ValueError):
    """Bad input. The message is one line with the file and line, field or option, and what to change.

    Invisible characters in quoted data are shown as escapes.
    """

    def __init__(self, message: object = "", *further: object) -> None:
        super().__init__(visible(message) if isinstance(message, str) else message, *further)


class InvalidScoreError(InputError):
    """A score is +inf or NaN, so that no path is the best. In training, the weights have diverged."""
