"""Strings and conjunctions of values as 64-bit numbers, the same in all processes, on all machines, in all versions."""

from hashlib import blake2b
from typing import Literal

import numpy as np

from structperc.features.templates import Template, template_name
from structperc.features.windows import View

Kind = Literal["value", "beyond", "template", "listed"]  # strings of different kinds have different numbers
NO_KEY = 0  # an absent value, and the conjunction of absent values
SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # those of splitmix64 (Steele et al. 2014)


def string_hash(text: str, kind: Kind) -> int:
    """Return the first 64 bits of a string's BLAKE2b digest, the lowest byte first."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, person=kind.encode()).digest()
    return int.from_bytes(digest, "little")


def mixed(x):  # type: ignore[no-untyped-def]  # of a number, when it is compiled, or of an array
    """Return numbers (uint64) each bit of which depends on each bit of x; different ones for different x."""
    x = (x ^ (x >> SHIFTS[0])) * FACTORS[0]
    x = (x ^ (x >> SHIFTS[1])) * FACTORS[1]
    return x ^ (x >> SHIFTS[2])


def template_seed(template: Template) -> np.uint64:
    """Return the number that the keys of a template begin with; it is the key of the bias."""
    return np.uint64(string_hash(template_name(template), "template"))


def hashed_keys(view: View, template: Template) -> np.ndarray:
    """Return the key of a template at each token, (N,) uint64, NO_KEY where all its parts are absent."""
    keys = np.full(view.tokens, template_seed(template))
    absent = np.full(view.tokens, bool(template))
    for part in template:
        codes = view.codes[part.attribute][view.numbers(part)]
        keys = mixed(keys ^ codes)
        absent &= codes == NO_KEY
    keys[absent] = NO_KEY
    return keys
