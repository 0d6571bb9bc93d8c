"""Progress bars of all work that takes more than two seconds."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from tqdm.auto import tqdm

DELAY = 2  # seconds before a bar appears

_shown: ContextVar[bool | None] = ContextVar("shown", default=None)


def show_bars(shown: bool | None) -> None:
    """Show all bars of this context (see `contextvars`), none, or (None) those on a terminal."""
    _shown.set(shown)


def bars_are_shown(wanted: bool | None) -> bool:
    """Return `wanted`; for None, True if standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty() if wanted is None else wanted


def bar(
    items: Iterable[Any] | None = None, name: str = "", total: int | None = None, show: bool = True, **options: Any
) -> tqdm:
    """Return a progress bar on standard error, which appears after two seconds and disappears at the end.

    Args:
        items: the iterated items; None: the caller updates the bar.
        name: name of the work, shown before the bar.
        total: number of steps, if `items` has no length.
        show: False hides the bar in any case.
        options: other options of tqdm.
    """
    shown = _shown.get() if show else False
    hidden = None if shown is None else not shown  # None: shown on a terminal
    return tqdm(
        items, name, total, **{"delay": DELAY, "leave": False, "dynamic_ncols": True, "disable": hidden, **options}
    )


@contextmanager
def library_bars(on: bool, disable: Callable[[], None], enable: Callable[[], None]) -> Iterator[None]:
    """Disable the bars of another library within the block if ours are not shown and they are enabled, `on`."""
    shown = _shown.get()
    hide = on and not bars_are_shown(shown)
    if hide:
        disable()
    try:
        yield
    finally:
        if hide:
            enable()
