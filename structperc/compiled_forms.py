"""Compiled forms: what compiled code, without the code of a part, needs to know of it.

A part returns its form, or None if only its own code computes its results.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple


class CriterionForm(NamedTuple):
    """Compiled form of a criterion whose models predict the best path of the scorer's lattice.

    Attributes:
        name: class name.
        probabilistic: True if exp(score - log Z) is a probability.
        independent_sentences: True if the local scores of a sentence do not depend on other sentences.
    """

    name: str
    probabilistic: bool
    independent_sentences: bool


class SegmentFeaturesForm(NamedTuple):
    """Options of features of segments; see `scorers.SegmentFeatures`.

    Their keys and phrases are arrays of the saved model.
    """

    templates: list[str]
    max_length: int
    hash_bits: int | None


class Compilable:
    """Base class of parts with methods that return a compiled form, or None.

    A subclass that redefines a method on which a form depends loses this form, unless it redefines that of the form,
    too: then its results are not those of the form.
    """

    form_methods: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # method of a form: methods on which it depends

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for form, methods in cls.form_methods.items():
            if any(_owner(cls, name) < _owner(cls, form) for name in methods):
                setattr(cls, form, lambda part: None)


def _owner(cls: type, method: str) -> int:
    """Return the place in the method resolution order of the class that defines a method; the end if none does."""
    return next((place for place, one in enumerate(cls.__mro__) if method in vars(one)), len(cls.__mro__))
