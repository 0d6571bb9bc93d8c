"""Attributes that read whole documents."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, Self

import numpy as np

from structperc.constructors import CLASS, OPTIONS, STATE, class_path_of, constructor_arguments
from structperc.data.corpus import Corpus, Factorized, factorize
from structperc.errors import InputError
from structperc.user_code import class_location, is_user_class

Extent = Literal["document", "corpus"]
Lookup = Callable[[str], Factorized]  # from the name of an attribute to its value at each token


class PartBuilder(Protocol):
    """Makes the objects that a saved model tells of, of classes that are trusted."""

    trusted: tuple[str, ...]  # names of modules

    def part(self, described: Any, base: type, place: str) -> Any:
        """Return the object that a description (class_path, init_args) tells of, of a class derived from `base`.

        Raises InputError, naming the place, for a class that is not trusted and for options that it does not take.
        """

    def function(self, path: Any, place: str) -> Callable[..., Any]:
        """Return the function of a dotted path, of a module that is trusted.

        Raises InputError, naming the place, for any other one.
        """


class DocumentAttribute(ABC):
    """A string for each token of a corpus, which all of its document decides.

    Subclasses keep their options under the names of their arguments, so that a saved model can say what it reads.
    Labels are never read: text without labels has the same attributes. What an attribute takes from the training data
    it takes in `learn`; those that take something also say what is saved of it, and read it again.
    """

    attributes: tuple[str, ...] = ()  # the names of those that `read` looks up, or columns
    within: Extent = "document"  # what decides a value: the document, or all of the corpus that is read at once

    @abstractmethod
    def read(self, corpus: Corpus, lookup: Lookup) -> Factorized | Sequence[str]:
        """Return the value at each of the N tokens of a corpus, "" where there is none: N strings, or these numbered.

        lookup: gives the values of the attributes that `attributes` names.
        """

    def learn(self, corpus: Corpus) -> Self:
        """Return this attribute as it is after a training corpus; it is read after that. Most learn nothing."""
        return self

    def start(self, corpus: Corpus) -> Self:
        """Return this attribute of a saved model for a training that starts from that model and learns from a corpus.

        Raises InputError where the values of the corpus would not be those of training data.
        """
        return self

    def to_json(self) -> dict[str, Any]:
        """Return class and options as plain JSON types: {"class_path": ..., "init_args": {...}}.

        Attributes that have learned something add it as "state".
        """
        return {CLASS: class_path_of(type(self)), OPTIONS: constructor_arguments(self)}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays by name that belong to what `to_json` says of what was learned."""
        return {}

    def load_state(self, learned: Any, arrays: Mapping[str, np.ndarray], build: PartBuilder, place: str) -> None:
        """Take back what was learned, as `to_json` and `arrays` gave it. Raises InputError for anything else."""
        raise InputError(f"{place}: {type(self).__name__} learns nothing, but {STATE!r} is given")


def attribute_values(attribute: DocumentAttribute, corpus: Corpus, lookup: Lookup) -> Factorized:
    """Return what an attribute reads of a corpus, numbered.

    Raises InputError, with file and line of `read`, unless that is a string for each token.
    """
    found = attribute.read(corpus, lookup)
    numbered = found if isinstance(found, Factorized) else None
    if numbered is not None and not is_user_class(type(attribute)):
        return numbered
    place = class_location(type(attribute), "read")
    if numbered is None and (isinstance(found, str) or not isinstance(found, Sequence)):
        raise InputError(f"{place} must return a list of strings, one for each token, not {type(found).__name__}")
    strings: Sequence[Any] = found if numbered is None else numbered.distinct
    n = len(strings) if numbered is None else len(numbered.numbers)
    if n != corpus.tokens:
        raise InputError(f"{place} must return a value for each of the {corpus.tokens:,} tokens; it returned {n:,}")
    if wrong := [number for number, value in enumerate(strings) if not isinstance(value, str)]:
        at = wrong[0] if numbered is None else int(np.argmax(numbered.numbers == wrong[0]))
        raise InputError(
            f'{place} must return strings, "" where there is no value; it returned {strings[wrong[0]]!r} for '
            f"{corpus.columns['word'][at]!r} ({corpus.where(at)})"
        )
    if numbered is None:
        return factorize(strings)
    if numbered.numbers.dtype.kind not in "iu" or not _within(numbered.numbers, len(strings)):
        raise InputError(f"{place} must return numbers of its {len(strings)} distinct strings, from 0 on")
    return numbered


def _within(numbers: np.ndarray, n: int) -> bool:
    return bool(((numbers >= 0) & (numbers < n)).all())


def restore(
    described: Mapping[str, Any], arrays: Mapping[str, np.ndarray], build: PartBuilder, place: str
) -> DocumentAttribute:
    """Return the attribute that `to_json` and `arrays` told of. Raises InputError for an invalid description."""
    options = {name: value for name, value in described.items() if name != STATE}
    attribute: DocumentAttribute = build.part(options, DocumentAttribute, place)
    if STATE in described:
        attribute.load_state(described[STATE], arrays, build, place)
    return attribute
