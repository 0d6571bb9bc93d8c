"""Class paths, parameters of constructors, and the arguments with which an object was made."""

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, get_type_hints

from structperc.errors import InputError
from structperc.user_code import class_location, is_user_class

CLASS, OPTIONS = "class_path", "init_args"
STATE = "state"  # state of a part of a saved model that comes from its training data
INFERENCE = "inference"  # the properties of a user's criterion that predictions depend on


def class_path_of(cls: type) -> str:
    """Return the dotted path of a class: that of the package which exports it, else of its module."""
    package = ".".join(cls.__module__.split(".")[:2])
    public = getattr(sys.modules.get(package), cls.__qualname__, None) is cls
    return f"{package if public else cls.__module__}.{cls.__qualname__}"


REQUIRED = inspect.Parameter.empty  # the default of a parameter without one


class Parameter(NamedTuple):
    """Type hint and default of a parameter; the hint is Any if it cannot be resolved."""

    hint: Any
    default: Any


@lru_cache(1000)
def parameters_of(made: Any) -> dict[str, Parameter]:
    """Return the named parameters of a class or function, by name.

    If `__init__` takes `**options`, the parameters of the base class follow, for classes of this library and those
    derived from them.

    Example:
        >>> def search(k: int = 3): ...
        >>> parameters_of(search)
        {'k': Parameter(hint=<class 'int'>, default=3)}
    """
    found: dict[str, Parameter] = {}
    for function, skipped in _functions(made):
        try:
            parameters = list(inspect.signature(function).parameters.values())[skipped:]
        except (TypeError, ValueError):  # a class written in C
            break
        hints = _hints(function)
        for one in parameters:
            if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD) and one.name not in found:
                found[one.name] = Parameter(hints.get(one.name, Any), one.default)
        if not any(one.kind is one.VAR_KEYWORD for one in parameters):
            break
    return found


def takes_more(made: Callable[..., Any]) -> bool:
    """Return True if a class or function takes `**kwargs`."""
    function, _ = next(_functions(made))
    return any(one.kind is one.VAR_KEYWORD for one in inspect.signature(function).parameters.values())


def constructor_arguments(part: object) -> dict[str, Any]:
    """Return the constructor arguments of an object, from its attributes of the same names.

    Raises InputError for a missing attribute.
    """
    cls: Any = type(part)
    names = parameters_of(cls)
    for name in names:
        if not hasattr(part, name):
            raise InputError(
                f"{class_location(cls)} has no attribute {name}, which a saved model needs: "
                f"write self.{name} = {name} in __init__"
            )
    return {name: getattr(part, name) for name in names}


def _functions(made: Callable[..., Any]) -> Iterator[tuple[Callable[..., Any], int]]:
    """Yield the functions with the parameters, each with the number of leading ones that are bound (self)."""
    if not isinstance(made, type):
        yield made, 0
        return
    classes = [one for one in made.__mro__ if "__init__" in vars(one) and one is not object]
    own = [one for one in classes if is_user_class(one) or one.__module__.startswith("structperc.")]
    yield from ((vars(one)["__init__"], 1) for one in own or classes[:1])
    if not classes:
        yield made, 0


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the type hints of a function; {} if they name something that only type checkers import."""
    try:
        return get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        return {}
