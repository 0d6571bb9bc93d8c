"""Many cases of one fact in one test: as parameters would do, but without a test of its own for each."""

from collections.abc import Callable
from typing import Any


class Each(dict[object, Callable[[], Any]]):
    """What a fixture gives: {name: makes the value}. The test is called with one value after the other.

    What monkeypatch changes holds for the cases that follow, too: a test that takes both patches in a context.
    """


def call_with_each(test: Callable[..., Any], arguments: dict[str, Any]) -> bool:
    """Calls a test for all cases that it is given; -> False where it is given none. Failures name their case."""
    name = next((name for name, value in arguments.items() if isinstance(value, Each)), None)
    if name is None:
        return False
    for case, make in arguments[name].items():
        try:
            test(**{**arguments, name: make()})
        except Exception as error:
            error.add_note(f"{name}: {case}")
            raise
    return True
