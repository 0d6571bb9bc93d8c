"""What the library tells beside the output of a command, on standard error."""

import logging
import sys

OWN, LIGHTNING = logging.getLogger("pytorch_lightning.structperc"), logging.getLogger("pytorch_lightning")


class Messages(logging.Handler):
    """Prints messages where nobody else does: Lightning, once it is imported, prints those of its name and below."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message, if there is anywhere to print it to."""
        if sys.stderr is not None and not (LIGHTNING.handlers or logging.getLogger().handlers):
            print(self.format(record), file=sys.stderr, flush=True)


def show_messages() -> None:
    """Show, from now on, notices and warnings of the library, whether or not a command imports Lightning."""
    if not any(isinstance(handler, Messages) for handler in OWN.handlers):
        OWN.addHandler(Messages())
        LIGHTNING.setLevel(logging.INFO)  # as it does itself; notices are hidden by levels of this name
