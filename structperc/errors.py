"""The errors for what a user can correct: bad files, fields and options, and scores that are none."""

from structperc.spelling import visible


class InputError(ValueError):
    """Bad input. The message is one line that names the file and line, field or option and what to change.

    Invisible characters of the data that it quotes are shown as escapes.
    """

    def __init__(self, message: object = "", *further: object) -> None:
        super().__init__(visible(message) if isinstance(message, str) else message, *further)


class InvalidScore(InputError):  # noqa: N818 - a state, not a mistake
    """A score is +inf or NaN, so that no path is the best. In training it is a sign that weights have diverged."""
