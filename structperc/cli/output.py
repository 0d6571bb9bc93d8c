"""Output of commands while they work, and log messages on standard error."""

import logging
import sys
from collections.abc import Iterable

OWN, LIGHTNING = logging.getLogger("pytorch_lightning.structperc"), logging.getLogger("pytorch_lightning")


class Messages(logging.Handler):
    """Prints messages where nobody else does: Lightning, once it is imported, prints those of its name and below."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message, if there is anywhere to print it to."""
        if sys.stderr is not None and not (LIGHTNING.handlers or logging.getLogger().handlers):
            print(self.format(record), file=sys.stderr, flush=True)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines as they come. Work that yields them goes on to its end when the reader of a pipe has gone.

    Raises BrokenPipeError in the end if it has.
    """
    gone: BrokenPipeError | None = None
    for line in lines:
        try:
            if gone is None:
                print(line, flush=True)
        except BrokenPipeError as error:
            gone = error
    if gone is not None:
        raise gone


def show_messages() -> None:
    """Show, from now on, notices and warnings of the library, whether or not a command imports Lightning."""
    if not any(isinstance(handler, Messages) for handler in OWN.handlers):
        OWN.addHandler(Messages())
        LIGHTNING.setLevel(logging.INFO)  # as it does itself; notices are hidden by levels of this name
