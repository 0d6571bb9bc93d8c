"""The shape that a configuration must have before any of its keys is looked up: a mapping, with classes as such."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from structperc.errors import InputError
from structperc.former_names import present_name
from structperc.spelling import did_you_mean

CLASS = ("class_path", "init_args", "dict_kwargs")  # keys of one


class Misshapen(NamedTuple):
    """A part of a configuration that is not written as it must be."""

    keys: tuple[str, ...]  # from the top to what is wrong; places in lists are numbers
    shown: str  # dotted keys of the class that it belongs to
    complaint: str


def check_shape(value: Any, name: str) -> None:
    """Raise InputError, which begins with the name of the text, for what is no mapping and for a misshapen part."""
    if not isinstance(value, dict):
        what = "is empty" if value is None else f"holds {'a list' if isinstance(value, list) else 'plain text'}"
        raise InputError(f"{name}: a configuration is written as KEY: VALUE, but this {what}")
    for part in misshapen(value):
        raise InputError(f"{name}: {part.shown}: {part.complaint}")


def misshapen(value: Any, above: tuple[str, ...] = ()) -> Iterator[Misshapen]:
    """Yield all parts, from the top, that are not written as a class with its options."""
    shown = ".".join(above)
    if isinstance(value, dict) and "class_path" in value:
        if not isinstance(value["class_path"], str) or not value["class_path"]:
            yield Misshapen(above, shown, "class_path is the dotted path of a class, such as structperc.chain.KBest")
        elif (now := present_name(value["class_path"])) != value["class_path"]:
            yield Misshapen(above, shown, f"{value['class_path']} is now {now}")
        for beside in value.keys() - set(CLASS):
            advice = f"options of a class stand under init_args{did_you_mean(str(beside), CLASS[1:])}"
            yield Misshapen((*above, str(beside)), shown, f"{beside} stands beside class_path; {advice}")
    if isinstance(value, dict) and not isinstance(value.get("init_args", {}), dict):
        yield Misshapen(above, shown, "init_args are written as KEY: VALUE")
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from misshapen(one, (*above, str(key)))
