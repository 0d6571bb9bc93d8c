"""Objects from plain values: which classes, which options, which errors; in saved models and in configurations."""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Literal

import pytest
from torch import nn
from torch.optim import SGD, Optimizer

from structperc.builder import Builder, OptionError
from structperc.chain import KBest
from structperc.constructors import Parameter, constructor_arguments, parameters_of
from structperc.criteria import Criterion
from structperc.errors import InputError

KBEST = "structperc.chain.KBest"


class Thing:
    """Has options of many types."""

    def __init__(
        self,
        search: KBest,
        rate: float = 0.5,
        names: Sequence[str] = (),
        pair: tuple[float, float] = (0.9, 0.99),
        unit: Literal["word", "line"] = "word",
        by_name: dict[str, KBest] | None = None,
        make: Callable[[Iterable[Any]], Optimizer] = SGD,
        after: timedelta | None = None,
    ) -> None:
        self.search, self.rate, self.names, self.pair, self.unit = search, rate, names, pair, unit
        self.by_name, self.make, self.after = by_name, make, after


def built(**given):
    """The object of a configuration."""
    builder, hint = Builder(None), Thing
    value = builder.value({"class_path": f"{__name__}.Thing", "init_args": given}, hint, "thing")
    if builder.errors:
        raise builder.errors[0]
    return value, builder.build(value, hint, "thing")


def test_options_are_of_their_types():
    values, thing = built(
        search={"k": 2},
        rate="1e-3",
        pair=[1, 2],
        by_name={"a": "KBest", "b": {"class_path": KBEST, "init_args": {"k": 3}}},
        make={"class_path": "SGD", "init_args": {"lr": 1}},
        after={"hours": 1},
    )
    assert thing.search.k == 2
    assert (thing.rate, thing.names, thing.pair, thing.after) == (0.001, [], (1, 2), timedelta(hours=1))
    assert isinstance(thing.pair, tuple)
    assert {name: one.k for name, one in thing.by_name.items()} == {"a": KBest().k, "b": 3}
    assert isinstance(thing.make, partial)
    assert thing.make([nn.Parameter(nn.Linear(1, 1).weight)]).defaults["lr"] == 1
    assert values["init_args"]["search"] == {"class_path": KBEST, "init_args": {"k": 2}}
    assert values["init_args"]["unit"] == "word"


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({}, "thing"),
        ({"search": {"kk": 2}}, "thing.search.kk"),
        ({"search": {"k": None}}, "thing.search.k"),
        ({"search": {"k": 2}, "names": [1]}, "thing.names.0"),
        ({"search": {"k": 2}, "by_name": {"a": {"k": "x"}}}, "thing.by_name.a.k"),
        ({"search": {"class_path": "structperc.chain.KBst"}}, "thing.search"),
        ({"search": {"class_path": "structperc.criteria.CRFLoss"}}, "thing.search"),
        ({"search": {"k": 2}, "after": "soon"}, "thing.after"),
    ],
)
def test_errors_name_the_option(given, place):
    with pytest.raises(OptionError) as error:
        built(**given)
    assert error.value.key == place


def test_constructor_errors_name_the_option():
    builder = Builder(None)
    value = builder.value(
        {"class_path": "torch.nn.Linear", "init_args": {"in_features": 1, "out_features": -1}}, Any, "x"
    )
    with pytest.raises(InputError, match=r"^x: "):
        builder.build(value, Any, "x")


def test_saved_models_name_trusted_classes_only(tmp_path, monkeypatch):
    (tmp_path / "own_part.py").write_text("raise SystemExit('this code runs')\n")
    monkeypatch.syspath_prepend(tmp_path)
    for path in ("own_part.Own", "os.getcwd", "structperc.__main__.main"):
        with pytest.raises(InputError):
            Builder().part({"class_path": path, "init_args": {}}, nn.Module, "scorer")
    with pytest.raises(InputError, match=r"^criterion: "):
        Builder().part({"class_path": KBEST, "init_args": {"k": 1}}, Criterion, "criterion")
    with pytest.raises(InputError, match=r"^search\.init_args\.k|^search\.k"):
        Builder().part({"class_path": KBEST, "init_args": {"k": "1"}}, KBest, "search")
    assert Builder().part({"class_path": KBEST, "init_args": {"k": 3}}, KBest, "search").k == 3


def test_parameters_of_base_classes():
    class Own(KBest):
        def __init__(self, more: int = 1, **options: Any) -> None:
            super().__init__(**options)
            self.more = more

    assert list(parameters_of(Own)) == ["more", *parameters_of(KBest)]
    assert constructor_arguments(Own(more=2, k=3)) == {"more": 2, "k": 3}
    assert parameters_of(SGD)["lr"].default == Parameter(None, 1e-3).default
