"""Code of users: where classes and functions are defined, and where they failed."""

import inspect
import os
import re
import sysconfig
import traceback
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent
INSTALLED = ("site-packages", "dist-packages")  # folders of packages
NAMED_BY_PATH = ("__init__", "<module>")
_QUOTED = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>[0-9]+)')  # as in errors of numba


def is_user_class(cls: type) -> bool:
    """Return True for a class defined outside this library and derived from one of its classes."""
    above = [one.__module__.partition(".")[0] for one in cls.__mro__]
    return above[0] != PACKAGE.name and PACKAGE.name in above


def class_location(cls: type, method: str = "") -> str:
    """Return name, file and line of a class, or of one of its methods: "own.Focal.losses_and_updates (own.py:12)"."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    if method:
        name = f"{name}.{method}"
        cls = next((one for one in cls.__mro__ if method in vars(one)), cls)
    return _with_location(name, vars(cls).get(method, cls))


def function_location(function: Any) -> str:
    """Return path, file and line of a function: "own.vowels (own.py:3)"."""
    return _with_location(f"{function.__module__}.{function.__qualname__}", function)


def _with_location(name: str, found: Any) -> str:
    try:
        found = inspect.unwrap(found)
        file, line = inspect.getsourcefile(found), inspect.getsourcelines(found)[1]
    except (OSError, TypeError):  # without a file
        return name
    return f"{name} ({shown_path(str(file))}:{line})"


def error_location(error: BaseException) -> str | None:
    """Return the location of an error in a user's code: "own.py:12, in forward"; None if no such code was running."""
    if isinstance(error, SyntaxError) and error.filename and _is_users(error.filename):
        return f"{shown_path(error.filename)}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    if frames:
        last = frames[-1]
        function = "" if last.name in NAMED_BY_PATH else f", in {last.name}"
        return f"{shown_path(last.filename)}:{last.lineno}{function}"
    if _is_numba_error(error):
        quoted = [found for found in _QUOTED.finditer(str(error)) if _is_users(found["file"])]
        return f"{shown_path(quoted[-1]['file'])}:{quoted[-1]['line']}" if quoted else None
    return None


def _is_numba_error(error: BaseException) -> bool:
    return type(error).__module__.startswith("numba.")


def error_reason(error: BaseException) -> str:
    """Return type and message of an error; only the first line for errors of numba, which fill a page."""
    text = str(error)
    if _is_numba_error(error):
        lines = [line.strip() for line in text.splitlines()]
        kept = [line for line in lines if line and not line.startswith("Failed in nopython")]
        text = f"numba cannot compile this function ({' '.join(kept[:1])})"
    return f"{type(error).__name__}: {text}"


def shown_path(file: str) -> str:
    """Return a path relative to the current folder if it is inside of it."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


@lru_cache(1000)
def _is_users(file: str) -> bool:
    """Return True for a file that does not belong to this library, an installed package or Python."""
    path = Path(os.path.abspath(file))
    if not file.endswith(".py") or not path.is_file() or path.is_relative_to(PACKAGE):
        return False
    return not any(part in INSTALLED for part in path.parts) and not any(map(path.is_relative_to, _standard_library()))


@cache
def _standard_library() -> list[str]:
    return [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
