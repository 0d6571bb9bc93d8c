"""Objects from plain values: classes named by class_path with their init_args, checked against type hints.

Saved models and configurations are built by the same rules. A saved model may name classes of this library and of
trusted modules only; a configuration may name any class, by its last name, too, and without options that have defaults.
"""

import importlib
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

from structperc.constructors import (
    CLASS,
    LABELLING,
    LEARNED,
    OPTIONS,
    REQUIRED,
    Parameter,
    class_path_of,
    parameters_of,
    takes_more,
)
from structperc.data.json_data import check_fields, check_value, matches_type
from structperc.errors import InputError
from structperc.spelling import did_you_mean
from structperc.user_code import error_location

if TYPE_CHECKING:
    from torch import nn

LIBRARY = "structperc"
MORE = "dict_kwargs"  # further arguments of a class that takes **kwargs
CRITERION_FIELDS = {"probabilistic": bool, "independent_sentences": bool}
PACKAGES = {  # where classes of other libraries are looked for by their last name
    "torch.optim.optimizer": ("structperc.optim", "torch.optim"),
    "torch.optim.lr_scheduler": ("structperc.optim", "torch.optim.lr_scheduler"),
    "pytorch_lightning.callbacks.callback": ("structperc.training", "pytorch_lightning.callbacks"),
    "pytorch_lightning.loggers.logger": ("structperc.training", "pytorch_lightning.loggers"),
    "pytorch_lightning.strategies.strategy": ("pytorch_lightning.strategies",),
    "pytorch_lightning.profilers.profiler": ("pytorch_lightning.profilers",),
}
SHOWN = 80  # characters of a wrong value in a message
REFUSALS = (TypeError, ValueError, RuntimeError, ImportError)  # errors of constructors about their arguments
ABSENT = object()  # a default that has no plain form


class OptionError(InputError):
    """A wrong value, with its dotted place; for an unknown option also the names that could have been meant."""

    def __init__(self, place: str, complaint: str, known: Collection[str] | None = None) -> None:
        super().__init__(f"{place}: {complaint}" if place else complaint)
        self.place, self.complaint, self.known = place, complaint, known


class _Target(NamedTuple):
    """Classes that a place accepts, and how many arguments their constructors get later, from the program."""

    bases: tuple[type, ...]
    later: int = 0


class Builder:
    """Builds objects from plain values.

    What a value names is imported from trusted modules only, and called only when it is a subclass of what its place
    takes: the type hint of the argument that it is given for. Other arguments are plain values of the hinted types.

    Args:
        trusted: names of modules beside this library, such as "own", with all modules inside of them; None: any module
            is imported, defaults are filled in and last names of classes suffice, as in configurations.
        text: returns the text of a plain value given on the command line, from its place; None for others.
    """

    def __init__(
        self, trusted: Iterable[str] | None = (), text: Callable[[str], str | None] = lambda place: None
    ) -> None:
        self.any_module = trusted is None
        self.trusted = (LIBRARY, *(trusted or ()))
        self.errors: list[OptionError] = []  # of options of a configuration, which are all looked at
        self._text = text

    @classmethod
    def like(cls, part: "nn.Module", *others: object) -> "Builder":
        """Return a builder that trusts the modules of the classes that an object is made of, and of others.

        Others may be functions.
        """
        return cls({one.__module__ for one in (*part.modules(), *others)})

    # -- names -----------------------------------------------------------------------------------------------

    def find(self, path: Any, base: type | tuple[type, ...], place: str) -> Any:
        """Return the class of a dotted path, which must be a subclass of `base`, or a function that returns one.

        Raises InputError before anything is imported for a module that is not trusted; after that for one that cannot
        be imported, and for what is not a subclass of `base` or is abstract.
        """
        check_value(path, str, f"{place}.{CLASS}")
        bases = base if isinstance(base, tuple) else (base,)
        found = self._imported(self._whole(path, bases, place), place)
        made = found if isinstance(found, type) else self._returned(found)
        if not (isinstance(made, type) and issubclass(made, bases) and self._trusts(made.__module__)):
            raise OptionError(place, f"{path} is not a {_names(bases)}")
        if inspect.isabstract(made):
            raise OptionError(place, f"{path} is abstract; name a class that is derived from it")
        return found

    def function(self, path: Any, place: str) -> Callable[..., Any]:
        """Return the function of a dotted path, such as an attribute of words; those of this library are refused.

        Raises InputError as `find` does, and for what is not a function of a trusted module.
        """
        check_value(path, str, place)
        found = self._imported(path, place)
        module = str(getattr(found, "__module__", ""))
        if isinstance(found, type) or not callable(found) or not self._trusts(module) or _inside(module, LIBRARY):
            raise OptionError(place, f"{path} is not a function of a trusted module")
        return cast(Callable[..., Any], found)

    def trusts(self, path: str) -> bool:
        """Return whether the module of a dotted path may be imported."""
        return self._trusts(path.rpartition(".")[0])

    def _trusts(self, module: str) -> bool:
        if module.startswith(f"{LIBRARY}._"):  # the program itself
            return False
        return self.any_module or any(_inside(module, name) for name in self.trusted)

    def _returned(self, function: Any) -> Any:
        """The class that a function such as `FeatureExtractor.from_crfpp` returns, in configurations only."""
        if not self.any_module or not callable(function):
            return None
        try:
            return get_type_hints(function).get("return")
        except (NameError, TypeError):
            return None

    def _whole(self, path: str, bases: Iterable[type], place: str) -> str:
        """The dotted path of a class that a configuration names by its last name."""
        if "." in path or not self.any_module:
            return path
        known = {
            name: f"{package}.{name}" for package in reversed(packages_of(bases)) for name in public_names(package)
        }
        if path not in known:
            raise OptionError(place, f"unknown class {path!r}{did_you_mean(path, known)}")
        return known[path]

    def _imported(self, path: str, place: str) -> Any:
        """Return the object at a dotted path. Raises InputError for a module that is not trusted or not importable."""
        module, _, name = path.rpartition(".")
        if not self._trusts(module):
            raise OptionError(
                place,
                f"the model names {path}, which is not part of {LIBRARY}; if you trust the module "
                f"{module or name}, add --trust {module or name} (in Python: trusted=[...])",
            )
        if not all(part.isidentifier() for part in path.split(".")) or not module:
            raise OptionError(place, f"{path!r} is not a class path, such as structperc.chain.KBest")
        try:
            return _attribute(path)
        except ModuleNotFoundError as error:
            if self.any_module and module.startswith(str(error.name)):
                raise OptionError(place, f"unknown class {path}{_nearest(path)}") from None
            missing = f"there is no module {error.name}: start where it lies, or name its folder in PYTHONPATH"
            raise OptionError(place, f"{path} cannot be imported, {missing}") from None
        except AttributeError as error:
            if where := error_location(error):
                raise InputError(f"{where}: {type(error).__name__}: {error}") from None
            raise OptionError(place, f"unknown class {path}{_nearest(path)}") from None
        except Exception as error:
            if where := error_location(error):
                raise InputError(f"{where}: {type(error).__name__}: {error}") from None
            raise OptionError(place, f"{path} cannot be imported ({type(error).__name__}: {error})") from None

    # -- saved models ----------------------------------------------------------------------------------------

    def part(self, described: Any, base: type | tuple[type, ...], place: str) -> Any:
        """Return the object that `describe` described. Raises InputError as `find` and `options` do."""
        check_value(described, dict[str, Any], place)
        bases = base if isinstance(base, tuple) else (base,)
        return self._make(self._class(described, _Target(bases), place), _Target(bases), place)

    def options(self, cls: type, given: Any, place: str) -> dict[str, Any]:
        """Return the arguments of a class, with the parts among them built.

        Raises InputError for arguments that the class does not have, and for values that are not of the hinted type.
        """
        check_value(given, dict[str, Any], place)
        checked = self.fields(given, parameters_of(cls), cls.__name__, place)
        return self._arguments(checked, parameters_of(cls), place)

    def _is_foreign_criterion(self, described: dict[str, Any], place: str) -> bool:
        check_fields(described[LABELLING], CRITERION_FIELDS, f"{place}.{LABELLING}")
        check_value(described.get(CLASS), str, f"{place}.{CLASS}")
        return not self.trusts(described[CLASS])

    # -- plain values ----------------------------------------------------------------------------------------

    def fields(
        self, given: Mapping[str, Any], fields: Mapping[str, Parameter], owner: str, place: str
    ) -> dict[str, Any]:
        """Return checked options by name; in configurations with the defaults of those that are not given.

        Raises OptionError for an unknown one, and for one that is missing or of another type. In configurations such
        errors are kept in `errors` instead, and the options concerned are left out.
        """
        kept: dict[str, Any] = {}
        for name in given:
            if name.removesuffix("+") not in fields:
                with self._kept_errors():
                    whole = ".".join([name, *_single_keys(given[name])])
                    raise OptionError(_below(place, whole), f"unknown option of {owner}", list(fields))
        for name, (hint, default) in fields.items():
            with self._kept_errors():
                if f"{name}+" in given:  # added to the default
                    more = given[f"{name}+"]
                    start = plain(default) if isinstance(default, list | tuple) else []
                    value: Any = [*start, *(more if isinstance(more, list) else [more])]
                    kept[name] = self.value(value, hint, _below(place, name))
                elif name in given:
                    kept[name] = self.value(given[name], hint, _below(place, name), default)
                elif not self.any_module:
                    continue
                elif default is REQUIRED and matches_type(None, hint):
                    kept[name] = None
                elif default is REQUIRED:
                    raise OptionError(place, f"{owner} requires the option {name}")
                elif (filled := plain(default)) is not ABSENT:
                    kept[name] = filled
        return kept

    @contextmanager
    def _kept_errors(self) -> Iterator[None]:
        try:
            yield
        except OptionError as error:
            if not self.any_module:
                raise
            self.errors.append(error)

    def value(self, value: Any, hint: Any, place: str, default: Any = REQUIRED) -> Any:
        """Return a checked value, whose classes have their options. Raises OptionError for one of another type."""
        hints = _alternatives(hint)
        nested = _is_part(value) or (isinstance(value, list) and any(map(_is_part, value)))
        if not (hint is Any and nested) and any(matches_type(value, one) for one in hints):
            return (
                float(value)
                if self.any_module and type(value) is int and float in hints and int not in hints
                else value
            )
        if isinstance(value, list):
            for one in hints:
                if (elements := _elements(one, len(value))) is not None:
                    pairs = enumerate(zip(value, elements, strict=True))
                    return [self.value(item, kind, _below(place, str(i))) for i, (item, kind) in pairs]
        if isinstance(value, dict) and not value.keys() & {CLASS, OPTIONS}:
            for one in hints:
                if (element := _values(one)) is not None:
                    return {key: self.value(item, element, _below(place, key)) for key, item in value.items()}
        if isinstance(value, str) and self.any_module and any(map(_is_function, hints)):
            self.function(value, place)
            return value
        if isinstance(value, dict | str) and (target := self._target(hint, value, place)) is not None:
            return self._class(value, target, place, default)
        return self._converted(value, hints, place)

    def _converted(self, value: Any, hints: Sequence[Any], place: str) -> Any:
        """A plain value of another type that stands for one of the hinted types, in configurations only."""
        if self.any_module:
            text = self._text(place)
            if text is not None and str in hints:
                return text
            if isinstance(value, str) and float in hints:
                try:
                    return float(value)  # 1e-4, which YAML takes for a text
                except ValueError:
                    pass
            if isinstance(value, str) and Path in hints:
                return value
            if timedelta in hints and isinstance(value, str | dict):
                return value
        shown = "null" if value is None else value if isinstance(value, str) else repr(value)
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
        raise OptionError(place, f"expected {' or '.join(dict.fromkeys(map(type_name, hints)))}, got {shown}")

    def _class(self, value: Any, target: _Target, place: str, default: Any = REQUIRED) -> dict[str, Any]:
        """Class path and checked options of what is written as a name, a class with options, or options."""
        keys = {CLASS, OPTIONS, MORE} if self.any_module else {CLASS, OPTIONS, LEARNED, LABELLING}
        if isinstance(value, str):
            value = {CLASS: value}
        elif not value.keys() & keys:
            value = {OPTIONS: value}
        if beside := sorted(value.keys() - keys):
            advice = f"options of a class stand under {OPTIONS}{did_you_mean(beside[0], keys)}"
            raise OptionError(place, f"{beside[0]} stands beside {CLASS}; {advice}")
        if LABELLING in value and self._is_foreign_criterion(value, place):
            return value
        path = value.get(CLASS, self._implied(target, default))
        if not isinstance(path, str) or not path:
            if CLASS in value:
                raise OptionError(place, f"{CLASS} is the dotted path of a class, such as structperc.chain.KBest")
            raise OptionError(place, f"write the {CLASS} of a {_names(target.bases)} and its {OPTIONS}")
        given = value.get(OPTIONS, {})
        if not isinstance(given, dict):
            raise OptionError(_below(place, OPTIONS), "write options as KEY: VALUE")
        made = self.find(path, target.bases, place)
        path = self._whole(path, target.bases, place)
        options = self.fields(given, _given(made, target), path, place)
        more = {key: value[key] for key in keys - {CLASS, OPTIONS} if key in value}
        if MORE in more and not (takes_more(made) and isinstance(more[MORE], dict)):
            raise OptionError(_below(place, MORE), f"{path} takes no further arguments")
        return {CLASS: path, **({OPTIONS: options} if options else {}), **more}

    def _implied(self, target: _Target, default: Any) -> str | None:
        """The class of options that are written without one: that of the default, or the only one that fits."""
        if isinstance(default, type) and default is not REQUIRED:
            return class_path_of(default)
        if isinstance(default, dict):
            return default.get(CLASS)
        if len(target.bases) == 1 and not inspect.isabstract(target.bases[0]) and target.bases[0] is not object:
            return class_path_of(target.bases[0])
        return None

    def _target(self, hint: Any, value: Any, place: str) -> _Target | None:
        """The classes that a place takes, None where it takes plain values only."""
        classes = [one for one in _alternatives(hint) if isinstance(one, type) and not _is_plain(one)]
        if not self.any_module:
            if not _is_part(value):
                return None
            from torch import nn

            if hint is Any:
                return _Target((nn.Module,))
            taken = tuple(one for one in classes if issubclass(one, nn.Module))
            if not taken:
                raise OptionError(place, "expected a plain value, got a class")
            return _Target(taken)
        if hint is Any:
            return _Target((object,))
        for one in _alternatives(hint):
            if get_origin(one) is Callable and not _is_function(one):
                taken_later, returned = get_args(one)
                return _Target((returned,), 1 if taken_later is ... else len(taken_later))
        return _Target(tuple(classes)) if classes else None

    def bases_of(self, hint: Any) -> tuple[type, ...]:
        """Return the classes of which a place takes subclasses; none where it takes plain values only."""
        target = self._target(hint, {}, "")
        return () if target is None else target.bases

    # -- objects ---------------------------------------------------------------------------------------------

    def build(self, value: Any, hint: Any, place: str) -> Any:
        """Return the object that a value stands for, which `value` has returned for the same hint."""
        hints = _alternatives(hint)
        if _is_part(value):
            target = self._target(hint, value, place)
            return value if target is None else self._make(value, target, place)
        if isinstance(value, list):
            for one in hints:
                if (elements := _elements(one, len(value))) is not None:
                    made = [
                        self.build(v, kind, _below(place, str(i)))
                        for i, (v, kind) in enumerate(zip(value, elements, strict=True))
                    ]
                    return tuple(made) if get_origin(one) is tuple else made
        if isinstance(value, dict):
            for one in hints:
                if (element := _values(one)) is not None:
                    return {key: self.build(item, element, _below(place, key)) for key, item in value.items()}
        if (
            isinstance(value, str)
            and not any(matches_type(value, one) for one in hints)
            and any(map(_is_function, hints))
        ):
            return self.function(value, place)
        if timedelta in hints and isinstance(value, str | dict) and str not in hints:
            return _duration(value, place)
        return value

    def _make(self, described: dict[str, Any], target: _Target, place: str) -> Any:
        if LABELLING in described and self._is_foreign_criterion(described, place):
            return _saved_criterion(described, target.bases, place)
        made = self.find(described[CLASS], target.bases, place)
        arguments = self._arguments(described.get(OPTIONS, {}), _given(made, target), place)
        arguments |= described.get(MORE, {})
        if target.later:
            return partial(made, **arguments)
        part = made(**arguments) if not self.any_module else _called(made, arguments, place)
        if LEARNED in described:
            from structperc.encoders import TextModule  # needs PyTorch, as parts of templates do not

            if not isinstance(part, TextModule):
                raise OptionError(place, f"{made.__name__} learns nothing of text, but {LEARNED!r} is given")
            part.load_state(described[LEARNED])
        return part

    def _arguments(self, options: Mapping[str, Any], fields: Mapping[str, Parameter], place: str) -> dict[str, Any]:
        return {name: self.build(value, fields[name].hint, _below(place, name)) for name, value in options.items()}


def plain(value: Any) -> Any:
    """Return a default as plain values: classes and functions by their paths; ABSENT for one that has no such form."""
    if isinstance(value, bool | int | float | str | NoneType):
        return value
    if isinstance(value, list | tuple):
        items = [plain(one) for one in value]
        return ABSENT if ABSENT in items else items
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, type):
        own = {name: plain(one.default) for name, one in parameters_of(value).items() if one.default is not REQUIRED}
        options = {name: one for name, one in own.items() if one is not ABSENT}
        return {CLASS: class_path_of(value), **({OPTIONS: options} if options else {})}
    return ABSENT


def packages_of(bases: Iterable[type]) -> list[str]:
    """Return the packages in which subclasses of some classes are looked for by their last name."""
    found: list[str] = []
    for base in bases:
        found += PACKAGES.get(base.__module__, (".".join(base.__module__.split(".")[:2]),))
    return list(dict.fromkeys(found))


def public_names(package: str) -> list[str]:
    """Return the public names of a package; none of one that cannot be imported."""
    try:
        module = importlib.import_module(package)
    except ImportError:
        return []
    return list(getattr(module, "__all__", dir(module)))


def type_name(hint: Any) -> str:
    """Return a type hint as a message shows it.

    Example:
        >>> type_name(int), type_name(None), type_name(list[str]), type_name(Literal["a", "b"])
        ('int', 'null', 'list', "one of 'a', 'b'")
    """
    if len(kinds := _alternatives(hint)) > 1:
        return " or ".join(dict.fromkeys(map(type_name, kinds)))
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(repr, get_args(hint)))}"
    if hint in (None, NoneType):
        return "null"
    origin = get_origin(hint) or hint
    if origin is Callable:
        return "a function" if _is_function(hint) else f"a class path of {type_name(get_args(hint)[1])}"
    return (
        str(getattr(origin, "__name__", origin)).lower()
        if _is_plain(origin)
        else str(getattr(origin, "__name__", origin))
    )


def _called(made: Callable[..., Any], arguments: dict[str, Any], place: str) -> Any:
    """The object that a configured class makes. Raises InputError for what it refuses or lacks."""
    try:
        return made(**arguments)
    except InputError:
        raise
    except Exception as error:
        if where := error_location(error):
            raise InputError(f"{where}: {type(error).__name__}: {error}") from error
        if (
            isinstance(error, TypeError | ValueError | RuntimeError | ImportError)
            or "Misconfiguration" in type(error).__name__
        ):
            name = getattr(made, "__qualname__", "")
            raise OptionError(place, " ".join(f"{name}: {error}".split())) from error
        raise


def _saved_criterion(described: dict[str, Any], bases: tuple[type, ...], place: str) -> Any:
    """A criterion that stands for one of a module that is not trusted."""
    from structperc.criteria.base import InferenceCriterion

    if not issubclass(InferenceCriterion, bases):
        raise OptionError(place, f"{described[CLASS]} is not a {_names(bases)}")
    return InferenceCriterion(described[CLASS], **described[LABELLING], description=described)


def _attribute(path: str) -> Any:
    """The object at a dotted path: a name of a module, or of a class in a module."""
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        module = ".".join(parts[:end])
        try:
            found: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if end == 1 or not (error.name and _inside(module, error.name)):
                raise
            continue
        for name in parts[end:]:
            found = getattr(found, name)
        return found
    raise ModuleNotFoundError(path, name=path)


def _nearest(path: str) -> str:
    """A suggestion for a name that a module does not have, or for the module."""
    module, _, name = path.rpartition(".")
    if names := public_names(module):
        return did_you_mean(name, names)
    package, _, last = module.rpartition(".")
    return did_you_mean(last, public_names(package)) if package else ""


def _given(made: Callable[..., Any], target: _Target) -> dict[str, Parameter]:
    """The parameters of a class that a configuration gives: not those first ones that the program gives later."""
    return dict(list(parameters_of(made).items())[target.later :])


def _duration(value: Any, place: str) -> timedelta:
    """A span of time from {hours: 1, minutes: 30} or "DD:HH:MM:SS"."""
    try:
        if isinstance(value, str):
            names = ("days", "hours", "minutes", "seconds")
            parts = [int(one) for one in value.split(":")]
            value = dict(zip(names[len(names) - len(parts) :], parts, strict=True))
        return timedelta(**value)
    except (TypeError, ValueError):
        raise OptionError(place, f"expected DD:HH:MM:SS or {{hours: N}}, got {value}") from None


def _alternatives(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, UnionType):
        return tuple(inner for one in get_args(hint) for inner in _alternatives(one))
    return (hint,)


def _elements(hint: Any, number: int) -> Sequence[Any] | None:
    """The types of the items of a list of this length; None where the hint is not that of a list."""
    if hint is Any:
        return [Any] * number
    origin, inner = get_origin(hint), get_args(hint)
    if origin is tuple:
        if inner[1:] == (...,):
            return [inner[0]] * number
        return inner if len(inner) == number else None
    if isinstance(origin, type) and origin is not type and issubclass(list, origin) and inner:
        return [inner[0]] * number
    return None


def _values(hint: Any) -> Any:
    """The type of the values of a dictionary; None where the hint is not that of a dictionary."""
    origin, inner = get_origin(hint), get_args(hint)
    return inner[1] if isinstance(origin, type) and issubclass(dict, origin) and len(inner) == 2 else None


def _is_function(hint: Any) -> bool:
    """Whether a hint is that of a function of plain values, such as an attribute of words."""
    return get_origin(hint) is Callable and _is_plain(get_args(hint)[1])


def _is_plain(kind: Any) -> bool:
    return kind in (bool, int, float, str, list, dict, tuple, bytes, None, NoneType, Path, timedelta, object)


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and CLASS in value


def _single_keys(value: Any) -> list[str]:
    """The keys from a mapping of one key to the next, as of a dotted option."""
    if not isinstance(value, dict) or len(value) != 1:
        return []
    ((key, inner),) = value.items()
    return [str(key), *_single_keys(inner)]


def _inside(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _names(bases: Iterable[type]) -> str:
    return " or ".join(one.__name__ for one in bases)
