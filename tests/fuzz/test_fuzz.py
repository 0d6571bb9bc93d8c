"""Malformed input of every kind: never a traceback, a hang, a call of what is in a file, a lost or unfinished file.

`pytest -m fuzz` runs all cases, which takes half an hour; `python -m tests.fuzz 17` runs case 17.
"""

import pytest

from tests.fuzz.cases import KINDS, Fuzzer
from tests.fuzz.command_lines import GOOD
from tests.fuzz.outcome import FINE

CASES = 2000
QUICK = 3  # of each kind
BLOCK = 100  # cases of one test


@pytest.fixture(scope="session")
def fuzzer(tmp_path_factory):
    return Fuzzer(tmp_path_factory.mktemp("fuzz"))


def bad(fuzzer, numbers):
    """What is not fine among cases, a line each."""
    return [str(case) for case in map(fuzzer, numbers) if case.judged.outcome not in FINE]


@pytest.mark.long
def test_a_number_is_always_the_same_case(fuzzer):
    first, again = ([fuzzer.attempt(number) for number in range(len(KINDS))] for _ in range(2))
    assert first == again
    assert [kind for kind, _ in first] == [kind.__name__ for kind in KINDS]


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=[kind.__name__ for kind in KINDS])
def test_some_of_each_kind(fuzzer, kind):
    assert not bad(fuzzer, range(kind, QUICK * len(KINDS), len(KINDS)))


@pytest.mark.fuzz
@pytest.mark.slow
def test_right_inputs_are_accepted_without_a_word(fuzzer):
    """Else what is refused would not say anything about what was changed."""
    attempts = [fuzzer.attempt(number) for number in range(600)]
    commands = {tuple(attempt.arguments) for kind, attempt in attempts if kind != "command_lines"} | set(GOOD)
    ended = {command: fuzzer.right(command) for command in sorted(commands)}
    assert {" ".join(c): (r.warned or r.err) for c, r in ended.items() if r.status != 0 or r.warned} == {}


@pytest.mark.fuzz
@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, CASES, BLOCK))
def test_all(fuzzer, start):
    assert not bad(fuzzer, range(start, start + BLOCK))
