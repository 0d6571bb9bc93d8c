"""Output of commands: lines on standard output, log messages and one-line errors on standard error."""

import io
import logging
import re
import select
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import partial
from typing import Any

from structperc.errors import InputError
from structperc.spelling import visible
from structperc.user_code import error_location, error_reason

UNEXPECTED = 70  # exit status of bugs
MAX_LENGTH = 600  # characters of an error message
CONFIGURED = (
    "fit",
    "validate",
    "test",
    "predict",
    "rerank",
    "study",
)  # commands that read configurations
SURVEYING = ("init", "check", "convert")
_ADVICE = re.compile(r"\bset (?P<name>encoding|comments|separator|labels|scheme): (?P<value>[^;,]+)")


def report_error(error: BaseException, command: str = "") -> int:
    """Print one line about what ended a command, and return its exit status.

    Advice names the options of the command. Nothing is printed if the reader of the output closed it.
    """
    if isinstance(error, BrokenPipeError):
        return 1
    if isinstance(error, KeyboardInterrupt):
        print_message("; ".join(["structperc: interrupted", *map(str, error.args)]))
        return 1
    print_message(f"structperc: error: {shortened(printable(with_own_options(message(error), command)))}")
    expected = isinstance(error, InputError | OSError) or is_out_of_memory(error)
    return 2 if expected or error_location(error) else UNEXPECTED


def message(error: BaseException) -> str:
    """Return the text of the message for an error that ended a command."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError):
        place = "" if error.filename is None else f"{error.filename}: "
        return f"{place}{error.strerror or error}"
    if is_out_of_memory(error):
        return "not enough memory; set fewer candidates, or smaller batch sizes under data"
    reason = error_reason(error)
    if failed := error_location(error):
        return f"{failed}: {reason} (--debug shows the traceback)"
    return f"unexpected failure ({reason}); --debug shows the traceback"


def with_own_options(text: str, command: str) -> str:
    """Return a message whose advice, such as "set encoding: utf-16", has the syntax of the command's options.

    Example:
        >>> with_own_options("set encoding: utf-16", "tag"), with_own_options("set comments: true", "fit")
        ('set --encoding utf-16', 'set data.comments: true')
    """
    return _ADVICE.sub(partial(_own_option, command), text)


@contextmanager
def configuration_advice() -> Iterator[None]:
    """Write advice of errors within the block as keys of a configuration, not as options of the command."""
    try:
        yield
    except InputError as error:
        raise InputError(with_own_options(str(error), CONFIGURED[0])) from error


def _own_option(command: str, advice: re.Match[str]) -> str:
    name, value = advice["name"], advice["value"]
    if command in CONFIGURED:
        return f"set data.{name}: {value}"
    if name == "scheme":
        return f"set --labels {value}" if command in SURVEYING else advice[0]
    return f"set --{name}" if value == "true" else f"set --{name} {shlex.quote(value)}"


def is_out_of_memory(error: BaseException) -> bool:
    """Return True if memory was exhausted; PyTorch raises a RuntimeError of which only the message shows it."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "can't allocate memory" in text or "out of memory" in text


def printable(text: str) -> str:
    """Return the text in one line, with invisible characters and those that move the cursor as escapes."""
    line = visible(" ".join(text.split()))
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in line)


def shortened(text: str) -> str:
    """Return the text without its middle if it is far too long."""
    part = MAX_LENGTH // 2
    return text if len(text) <= MAX_LENGTH else f"{text[:part]} ... {text[-part:]}"


OWN, LIGHTNING = logging.getLogger("pytorch_lightning.structperc"), logging.getLogger("pytorch_lightning")


class Messages(logging.Handler):
    """Prints log messages until Lightning, once it is imported, prints them."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one message, unless standard error is closed."""
        if sys.stderr is not None and not (LIGHTNING.handlers or logging.getLogger().handlers):
            print_message(self.format(record))


def print_message(text: str) -> None:
    """Print a line on standard error if it can be written; a full disk must not stop what a command does."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


class _AllBytes(io.RawIOBase):
    """Bytes of standard output, all of which are written: a file without a buffer may write only some at a time."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return bool(self.file.isatty())

    def fileno(self) -> int:
        return int(self.file.fileno())

    def write(self, data: Any) -> int:
        left = memoryview(data)
        while left:
            try:
                count = self.file.write(left)
            except BrokenPipeError:
                raise
            except OSError as error:
                reason = f"cannot write all of the output ({error.strerror or error})"
                raise InputError(f"standard output: {reason}; what was written is incomplete") from error
            if count is None:  # a full pipe that does not block
                select.select([], [self.file], [])
            left = left[count or 0 :]
        return len(data)


@contextmanager
def complete_output() -> Iterator[None]:
    """Write all that is printed within the block to standard output as UTF-8, whatever the locale.

    Raises InputError if some of it cannot be written, and BrokenPipeError if the reader of a pipe has gone; at the
    latest at the end of the block.
    """
    stream = sys.stdout
    if not isinstance(stream, io.TextIOWrapper):  # closed, or in memory
        yield
        return
    stream.flush()
    file: Any = _AllBytes(getattr(stream.buffer, "raw", stream.buffer))
    ways = {"line_buffering": stream.line_buffering, "write_through": stream.write_through}
    text = io.TextIOWrapper(file, "utf-8", "surrogateescape", newline="\n", **ways)
    with redirect_stdout(text):
        try:
            yield
        except (Exception, KeyboardInterrupt):
            with suppress(InputError, OSError):  # keep the original error
                text.flush()
            raise
        finally:
            text.flush()  # drops what cannot be written


def print_lines(lines: Iterable[str]) -> None:
    """Print lines as they are yielded; all of them are consumed even if the reader of a pipe has gone.

    Raises BrokenPipeError at the end in that case.
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
    """Show notices and warnings of the library, whether or not a command imports Lightning."""
    if not any(isinstance(handler, Messages) for handler in OWN.handlers):
        OWN.addHandler(Messages())
        LIGHTNING.setLevel(logging.INFO)  # as Lightning does; its level hides our notices otherwise
