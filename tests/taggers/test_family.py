"""Taggers are built up in layers, each of which adds to the one before: what works is never overridden."""

import importlib
import inspect
import pkgutil

import pytest

import structperc
from structperc.taggers import GuidedTagger, Tagger
from structperc.taggers.lattice_tagger import Scoring
from structperc.taggers.saving import SavedTagger


def family(base):
    """All classes of the library that are derived from this one, the base among them."""
    for room in ("taggers", "reranking"):
        for module in pkgutil.iter_modules(importlib.import_module(f"structperc.{room}").__path__):
            importlib.import_module(f"structperc.{room}.{module.name}")
    found = [base]
    for cls in found:
        found += [kind for kind in cls.__subclasses__() if kind not in found]
    return [cls for cls in found if own(cls)]


def own(cls):
    return cls.__module__.startswith(f"{structperc.__name__}.")


def methods(cls):
    """Names of what is defined in the class itself and may be called or read, but for its construction."""
    kinds = (property, classmethod, staticmethod)
    return {n for n, value in vars(cls).items() if inspect.isfunction(value) or isinstance(value, kinds)} - {"__init__"}


FAMILY = [*family(SavedTagger), *family(Scoring)]


@pytest.mark.parametrize("cls", FAMILY, ids=lambda cls: cls.__name__)
def test_nothing_concrete_is_overridden(cls):
    for base in filter(own, cls.__mro__[1:]):
        abstract = {name for name in methods(base) if getattr(vars(base)[name], "__isabstractmethod__", False)}
        assert not methods(cls) & (methods(base) - abstract), f"{cls.__name__} overrides {base.__name__}"


@pytest.mark.parametrize("cls", FAMILY, ids=lambda cls: cls.__name__)
def test_a_class_is_abstract_or_final(cls):
    assert inspect.isabstract(cls) == any(own(kind) for kind in cls.__subclasses__())


@pytest.mark.parametrize("cls", FAMILY, ids=lambda cls: cls.__name__)
def test_methods_ask_for_no_other_class(cls):
    """A method of a mixin would say whose attributes it needs."""
    for name in methods(cls):
        function = getattr(cls, name)
        if inspect.isfunction(function):
            first = next(iter(inspect.signature(function).parameters.values()), None)
            assert first is None or first.annotation is inspect.Parameter.empty, f"{cls.__name__}.{name}"


def test_the_family_is_all_here():
    names = {cls.__name__ for cls in FAMILY}
    assert {
        "Tagger",
        "GuidedTagger",
        "Reranker",
        "GlobalReranker",
        "LatticeScoring",
        "ListScores",
        "RankedLists",
    } <= names
    assert not issubclass(GuidedTagger, Tagger)
