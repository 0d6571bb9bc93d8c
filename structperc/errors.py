"""The one error for what a user can correct: bad files, fields and options."""


class InputError(ValueError):
    """Bad input. The message is one line that names the file and line, field or option and what to change."""
