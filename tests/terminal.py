"""Standard error as a terminal of some columns; what is written to it is kept."""

import fcntl
import os
import pty
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Written:
    """All that was written, when the terminal is closed."""

    text = ""


@contextmanager
def terminal(columns: int) -> Iterator[Written]:
    """Within the block standard error is a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    written, parts = Written(), []

    def read() -> None:
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:  # the other end is closed
            pass

    reader = threading.Thread(target=read)
    reader.start()
    before = sys.stderr
    try:
        with os.fdopen(theirs, "w", encoding="utf-8") as stream:
            sys.stderr = stream
            yield written
    finally:
        sys.stderr = before
        reader.join()
        os.close(ours)
        written.text = b"".join(parts).decode().replace("\r\n", "\n")
