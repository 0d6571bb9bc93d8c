"""Surface attributes: what one word looks like, as a string; "" says that the attribute is absent.

Names are those of Kazama & Torisawa 2007, Table 1. The word-form flags go back to Bikel et al. 1999, who give
each word exactly one class; here every flag is asked by itself, so "EU" has both `ic` and `ac`.
A new attribute of the library is one function and one line in `SURFACE`; a user's is a function of her own module.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

from structperc.data.words import character_types, word_shape
from structperc.errors import InputError
from structperc.user_code import function_location

Attribute = Callable[[str], str]

HOLDS = "1"  # the value of a flag that holds


def word(token: str) -> str:
    """Return the word itself: `w`."""
    return token


def lower_case(token: str) -> str:
    """Return the down-cased word: `wl`."""
    return token.lower()


def prefix(length: int) -> Attribute:
    """Return the attribute "first `length` characters", absent in shorter words: `p1`, `p2`, ..."""
    return partial(_first, length)  # which can be pickled


def suffix(length: int) -> Attribute:
    """Return the attribute "last `length` characters", absent in shorter words: `s1`, `s2`, ..."""
    return partial(_last, length)


def two_digits(token: str) -> str:
    """Flag words of two digits and nothing else, as 96: `2d`."""
    return _flag(len(token) == 2 and token.isdigit())


def four_digits(token: str) -> str:
    """Flag words of four digits and nothing else, as 1996: `4d`."""
    return _flag(len(token) == 4 and token.isdigit())


def digit_and_letter(token: str) -> str:
    """Flag words with a digit and a letter, as A8956-67: `d&a`."""
    return _flag(_has_digit(token) and any(map(str.isalpha, token)))


def digit_and_hyphen(token: str) -> str:
    """Flag words with a digit and a hyphen, as 09-96: `d&-`."""
    return _flag("-" in token and _has_digit(token))


def digit_and_slash(token: str) -> str:
    """Flag words with a digit and a slash, as 11/9/89: `d&/`."""
    return _flag("/" in token and _has_digit(token))


def digit_and_comma(token: str) -> str:
    """Flag words with a digit and a comma, as 23,000.00: `d&,`."""
    return _flag("," in token and _has_digit(token))


def digit_and_period(token: str) -> str:
    """Flag words with a digit and a period, as 1.00: `d&.`."""
    return _flag("." in token and _has_digit(token))


def other_number(token: str) -> str:
    """Flag words of digits and nothing else, but not two or four of them, as 456789: `n`."""
    return _flag(len(token) not in (2, 4) and token.isdigit())


def initial_capital(token: str) -> str:
    """Flag words whose first character is a capital, as Sally: `ic`."""
    return _flag(token[:1].isupper())


def all_capitals(token: str) -> str:
    """Flag words with at least one letter in which every letter is a capital, as BBN, U.S. and F-16: `ac`."""
    return _flag(token.isupper())


def all_lower_case(token: str) -> str:
    """Flag words with at least one letter in which every letter is lower case, as can and mid-1990s: `l`."""
    return _flag(token.islower())


def capital_and_period(token: str) -> str:
    """Flag words of one capital and a period, as M.: `cp`."""
    return _flag(len(token) == 2 and token[0].isupper() and token[1] == ".")


def character_classes(token: str) -> str:
    """Return the word with A for A-Z, a for a-z, 0 for 0-9 and - for the rest (Suzuki et al. 2006, 5.2): `pattern`."""
    return _OTHER.sub("-", character_types(token))


def shape(token: str) -> str:
    """Return the word's shape: like `pattern`, but others stay and runs become one, G.M. becomes A.A.: `shape`.

    The shape is that of Collins (2002).
    """
    return word_shape(token)


def has_number(token: str) -> str:
    """Flag words with a digit anywhere (Ratnaparkhi 1996): `has_number`."""
    return _flag(_has_digit(token))


def has_uppercase(token: str) -> str:
    """Flag words with a capital anywhere (Ratnaparkhi 1996): `has_uppercase`."""
    return _flag(any(map(str.isupper, token)))


def has_hyphen(token: str) -> str:
    """Flag words with a hyphen anywhere (Ratnaparkhi 1996): `has_hyphen`."""
    return _flag("-" in token)


SURFACE: dict[str, Attribute] = {
    "w": word,
    "wl": lower_case,
    "2d": two_digits,
    "4d": four_digits,
    "d&a": digit_and_letter,
    "d&-": digit_and_hyphen,
    "d&/": digit_and_slash,
    "d&,": digit_and_comma,
    "d&.": digit_and_period,
    "n": other_number,
    "ic": initial_capital,
    "ac": all_capitals,
    "l": all_lower_case,
    "cp": capital_and_period,
    "pattern": character_classes,
    "shape": shape,
    "has_number": has_number,
    "has_uppercase": has_uppercase,
    "has_hyphen": has_hyphen,
}


def surface_attribute(name: str) -> Attribute | None:
    """Return the attribute called `name`: an entry of `SURFACE`, or p or s and a length; None for others."""
    if affix := re.fullmatch("([ps])([1-9][0-9]*)", name):
        kind, length = affix.groups()
        return prefix(int(length)) if kind == "p" else suffix(int(length))
    return SURFACE.get(name)


def attribute_path(name: str, attribute: Attribute) -> str:
    """Return the dotted path by which a saved model names a user's attribute, a function of a module: "own.vowels".

    Raises InputError for what has none, such as a lambda.
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


_OTHER = re.compile("[^Aa0]")


def _first(length: int, token: str) -> str:
    return token[:length] if len(token) >= length else ""


def _last(length: int, token: str) -> str:
    return token[-length:] if len(token) >= length else ""


def _flag(holds: bool) -> str:
    return HOLDS if holds else ""


def _has_digit(token: str) -> bool:
    return not token.isalpha() and any(map(str.isdigit, token))
