"""The errors for what a user can correct: bad files, fields and options, and scores that are none."""


class InputError(ValueError):
    """Bad input. The message is one line that names the file and line, field or option and what to change."""


class InvalidScore(InputError):  # noqa: N818 - a state, not a mistake
    """A score is +inf or NaN, so that no path is the best. In training it is a sign that weights have diverged."""
