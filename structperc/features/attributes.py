"""Surface attributes: properties of a single word as a string; "" if the attribute is absent.

Names are those of Kazama & Torisawa 2007, Table 1. The word-form flags go back to Bikel et al. 1999, where each word
has exactly one class; here each flag is independent of the others, so "EU" has both `ic` and `ac`.
A new attribute of the library is a function with a name in `SURFACE`; a user's is a function of another module.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial, wraps

from structperc.data.words import character_types, word_shape
from structperc.errors import InputError
from structperc.user_code import function_location

Attribute = Callable[[str], str]

FLAG = "1"  # value of a flag that is set
SURFACE: dict[str, Attribute] = {"w": str, "wl": str.lower, "shape": word_shape}
_OTHER = re.compile("[^Aa0]")


def flag(name: str) -> Callable[[Callable[[str], bool]], Attribute]:
    """Make a predicate of words an attribute in `SURFACE` with this name: "1" where it is true, else ""."""

    def decorate(predicate: Callable[[str], bool]) -> Attribute:
        @wraps(predicate)
        def attribute(token: str) -> str:
            return FLAG if predicate(token) else ""

        SURFACE[name] = attribute
        return attribute

    return decorate


@flag("2d")
def two_digits(token: str) -> bool:
    """Flag words of exactly two digits, such as 96."""
    return len(token) == 2 and token.isdigit()


@flag("4d")
def four_digits(token: str) -> bool:
    """Flag words of exactly four digits, such as 1996."""
    return len(token) == 4 and token.isdigit()


@flag("d&a")
def digit_and_letter(token: str) -> bool:
    """Flag words with a digit and a letter, such as A8956-67."""
    return _has_digit(token) and any(map(str.isalpha, token))


@flag("n")
def other_number(token: str) -> bool:
    """Flag words of digits only whose length is neither two nor four, such as 456789."""
    return len(token) not in (2, 4) and token.isdigit()


@flag("ic")
def initial_capital(token: str) -> bool:
    """Flag words whose first character is a capital, such as Sally."""
    return token[:1].isupper()


@flag("ac")
def all_capitals(token: str) -> bool:
    """Flag words with at least one letter in which every letter is a capital, such as BBN, U.S. and F-16."""
    return token.isupper()


@flag("l")
def all_lower_case(token: str) -> bool:
    """Flag words with at least one letter in which every letter is lower case, such as can and mid-1990s."""
    return token.islower()


@flag("cp")
def capital_and_period(token: str) -> bool:
    """Flag words of one capital and a period, such as M."""
    return len(token) == 2 and token[0].isupper() and token[1] == "."


@flag("has_number")
def has_number(token: str) -> bool:
    """Flag words with a digit (Ratnaparkhi 1996)."""
    return _has_digit(token)


@flag("has_uppercase")
def has_uppercase(token: str) -> bool:
    """Flag words with a capital (Ratnaparkhi 1996)."""
    return any(map(str.isupper, token))


@flag("has_hyphen")
def has_hyphen(token: str) -> bool:
    """Flag words with a hyphen (Ratnaparkhi 1996)."""
    return "-" in token


def character_classes(token: str) -> str:
    """Return the word with A for A-Z, a for a-z, 0 for 0-9 and - for other characters (Suzuki et al. 2006, 5.2)."""
    return _OTHER.sub("-", character_types(token))


def digit_and(character: str, token: str) -> str:
    """Flag words with a digit and a character, such as 09-96, 11/9/89, 23,000.00 and 1.00."""
    return FLAG if character in token and _has_digit(token) else ""


SURFACE |= {f"d&{character}": partial(digit_and, character) for character in "-/,."}
SURFACE["pattern"] = character_classes


def surface_attribute(name: str) -> Attribute | None:
    """Return the attribute with this name: an entry of `SURFACE`, or p or s and a length; None for other names."""
    if affix := re.fullmatch("([ps])([1-9][0-9]*)", name):
        kind, length = affix.groups()
        return partial(_prefix if kind == "p" else _suffix, int(length))
    return SURFACE.get(name)


def attribute_path(name: str, attribute: Attribute) -> str:
    """Return the dotted path under which a saved model stores a user's function: "own.vowels".

    Raises InputError for an object without such a path, such as a lambda.
    """
    module, path = getattr(attribute, "__module__", None), getattr(attribute, "__qualname__", "")
    if not module or not path or "." in path or "<" in path or not callable(attribute) or isinstance(attribute, type):
        raise InputError(
            f"attributes.{name}: {attribute!r} has no path by which a saved model could name it; "
            "define it in a module, as def NAME(word: str) -> str"
        )
    return f"{module}.{path}"


def read_attribute(attribute: Attribute, words: Sequence[str]) -> list[str]:
    """Return the values of a user's attribute for words. Raises InputError for a value that is not a string."""
    values = list(map(attribute, words))
    for word_, value in zip(words, values, strict=True):
        if not isinstance(value, str):
            raise InputError(
                f'{function_location(attribute)} must return a string, "" where there is no value; '
                f"it returned {value!r} for {word_!r}"
            )
    return values


def _prefix(length: int, token: str) -> str:
    return token[:length] if len(token) >= length else ""


def _suffix(length: int, token: str) -> str:
    return token[-length:] if len(token) >= length else ""


def _has_digit(token: str) -> bool:
    return not token.isalpha() and any(map(str.isdigit, token))
