"""Objects from plain values: classes named by class_path with their init_args, checked against type hints.

Saved models and configurations are built by the same rules. A saved model may name only classes of this library and of
trusted modules. A configuration may name any class, also by its last name, and leave out options with defaults.
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

from structperc.compiled_forms import CriterionForm
from structperc.constructors import (
    CLASS,
    INFERENCE,
    OPTIONS,
    REQUIRED,
    STATE,
    Parameter,
    class_path_of,
    constructor_arguments,
    parameters_of,
    takes_more,
)
from structperc.data.json_data import PLAIN, check_fields, check_value, matches_type
from structperc.errors import InputError
from structperc.spelling import did_you_mean
from structperc.user_code import error_location, is_user_class

if TYPE_CHECKING:
    from torch import nn

LIBRARY = "structperc"
KWARGS = "dict_kwargs"  # further arguments of a class that takes **kwargs
PACKAGES = {  # packages of other libraries whose classes are found by their last name
    "torch.optim.optimizer": ("structperc.optim", "torch.optim"),
    "torch.optim.lr_scheduler": ("structperc.optim", "torch.optim.lr_scheduler"),
    "pytorch_lightning.callbacks.callback": ("structperc.training", "pytorch_lightning.callbacks"),
    "pytorch_lightning.loggers.logger": ("structperc.training", "pytorch_lightning.loggers"),
    "pytorch_lightning.strategies.strategy": ("pytorch_lightning.strategies",),
    "pytorch_lightning.profilers.profiler": ("pytorch_lightning.profilers",),
}
MAX_VALUE = 80  # characters of a wrong value in a message
CONSTRUCTOR_ERRORS = (TypeError, ValueError, RuntimeError, ImportError)  # errors of constructors about their arguments
NO_PLAIN_VALUE = object()  # a default without a plain form


class OptionError(InputError):
    """Error about an option of a configuration or a saved model.

    Args:
        key: Dotted name of the option.
        reason: Description of the error.
        known_options: Names of all options, if this one is unknown.

    Example:
        >>> error = OptionError("model.search.k", "expected int, got 'many'")
        >>> error.key, str(error)
        ('model.search.k', "model.search.k: expected int, got 'many'")
    """

    def __init__(self, key: str, reason: str, known_options: Collection[str] | None = None) -> None:
        super().__init__(f"{key}: {reason}" if key else reason)
        self.key, self.reason, self.known_options = key, reason, known_options


class _Target(NamedTuple):
    """The classes that an option accepts."""

    bases: tuple[type, ...]
    later: int = 0  # number of leading arguments that the program adds later


class Builder:
    """Builds objects from plain values.

    Classes are imported from trusted modules only, and called only if they are subclasses of the type hint of their
    argument. Other arguments are plain values of the hinted types.

    Args:
        trusted: Names of modules besides this library, such as "own", including their submodules. None, as for
            configurations: any module is imported, defaults are filled in and last names of classes suffice.
        text: Returns the text of a value given on the command line, from its dotted name; None for other values.
    """

    def __init__(
        self, trusted: Iterable[str] | None = (), text: Callable[[str], str | None] = lambda place: None
    ) -> None:
        self.any_module = trusted is None
        self.trusted = (LIBRARY, *(trusted or ()))
        self.errors: list[OptionError] = []  # errors of all options of a configuration
        self._text = text

    @classmethod
    def trusting(cls, part: "nn.Module", *others: object) -> "Builder":
        """Return a builder that trusts the modules of the classes of a module and its parts, and of other objects."""
        return cls({one.__module__ for one in (*part.modules(), *others)})

    # -- names -----------------------------------------------------------------------------------------------

    def find(self, path: Any, base: type | tuple[type, ...], place: str) -> Any:
        """Return the class of a dotted path, or a function that returns one.

        Args:
            base: Required base class or classes.
            place: Name of the option, for messages.

        Raises:
            InputError: The module is not trusted (raised before any import), the import fails, the object is not a
                subclass of `base`, or the class is abstract.
        """
        check_value(path, str, f"{place}.{CLASS}")
        bases = base if isinstance(base, tuple) else (base,)
        found = self._imported(self._dotted_path(path, bases, place), place)
        made = found if isinstance(found, type) else self._returned(found)
        if not (isinstance(made, type) and issubclass(made, bases) and self._trusts(made.__module__)):
            raise OptionError(place, f"{path} is not a {_names(bases)}")
        if inspect.isabstract(made):
            raise OptionError(place, f"{path} is abstract; use a subclass of it")
        return found

    def function(self, path: Any, place: str) -> Callable[..., Any]:
        """Return a user's function of a dotted path, such as an attribute of words.

        Raises:
            InputError: See `find`; also for functions of this library, and for objects that are not functions.
        """
        check_value(path, str, place)
        found = self._imported(path, place)
        module = str(getattr(found, "__module__", ""))
        if isinstance(found, type) or not callable(found) or not self._trusts(module) or _inside(module, LIBRARY):
            raise OptionError(place, f"{path} is not a function of a trusted module")
        return cast(Callable[..., Any], found)

    def _trusts_class(self, path: str) -> bool:
        return self._trusts(path.rpartition(".")[0])

    def _trusts(self, module: str) -> bool:
        if module.startswith(f"{LIBRARY}._"):  # the program itself
            return False
        return self.any_module or any(_inside(module, name) for name in self.trusted)

    def _returned(self, function: Any) -> Any:
        """Return the class that a function such as `FeatureExtractor.from_crfpp` returns, in configurations only."""
        if not self.any_module or not callable(function):
            return None
        try:
            return get_type_hints(function).get("return")
        except (NameError, TypeError):
            return None

    def _dotted_path(self, path: str, bases: Iterable[type], place: str) -> str:
        """Return the dotted path of a class that a configuration names by its last name."""
        if "." in path or not self.any_module:
            return path
        known = {
            name: f"{package}.{name}" for package in reversed(packages_of(bases)) for name in public_names(package)
        }
        if path not in known:
            raise OptionError(place, f"unknown class {path!r}{did_you_mean(path, known)}")
        return known[path]

    def _imported(self, path: str, place: str) -> Any:
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
            missing = f"module {error.name} not found: start in its folder, or add the folder to PYTHONPATH"
            raise OptionError(place, f"{path} cannot be imported, {missing}") from None
        except Exception as error:
            if where := error_location(error):
                raise InputError(f"{where}: {type(error).__name__}: {error}") from None
            if isinstance(error, AttributeError):
                raise OptionError(place, f"unknown class {path}{_nearest(path)}") from None
            raise OptionError(place, f"{path} cannot be imported ({type(error).__name__}: {error})") from None

    # -- saved models ----------------------------------------------------------------------------------------

    def part(self, described: Any, base: type | tuple[type, ...], place: str) -> Any:
        """Return the object of a description by `describe`. Raises InputError as `find` and `options` do."""
        check_value(described, dict[str, Any], place)
        target = _Target(base if isinstance(base, tuple) else (base,))
        return self._make(self._class(described, target, place), target, place)

    def options(self, cls: type, given: Any, place: str) -> dict[str, Any]:
        """Return the arguments of a class, with the parts among them built.

        Raises InputError for unknown arguments, and for values of other types than hinted.
        """
        check_value(given, dict[str, Any], place)
        checked = self.fields(given, parameters_of(cls), cls.__name__, place)
        return self._arguments(checked, parameters_of(cls), place)

    # -- plain values ----------------------------------------------------------------------------------------

    def fields(
        self, given: Mapping[str, Any], fields: Mapping[str, Parameter], owner: str, place: str
    ) -> dict[str, Any]:
        """Return checked options by name, in configurations including defaults.

        Raises OptionError for unknown and missing options and wrong types. In configurations, these errors are added
        to `errors` instead, and the options are left out.
        """
        kept: dict[str, Any] = {}
        for name in given:
            if str(name).removesuffix("+") not in fields:
                with self._kept_errors():
                    whole = ".".join([str(name), *_single_keys(given[name])])
                    raise OptionError(_below(place, whole), f"unknown option of {owner}", list(fields))
        for name, (hint, default) in fields.items():
            with self._kept_errors():
                if f"{name}+" in given:  # appended to the default
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
                elif (filled := plain(default)) is not NO_PLAIN_VALUE:
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
        """Return a checked value, with checked options of classes. Raises OptionError for a wrong type."""
        hints = _alternatives(hint)
        nested = _is_part(value) or (isinstance(value, list) and any(map(_is_part, value)))
        if not (hint is Any and nested) and any(matches_type(value, one) for one in hints):
            return (
                float(value)
                if self.any_module and type(value) is int and float in hints and int not in hints
                else value
            )
        if not (isinstance(value, dict) and value.keys() & {CLASS, OPTIONS}):
            items, _ = _map_items(self.value, value, hints, place)
            if items is not None:
                return items
        if isinstance(value, str) and self.any_module and any(map(_is_function, hints)):
            self.function(value, place)
            return value
        if isinstance(value, dict | str) and (target := self._target(hint, value, place)) is not None:
            return self._class(value, target, place, default)
        return self._converted(value, hints, place)

    def _converted(self, value: Any, hints: Sequence[Any], place: str) -> Any:
        """Return a plain value of another type that can represent a hinted type, in configurations only."""
        if self.any_module:
            text = self._text(place)
            if text is not None and str in hints:
                return text
            if isinstance(value, str) and float in hints:
                try:
                    return float(value)  # 1e-4, a string in YAML
                except ValueError:
                    pass
            if isinstance(value, str) and Path in hints:
                return value
            if timedelta in hints and isinstance(value, str | dict):
                return value
        shown = "null" if value is None else value if isinstance(value, str) else repr(value)
        shown = shown if len(shown) <= MAX_VALUE else f"{shown[:MAX_VALUE]}..."
        raise OptionError(place, f"expected {' or '.join(dict.fromkeys(map(type_name, hints)))}, got {shown}")

    def _class(self, value: Any, target: _Target, place: str, default: Any = REQUIRED) -> dict[str, Any]:
        """Return class path and checked options from a name, a class with options, or only options."""
        keys = {CLASS, OPTIONS, KWARGS} if self.any_module else {CLASS, OPTIONS, STATE, INFERENCE}
        if isinstance(value, str):
            value = {CLASS: value}
        elif not value.keys() & keys:
            value = {OPTIONS: value}
        if unknown := sorted(map(str, value.keys() - keys)):
            advice = f"move options of the class into {OPTIONS}{did_you_mean(unknown[0], keys)}"
            raise OptionError(place, f"unexpected {unknown[0]} next to {CLASS}; {advice}")
        if INFERENCE in value:
            check_fields(value[INFERENCE], get_type_hints(CriterionForm), f"{place}.{INFERENCE}")
            check_value(value.get(CLASS), str, f"{place}.{CLASS}")
            if not self._trusts_class(value[CLASS]):
                return value
        path = value.get(CLASS, self._implied(target, default))
        if not isinstance(path, str) or not path:
            if CLASS in value:
                raise OptionError(place, f"{CLASS} is the dotted path of a class, such as structperc.chain.KBest")
            raise OptionError(place, f"specify the {CLASS} of the {_names(target.bases)} and its {OPTIONS}")
        given = value.get(OPTIONS, {})
        if not isinstance(given, dict):
            raise OptionError(_below(place, OPTIONS), "write options as KEY: VALUE")
        made = self.find(path, target.bases, place)
        path = self._dotted_path(path, target.bases, place)
        options = self.fields(given, _given(made, target), path, place)
        more = {key: value[key] for key in keys - {CLASS, OPTIONS} if key in value}
        if KWARGS in more and not (takes_more(made) and isinstance(more[KWARGS], dict)):
            raise OptionError(_below(place, KWARGS), f"{path} accepts no additional arguments")
        return {CLASS: path, **({OPTIONS: options} if options else {}), **more}

    def _implied(self, target: _Target, default: Any) -> str | None:
        """Return the class path for options without one: that of the default, or of the only possible class."""
        if isinstance(default, type) and default is not REQUIRED:
            return class_path_of(default)
        if isinstance(default, dict):
            return default.get(CLASS)
        first, *others = target.bases
        chosen = inspect.isabstract(first) or first is object or first.__module__ in PACKAGES  # by its subclass
        if not others and not chosen:
            return class_path_of(first)
        return None

    def _target(self, hint: Any, value: Any, place: str) -> _Target | None:
        """Return the classes that an option accepts; None if it accepts plain values only."""
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
        """Return the base classes of a hint; () if it accepts plain values only."""
        target = self._target(hint, {}, "")
        return () if target is None else target.bases

    # -- objects ---------------------------------------------------------------------------------------------

    def build(self, value: Any, hint: Any, place: str) -> Any:
        """Return the object of a value that `value` has checked for the same hint."""
        hints = _alternatives(hint)
        if _is_part(value):
            target = self._target(hint, value, place)
            return value if target is None else self._make(value, target, place)
        items, container = _map_items(self.build, value, hints, place)
        if items is not None:
            return tuple(items) if container is tuple else items
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
        if INFERENCE in described and not self._trusts_class(described[CLASS]):
            from structperc.criteria.base import InferenceCriterion

            if not issubclass(InferenceCriterion, target.bases):
                raise OptionError(place, f"{described[CLASS]} is not a {_names(target.bases)}")
            return InferenceCriterion(described[CLASS], CriterionForm(**described[INFERENCE]), described)
        made = self.find(described[CLASS], target.bases, place)
        arguments = self._arguments(described.get(OPTIONS, {}), _given(made, target), place)
        arguments |= described.get(KWARGS, {})
        if target.later:
            return partial(made, **arguments)
        part = made(**arguments) if not self.any_module else _called(made, arguments, place)
        if STATE in described:
            from structperc.encoders.base import TextModule  # imports PyTorch

            if not isinstance(part, TextModule):
                raise OptionError(place, f"{made.__name__} has no state, but {STATE!r} is given")
            part.load_state(described[STATE])
        return part

    def _arguments(self, options: Mapping[str, Any], fields: Mapping[str, Parameter], place: str) -> dict[str, Any]:
        return {name: self.build(value, fields[name].hint, _below(place, name)) for name, value in options.items()}


def describe(part: Any) -> dict[str, Any]:
    """Return {class_path, init_args} of an object whose options are attributes of the same names.

    Modules among its options are described in the same way. Text modules add their vocabularies; user-defined criteria
    that do not change the scores of labels add their properties for inference without them. `part`: Object of this
    library or of a user's class.

    Raises:
        InputError: An option without an attribute.
    """
    from structperc.criteria.base import Criterion, InferenceCriterion  # imports PyTorch
    from structperc.encoders.base import TextModule

    if isinstance(part, InferenceCriterion):
        return part.description
    options = {name: describe_value(value) for name, value in constructor_arguments(part).items()}
    found = {CLASS: class_path_of(type(part)), OPTIONS: options}
    if isinstance(part, Criterion) and is_user_class(type(part)) and (form := part.compiled()) is not None:
        found[INFERENCE] = form._asdict()
    learned = part.to_state() if isinstance(part, TextModule) else None
    return found if learned is None else {**found, STATE: learned}


def describe_value(value: Any) -> Any:
    """Return an option as plain JSON types: modules, also in a list, by `describe`, other values unchanged.

    `value`: Option of a part.
    """
    from torch import nn

    if isinstance(value, nn.ModuleList):
        return [describe(one) for one in value]
    return describe(value) if isinstance(value, nn.Module) else value


def without_learned(described: Any) -> Any:
    """Return a description without the vocabularies of its text modules.

    `described`: Result of `describe` or `describe_value`.
    """
    if isinstance(described, list):
        return [without_learned(one) for one in described]
    if not isinstance(described, dict):
        return described
    return {name: without_learned(value) for name, value in described.items() if name != STATE}


def plain(value: Any) -> Any:
    """Return a default as plain values, classes by their paths; NO_PLAIN_VALUE if it has no such form.

    `value`: Default of an option.
    """
    if isinstance(value, bool | int | float | str | NoneType):
        return value
    if isinstance(value, list | tuple):
        items = [plain(one) for one in value]
        return NO_PLAIN_VALUE if NO_PLAIN_VALUE in items else items
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, type):
        defaults = {
            name: plain(one.default) for name, one in parameters_of(value).items() if one.default is not REQUIRED
        }
        options = {name: one for name, one in defaults.items() if one is not NO_PLAIN_VALUE}
        return {CLASS: class_path_of(value), **({OPTIONS: options} if options else {})}
    return NO_PLAIN_VALUE


def packages_of(bases: Iterable[type]) -> list[str]:
    """Return the packages that are searched for subclasses by their last name.

    `bases`: Base classes.
    """
    found: list[str] = []
    for base in bases:
        found += PACKAGES.get(base.__module__, (".".join(base.__module__.split(".")[:2]),))
    return list(dict.fromkeys(found))


def public_names(package: str) -> list[str]:
    """Return the public names of a package; [] if it cannot be imported.

    `package`: Dotted name of the package.
    """
    try:
        module = importlib.import_module(package)
    except ImportError:
        return []
    return list(getattr(module, "__all__", dir(module)))


def option_names(path: str) -> set[str]:
    """Return the names of the options of a class; an empty set if it cannot be imported.

    `path`: Dotted path of the class.
    """
    return set(_options_of(path))


def accepts_several(path: str, option: str) -> bool:
    """Return True if an option of a class accepts a class, and also a mapping of names to classes.

    `path`: Dotted path of the class. `option`: Name of the option.
    """
    found = _options_of(path).get(option)
    hints = () if found is None else _alternatives(found.hint)
    return any(isinstance(one, type) and not _is_plain(one) for one in hints) and any(map(_is_mapping, hints))


def _options_of(path: str) -> dict[str, Parameter]:
    try:
        return parameters_of(_attribute(path))
    except Exception:  # reported when the class is built
        return {}


def type_name(hint: Any) -> str:
    """Return a type hint as text for messages."""
    if len(kinds := _alternatives(hint)) > 1:
        return " or ".join(dict.fromkeys(map(type_name, kinds)))
    if get_origin(hint) is Literal:
        return f"one of {', '.join(map(repr, get_args(hint)))}"
    if hint in (None, NoneType):
        return "null"
    origin = get_origin(hint) or hint
    if origin is Callable:
        return "a function" if _is_function(hint) else f"a class path of {type_name(get_args(hint)[1])}"
    name = str(getattr(origin, "__name__", origin))
    return name.lower() if _is_plain(origin) else name


def _called(made: Callable[..., Any], arguments: dict[str, Any], place: str) -> Any:
    try:
        return made(**arguments)
    except InputError:
        raise
    except Exception as error:
        if where := error_location(error):
            raise InputError(f"{where}: {type(error).__name__}: {error}") from error
        if isinstance(error, CONSTRUCTOR_ERRORS) or "Misconfiguration" in type(error).__name__:
            name = getattr(made, "__qualname__", "")
            raise OptionError(place, " ".join(f"{name}: {error}".split())) from error
        raise


def _attribute(path: str) -> Any:
    """Return the object at a dotted path: a name in a module, or in a class of a module."""
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
    module, _, name = path.rpartition(".")
    if names := public_names(module):
        return did_you_mean(name, names)
    package, _, last = module.rpartition(".")
    return did_you_mean(last, public_names(package)) if package else ""


def _given(made: Callable[..., Any], target: _Target) -> dict[str, Parameter]:
    return dict(list(parameters_of(made).items())[target.later :])


def _duration(value: Any, place: str) -> timedelta:
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
    """Return the types of the items of a list of this length; None if the hint is not a list."""
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


def _map_items(convert: Callable[[Any, Any, str], Any], value: Any, hints: Sequence[Any], place: str) -> Any:
    """Return a list or dictionary with converted items, and its hinted type; (None, None) if no hint is one.

    `convert` takes an item, its type hint and its dotted name.
    """
    for hint in hints:
        if isinstance(value, list) and (kinds := _elements(hint, len(value))) is not None:
            pairs = enumerate(zip(value, kinds, strict=True))
            return [convert(item, kind, _below(place, str(i))) for i, (item, kind) in pairs], get_origin(hint)
    mappings = [hint for hint in hints if _is_mapping(hint)]
    if not (isinstance(value, dict) and mappings):
        return None, None
    wrong = [[key for key in value if not _fits(key, get_args(hint)[0])] for hint in mappings]
    if all(wrong):
        key, expected = wrong[0][0], type_name(get_args(mappings[0])[0])
        advice = "; write it in quotes" if expected == "str" else ""
        raise OptionError(_below(place, str(key)), f"expected a {expected} as key, got {key!r}{advice}")
    hint = mappings[wrong.index([])]
    kind = get_args(hint)[1]
    return {key: convert(item, kind, _below(place, str(key))) for key, item in value.items()}, get_origin(hint)


def _fits(key: Any, hint: Any) -> bool:
    """Return True if a key has the hinted type; those of saved models are texts."""
    number = hint is int and isinstance(key, str) and key.lstrip("-").isdecimal()
    return hint not in PLAIN or matches_type(key, hint) or number


def _is_mapping(hint: Any) -> bool:
    origin = get_origin(hint)
    return isinstance(origin, type) and issubclass(dict, origin) and len(get_args(hint)) == 2


def _is_function(hint: Any) -> bool:
    return get_origin(hint) is Callable and _is_plain(get_args(hint)[1])


def _is_plain(kind: Any) -> bool:
    return kind in (bool, int, float, str, list, dict, tuple, bytes, None, NoneType, Path, timedelta, object)


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and CLASS in value


def _single_keys(value: Any) -> list[str]:
    """Return the keys of nested mappings of one key each, as of a dotted option."""
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
