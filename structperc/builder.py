"""Objects made from what a saved model says about them; only classes known as parts in their place are called."""

import importlib
import inspect
from collections.abc import Callable, Iterable
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, cast, get_args, get_origin, get_type_hints

from structperc.class_paths import CLASS, LABELLING, LEARNED, OPTIONS
from structperc.data.json_data import check_fields, check_value
from structperc.errors import InputError
from structperc.former_names import present_name
from structperc.user_code import constructor_parameters

if TYPE_CHECKING:
    from torch import nn

LIBRARY = "structperc"
CRITERION_FIELDS = {"probabilistic": bool, "independent_sentences": bool}


class Builder:
    """Builds the parts of a model that `describe` described.

    A description names classes; what it names is imported only from this library and from modules that the caller
    trusts, and called only when it is a subclass of what its place takes: the type hint of the argument that it is
    given for. All other arguments are plain JSON values of the types that the hints say.

    Args:
        trusted: names of further modules, such as "own"; modules inside of them are trusted, too.
    """

    def __init__(self, trusted: Iterable[str] = ()) -> None:
        self.trusted = (LIBRARY, *trusted)

    @classmethod
    def like(cls, part: "nn.Module", *others: object) -> "Builder":
        """Return a builder that trusts the modules of the classes that a living object is made of, and of others.

        Others may be functions.
        """
        return cls({one.__module__ for one in (*part.modules(), *others)})

    def find(self, path: Any, base: type | tuple[type, ...], place: str) -> type:
        """Return the class of a dotted path, which must be a subclass of `base`.

        Raises InputError before anything is imported for a module that is not trusted; after that for one that cannot
        be imported, and for what is no subclass of `base` or is abstract.
        """
        check_value(path, str, f"{place}.{CLASS}")
        found = self._imported(present_name(path), place)
        if not (isinstance(found, type) and issubclass(found, base) and self._trusts(found.__module__)):
            raise InputError(f"{place}: {path} is no {_names(base)}")
        if inspect.isabstract(found):
            raise InputError(f"{place}: {path} is abstract; name a class that is derived from it")
        return found

    def function(self, path: Any, place: str) -> Callable[..., Any]:
        """Return the function of a dotted path, such as an attribute of words; those of this library are refused.

        Raises InputError as `find` does, and for what is not a function of a trusted module.
        """
        check_value(path, str, place)
        found = self._imported(path, place)
        module = str(getattr(found, "__module__", ""))
        if isinstance(found, type) or not callable(found) or not self._trusts(module) or _inside(module, LIBRARY):
            raise InputError(f"{place}: {path} is no function of a trusted module")
        return cast(Callable[..., Any], found)

    def trusts(self, path: str) -> bool:
        """Return whether the module of a dotted path may be imported."""
        return self._trusts(present_name(path).rpartition(".")[0])

    def part(self, described: Any, base: type | tuple[type, ...], place: str) -> Any:
        """Return the object that `describe` described. Raises InputError as `find` and `options` do."""
        check_value(described, dict[str, Any], place)
        if unknown := described.keys() - {CLASS, OPTIONS, LEARNED, LABELLING}:
            raise InputError(f"{place}: a part has no entry {min(unknown)!r}; it has {CLASS}, {OPTIONS} and {LEARNED}")
        if LABELLING in described:
            check_fields(described[LABELLING], CRITERION_FIELDS, f"{place}.{LABELLING}")
            check_value(described.get(CLASS), str, f"{place}.{CLASS}")
            if not self.trusts(described[CLASS]):
                return _saved_criterion(described, base, place)
        cls = self.find(described.get(CLASS), base, place)
        made = cls(**self.options(cls, described.get(OPTIONS, {}), f"{place}.{OPTIONS}"))
        if LEARNED in described:
            from structperc.encoders import TextModule  # needs PyTorch, as parts of templates do not

            if not isinstance(made, TextModule):
                raise InputError(f"{place}: {cls.__name__} learns nothing of text, but {LEARNED!r} is given")
            made.load_state(described[LEARNED])
        return made

    def options(self, cls: type, given: Any, place: str) -> dict[str, Any]:
        """Return the arguments of a class, with the parts among them built.

        Raises InputError for arguments that the class does not have, and for values that are not of the argument's
        type.
        """
        check_value(given, dict[str, Any], place)
        known = constructor_parameters(cls)
        if unknown := [name for name in given if name not in known]:
            raise InputError(f"{place}: {cls.__name__} has no option {unknown[0]!r}; it has {', '.join(known)}")
        hints = _hints(cls)
        return {name: self._value(value, hints.get(name, Any), f"{place}.{name}") for name, value in given.items()}

    def _value(self, value: Any, hint: Any, place: str) -> Any:
        if _is_part(value):
            return self.part(value, _modules(hint, place), place)
        if isinstance(value, list) and any(map(_is_part, value)):
            return [self._value(one, _element(hint), f"{place}[{i}]") for i, one in enumerate(value)]
        check_value(value, hint, place)
        return value

    def _imported(self, path: str, place: str) -> Any:
        """Return the object at a dotted path. Raises InputError for a module that is not trusted or not importable."""
        module, _, name = path.rpartition(".")
        if not self._trusts(module):
            raise InputError(
                f"{place}: the model names {path}, which is no part of {LIBRARY}; if you trust the module "
                f"{module or name}, add --trust {module or name} (in Python: trusted=[...])"
            )
        try:
            return getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            missing = f"there is no module {error.name}: start where it lies, or name its folder in PYTHONPATH"
            raise InputError(f"{place}: the model uses {path}, but {missing}") from None
        except (ImportError, AttributeError):
            raise InputError(f"{place}: the model uses {path}, which cannot be imported") from None

    def _trusts(self, module: str) -> bool:
        """Whether it is one of the trusted modules or inside of one; the library's own program is no part of it."""
        if module.startswith(f"{LIBRARY}._"):
            return False
        return any(_inside(module, name) for name in self.trusted)


def _inside(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _saved_criterion(described: dict[str, Any], base: type | tuple[type, ...], place: str) -> Any:
    """A criterion that stands for one of a module that is not trusted."""
    from structperc.criteria.base import InferenceCriterion

    if not issubclass(InferenceCriterion, base):
        raise InputError(f"{place}: {described[CLASS]} is no {_names(base)}")
    return InferenceCriterion(described[CLASS], **described[LABELLING], description=described)


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and CLASS in value


def _hints(cls: type) -> dict[str, Any]:
    """Type hints of the arguments of a class, and of those that it is derived from; none where they cannot be read."""
    found: dict[str, Any] = {}
    for one in cls.__mro__:
        try:
            found = {**get_type_hints(vars(one).get("__init__", object.__init__)), **found}
        except (NameError, TypeError):
            continue
    return found


def _alternatives(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _element(hint: Any) -> Any:
    """What the elements of a list are."""
    inner = [get_args(one)[0] for one in _alternatives(hint) if get_origin(one) is not None and get_args(one)]
    return inner[0] if inner else hint if hint is Any else None


def _modules(hint: Any, place: str) -> tuple[type, ...]:
    """The classes of modules that a place takes. Raises InputError when it takes none."""
    from torch import nn

    taken = tuple(one for one in _alternatives(hint) if isinstance(one, type) and issubclass(one, nn.Module))
    if hint is Any:
        return (nn.Module,)
    if not taken:
        raise InputError(f"{place}: a plain value is due, not a class")
    return taken


def _names(base: type | tuple[type, ...]) -> str:
    return " or ".join(one.__name__ for one in (base if isinstance(base, tuple) else (base,)))
