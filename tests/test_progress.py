"""Bars show themselves on terminals, nowhere else, unless it is said otherwise."""

import io
import re
from contextlib import redirect_stderr, suppress
from contextvars import copy_context
from pathlib import Path

import pytest

from structperc import progress
from structperc.progress import bar, library_bars, show_bars
from tests.terminal import terminal

WHAT = "a long description of what is being done"


def steps(said=None, show=True):
    show_bars(said)
    return list(bar(iter([1, 2, 3]), WHAT, 3, show))


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(progress, "DELAY", 0)


@pytest.mark.parametrize(
    ("given", "seen"), [({}, True), ({"said": False}, False), ({"said": True, "show": False}, False)]
)
def test_bar_in_a_terminal(given, seen):
    with terminal(30) as written:
        assert copy_context().run(steps, **given) == [1, 2, 3]
    lines = written.text.split("\r")
    assert max(map(len, lines)) <= 30
    assert any(line.startswith(WHAT[:20]) for line in lines) == seen
    assert lines[-1] == ""


@pytest.mark.parametrize(("given", "seen"), [({}, False), ({"said": True}, True)])
def test_bars_in_files(given, seen):
    with redirect_stderr(io.StringIO()) as written:
        assert copy_context().run(steps, **given) == [1, 2, 3]
    assert (WHAT in written.getvalue()) == seen


def test_options_of_a_context():
    copy_context().run(show_bars, True)
    with redirect_stderr(io.StringIO()) as written:
        assert list(bar([1], WHAT)) == [1]
    assert written.getvalue() == ""


def test_bars_of_other_libraries_follow():
    def calls(said, on):
        show_bars(said)
        seen = []
        with suppress(KeyError), library_bars(on, lambda: seen.append("off"), lambda: seen.append("on")):
            seen.append("within")
            raise KeyError
        return seen

    with redirect_stderr(io.StringIO()):
        assert copy_context().run(calls, None, True) == ["off", "within", "on"]
        assert copy_context().run(calls, None, False) == ["within"]
        assert copy_context().run(calls, True, True) == ["within"]
    with terminal(80):
        assert copy_context().run(calls, None, True) == ["within"]
        assert copy_context().run(calls, False, True) == ["off", "within", "on"]


def test_one_place_makes_bars():
    """Others would flood files, or be seen where none are wanted."""
    package = Path(progress.__file__).parent
    makers = {
        path.name for path in package.rglob("*.py") if re.search(r"\btqdm\(|\brich\b|\btrange\b", path.read_text())
    }
    assert makers == {"progress.py"}
