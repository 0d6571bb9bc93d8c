"""Progress bars: how they look, and where they are shown, for all work that takes more than two seconds."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tqdm.auto import tqdm

SLOW = 2  # seconds after which a bar shows itself

_shown: ContextVar[bool | None] = ContextVar("shown", default=None)


def show_bars(shown: bool | None) -> None:
    """Show all bars of this context (see `contextvars`), none, or (None) where standard error is a terminal."""
    _shown.set(shown)


def bars_are_shown(wanted: bool | None) -> bool:
    """Return whether bars are seen that are wanted, unwanted, or (None) shown where standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty() if wanted is None else wanted


def bar(
    of: Iterable[Any] | None = None, what: str = "", total: int | None = None, show: bool = True, **look: Any
) -> tqdm:
    """Return a progress bar on standard error, which appears after two seconds and leaves nothing behind.

    Args:
        of: what is iterated over; None: the caller updates the bar.
        what: the name of the work, shown beside the bar.
        total: number of steps, where `of` has no length.
        show: False where the bar should not be seen in any case.
        look: other options of tqdm.
    """
    shown = _shown.get() if show else False
    hidden = None if shown is None else not shown  # None: tqdm looks whether it writes to a terminal
    return tqdm(of, what, total, **{"delay": SLOW, "leave": False, "dynamic_ncols": True, "disable": hidden, **look})


@contextmanager
def library_bars(on: bool, disable: Callable[[], None], enable: Callable[[], None]) -> Iterator[None]:
    """Turn another library's bars off within the block where ours are not shown.

    `on` says whether they were on before.
    """
    shown = _shown.get()
    hide = on and not bars_are_shown(shown)
    if hide:
        disable()
    try:
        yield
    finally:
        if hide:
            enable()
