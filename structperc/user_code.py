"""Parts of a user's own modules: where they are written, what they were made with, and where they failed."""

import inspect
import os
import re
import sysconfig
import traceback
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from structperc.errors import InputError

PACKAGE = Path(__file__).parent
INSTALLED = ("site-packages", "dist-packages")  # folders of packages
NAMED_BY_PATH = ("__init__", "<module>")
_QUOTED = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>[0-9]+)')  # as compilers of functions say it


def is_user_class(cls: type) -> bool:
    """Return whether a class is a user's: of no module of this library, and derived from one of its classes."""
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


def constructor_parameters(cls: type) -> list[str]:
    """Return the names of a class's options: those of `__init__`, and of the base class's that it passes on as **."""
    return list(_parameters(cls))


def constructor_arguments(part: object) -> dict[str, Any]:
    """Return the options that an object was made with, which it keeps under their names.

    Raises InputError for one that it does not keep.
    """
    cls = type(part)
    for name in constructor_parameters(cls):
        if not hasattr(part, name):
            raise InputError(
                f"{class_location(cls)} does not keep its option {name}, from which a saved model is built again: "
                f"write self.{name} = {name} in __init__"
            )
    return {name: getattr(part, name) for name in constructor_parameters(cls)}


def error_location(error: BaseException) -> str | None:
    """Return where a user's code failed: "own.py:12, in judge"; None where no code of a user was running."""
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
    """Return whether an error is that of numba, which cannot compile a function."""
    return type(error).__module__.startswith("numba.")


def error_reason(error: BaseException) -> str:
    """Return type and message of an error; of numba's, which fill a page, what could not be compiled."""
    text = str(error)
    if is_numba_error(error):
        lines = [line.strip() for line in text.splitlines()]
        told = [line for line in lines if line and not line.startswith("Failed in nopython")]
        text = f"numba cannot compile this function ({' '.join(told[:1])})"
    return f"{type(error).__name__}: {text}"


def shown_path(file: str) -> str:
    """Return a path as messages show it: from the current folder, where it is inside of it."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file


@lru_cache(1000)
def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    """The named parameters of the constructors of a class, those of `__init__` of base classes after its own."""
    found: dict[str, inspect.Parameter] = {}
    for given in _constructors(cls):
        parameters = list(inspect.signature(given).parameters.values())[1:]
        named = [one for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
        found = {**found, **{one.name: one for one in named if one.name not in found}}
        if not any(one.kind is one.VAR_KEYWORD for one in parameters):
            break
    return found


def _constructors(cls: type) -> Iterator[Any]:
    """The `__init__` of a class and of those that it is derived from, as far as they are of this library or own."""
    for one in cls.__mro__:
        if "__init__" in vars(one) and (one.__module__.partition(".")[0] == PACKAGE.name or is_user_class(one)):
            yield vars(one)["__init__"]


@lru_cache(1000)
def _is_users(file: str) -> bool:
    """Whether a file is neither of this library nor of an installed package nor of Python itself."""
    path = Path(os.path.abspath(file))
    if not file.endswith(".py") or not path.is_file() or path.is_relative_to(PACKAGE):
        return False
    return not any(part in INSTALLED for part in path.parts) and not any(map(path.is_relative_to, _standard_library()))


@cache
def _standard_library() -> list[str]:
    return [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
