"""The inheritance of taggers stays flat."""

import importlib
import pkgutil

import pytest
import pytorch_lightning as pl

import structperc
from structperc.models import ChainModel, Model
from structperc.taggers import GuidedTagger, Tagger
from structperc.taggers.base import BaseTagger


def taggers():
    """All tagger classes of the library."""
    for package in ("taggers", "reranking"):
        for module in pkgutil.iter_modules(importlib.import_module(f"structperc.{package}").__path__):
            importlib.import_module(f"structperc.{package}.{module.name}")
    found = [BaseTagger]
    for cls in found:
        found += [kind for kind in cls.__subclasses__() if kind not in found]
    return [cls for cls in found if cls.__module__.startswith(f"{structperc.__name__}.")]


@pytest.mark.parametrize("cls", taggers(), ids=lambda cls: cls.__name__)
def test_at_most_three_levels(cls):
    own = [base for base in cls.__mro__[1:] if issubclass(base, BaseTagger)]
    assert len(own) <= 3
    assert all(len([base for base in one.__bases__ if issubclass(base, BaseTagger)]) <= 1 for one in [cls, *own])


def test_models_need_no_trainer():
    assert not any(issubclass(cls, pl.LightningModule) for cls in (Model, ChainModel))


def test_the_family_is_all_here():
    assert {"Tagger", "GuidedTagger", "Reranker", "GlobalReranker"} <= {cls.__name__ for cls in taggers()}
    assert not issubclass(GuidedTagger, Tagger)
