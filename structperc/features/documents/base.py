"""Base class of attributes that read whole documents."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, Self

import numpy as np

from structperc.constructors import CLASS, OPTIONS, STATE, class_path_of, constructor_arguments
from structperc.data.corpus import Corpus, Factorized, factorize
from structperc.errors import InputError
from structperc.user_code import class_location, is_user_class

DocumentExtent = Literal["document", "corpus"]
Lookup = Callable[[str], Factorized]  # name of an attribute -> its value at each token


class PartBuilder(Protocol):
    """Builder of the objects of a saved model, from classes of trusted modules."""

    trusted: tuple[str, ...]  # names of modules

    def part(self, described: Any, base: type, place: str) -> Any:
        """Build an object from its description (class_path, init_args).

        Raises InputError with the location for an untrusted class, one not derived from `base`, and invalid options.
        """

    def function(self, path: Any, place: str) -> Callable[..., Any]:
        """Return the function with this dotted path. Raises InputError with the location for untrusted modules."""


class DocumentAttribute(ABC):
    """Base class of attributes whose value at a token depends on the whole document.

    Subclasses store each argument of their constructor in an attribute with the same name, so that it can be saved.
    Labels are never read. Attributes that depend on training data implement `fit`, `to_json`, `arrays` and
    `load_state`.

    Example:
        >>> from structperc.features import FeatureExtractor
        >>> class Title(DocumentAttribute):
        ...     def transform(self, corpus, lookup):  # the first sentence of the corpus
        ...         return ["title" if t < corpus.sentences[1] else "" for t in range(corpus.tokens)]
        >>> features = FeatureExtractor(["part[0]"], documents={"part": Title()}, cutoff=1)
        >>> features.fit(Corpus.from_sentences([{"word": ["News"]}, {"word": ["It", "rained"]}]))
        >>> features.index.names("node")
        ['part[0]=title']
    """

    attributes: tuple[str, ...] = ()  # names of the attributes or columns that `transform` looks up
    within: DocumentExtent = "document"  # the text on which a value depends

    @abstractmethod
    def transform(self, corpus: Corpus, lookup: Lookup) -> Factorized | Sequence[str]:
        """Return the value at each of the N tokens of a corpus, "" for none: N strings, or a `Factorized`.

        Args:
            corpus: the corpus.
            lookup: returns the values of an attribute listed in `attributes`.
        """

    def fit(self, corpus: Corpus) -> Self:
        """Return this attribute fitted to a training corpus; by default unchanged."""
        return self

    def resume_fit(self, corpus: Corpus) -> Self:
        """Return this attribute of a saved model for further training on a corpus.

        Raises:
            InputError: the corpus would have other values than the original training data.
        """
        return self

    def to_json(self) -> dict[str, Any]:
        """Return class and options as plain JSON types: {"class_path": ..., "init_args": {...}}.

        Fitted attributes add their state as "state".
        """
        return {CLASS: class_path_of(type(self)), OPTIONS: constructor_arguments(self)}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the fitted state by name; by default none."""
        return {}

    def load_state(self, state: Any, arrays: Mapping[str, np.ndarray], build: PartBuilder, place: str) -> None:
        """Restore the state that `to_json` and `arrays` returned.

        Raises:
            InputError: an invalid state.
        """
        raise InputError(f"{place}: {type(self).__name__} has no state, but {STATE!r} is given")


def attribute_values(attribute: DocumentAttribute, corpus: Corpus, lookup: Lookup) -> Factorized:
    """Return the values of an attribute at all tokens of a corpus.

    Args:
        attribute: The attribute.
        corpus: A corpus of N tokens.
        lookup: Returns the values of an attribute listed in `attribute.attributes`.

    Raises:
        InputError: `transform` did not return a string for each token; the message has its file and line.
    """
    returned = attribute.transform(corpus, lookup)
    numbered = returned if isinstance(returned, Factorized) else None
    if numbered is not None and not is_user_class(type(attribute)):
        return numbered
    place = class_location(type(attribute), "transform")
    if numbered is None and (isinstance(returned, str) or not isinstance(returned, Sequence)):
        raise InputError(f"{place} must return a list of strings, one for each token, not {type(returned).__name__}")
    strings: Sequence[Any] = returned if numbered is None else numbered.distinct
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
    if (
        numbered.numbers.dtype.kind not in "iu"
        or not ((numbered.numbers >= 0) & (numbered.numbers < len(strings))).all()
    ):
        raise InputError(f"{place} must return numbers of its {len(strings)} distinct strings, from 0 on")
    return numbered


def restore(
    described: Mapping[str, Any], arrays: Mapping[str, np.ndarray], build: PartBuilder, place: str
) -> DocumentAttribute:
    """Return the attribute saved by `to_json` and `arrays`.

    Args:
        described: What `to_json` returned.
        arrays: What `arrays` returned.
        build: Builds objects of trusted modules.
        place: Location of the description, for errors.

    Raises:
        InputError: The description is invalid.
    """
    options = {name: value for name, value in described.items() if name != STATE}
    attribute: DocumentAttribute = build.part(options, DocumentAttribute, place)
    if STATE in described:
        attribute.load_state(described[STATE], arrays, build, place)
    return attribute
