"""Code of users: whether a class is theirs, where it is defined, and where it failed."""

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
    """Return whether a class is defined outside this library and derived from one of its classes."""
    above = [one.__module__.partition(".")[0] for one in cls.__mro__]
    return above[0] != PACKAGE.name and PACKAGE.name in above


def class_location(cls: type, method: str = "") -> str:
    """Return name, file and line of a class, or of one of its methods: "own.Focal.losses_and_updates (own.py:12)"."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    if method:
        name = f"{name}.{method}"
        cls = next((one for one in cls.__mro__ if method in vars(one)), cls)
    try:
        found = inspect.unwrap(vars(cls)[method]) if method in vars(cls) else cls
        file, line = inspect.getsourcefile(found), inspect.getsourcelines(found)[1]
    except (OSError, TypeError):  # of a class without a file
        return name
    return f"{name} ({shown_path(str(file))}:{line})"


def function_location(function: Any) -> str:
    """Return path, file and line of a function: "own.vowels (own.py:3)"."""
    name = f"{function.__module__}.{function.__qualname__}"
    try:
        found = inspect.unwrap(function)
        return f"{name} ({shown_path(str(inspect.getsourcefile(found)))}:{inspect.getsourcelines(found)[1]})"
    except (OSError, TypeError):
        return name


def error_location(error: BaseException) -> str | None:
    """Return where a user's code failed: "own.py:12, in forward"; None where no code of a user was running."""
    if isinstance(error, SyntaxError) and error.filename and _is_users(error.filename):
        return f"{shown_path(error.filename)}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_users(frame.filename)]
    if frames:
        last = frames[-1]
        return f"{shown_path(last.filename)}:{last.lineno}" + (
            "" if last.name in NAMED_BY_PATH else f", in {last.name}"
        )
    if is_numba_error(error):
        quoted = [found for found in _QUOTED.finditer(str(error)) if _is_users(found["file"])]
        return f"{shown_path(quoted[-1]['file'])}:{quoted[-1]['line']}" if quoted else None
    return None


def is_numba_error(error: BaseException) -> bool:
    """Return whether an error is one of numba's compiler."""
    return type(error).__module__.startswith("numba.")


def error_reason(error: BaseException) -> str:
    """Return type and message of an error; of numba's, which fill a page, the first line."""
    text = str(error)
    if is_numba_error(error):
        lines = [line.strip() for line in text.splitlines()]
        kept = [line for line in lines if line and not line.startswith("Failed in nopython")]
        text = f"numba cannot compile this function ({' '.join(kept[:1])})"
    return f"{type(error).__name__}: {text}"


def shown_path(file: str) -> str:
    """Return a path as messages show it: from the current folder, where it is inside of it."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


@lru_cache(1000)
def _is_users(file: str) -> bool:
    """Whether a file belongs neither to this library nor to an installed package nor to Python."""
    path = Path(os.path.abspath(file))
    if not file.endswith(".py") or not path.is_file() or path.is_relative_to(PACKAGE):
        return False
    return not any(part in INSTALLED for part in path.parts) and not any(map(path.is_relative_to, _standard_library()))


@cache
def _standard_library() -> list[str]:
    return [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
