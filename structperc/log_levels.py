"""Levels of loggers for a while."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def at_level(level: int, names: Sequence[str]) -> Iterator[None]:
    """Give loggers this level within the block, and then the one that each had before."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(level)
    try:
        yield
    finally:
        for logger, before in zip(loggers, levels, strict=True):
            logger.setLevel(before)
