"""What is wrong with JSON is named."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structperc.data.json_data import looks_like_json, parse_json_lines, parse_json_records
from structperc.errors import InputError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("a\u00e9{}[],:\"' ", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=30)
@given(st.lists(st.dictionaries(st.text("ab", max_size=2), VALUES, max_size=3), max_size=4), st.sampled_from([None, 1]))
def test_an_array_is_the_same_as_lines(rows, indent):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    assert [row for _, row in parse_json_records(lines, "a")] == rows
    array = json.dumps(rows, indent=indent)
    found = parse_json_records(array, "a")
    assert [row for _, row in found] == rows
    if indent is None and len(rows) > 1:  # all on one line
        assert [place for place, _ in found] == [f"a, row {number}" for number in range(1, len(rows) + 1)]
        return
    numbers = [int(place.rpartition(":")[2]) for place, _ in found]
    assert all(array.splitlines()[number - 1].lstrip(" [").startswith("{") for number in numbers)
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    "line",
    [
        '{"text": "Anna left",}',
        "{'text': 'Anna'}",
        '{"text": NaN}',
        "{",
        '{"a": 1, "a": 2}',
        '{"a": [{"b": {"c": 1, "d": 2, "c": 1}}]}',
        '[{"a": 1}]',
        '{"a": "x\ty"}',
        '{"a": 1} {"a": 2}',
        "[" * 10_000,
        r'{"a": "\ud800"}',
    ],
)
def test_errors_name_the_line(line):
    with pytest.raises(InputError, match=r"^a:2: ") as error:
        parse_json_lines(["{}", line], "a")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[\n{"a": 1},\n]', 3),
        ('[\n{"a": 1}\n{"a": 2}]', 2),
        ('[{"a": 1},\n{"a": NaN}]', 2),
        ('[{"a": 1},\n{"a": 1, "a": 1}]', 2),
        ('[["Anna", {"entities": []}]]', 1),
        ('[{"a": 1}]\n[{"a": 1}]', 1),
        ('[{"a": 1}', 1),
    ],
)
def test_errors_in_an_array_name_the_line(text, line):
    with pytest.raises(InputError, match=f"^a:{line}: "):
        parse_json_records(text, "a")


def test_text_like_json():
    for lines in (['{"a": 1,}'], ["{'a'"], ['[{"a": 1}'], ["{", ' "a": 1'], ["[", "{"], ["[", ' {"a": 1}']):
        assert looks_like_json(lines)
    for lines in ([], ["{ O"], ["[", "Anna"], ["{", "Anna O"], ["Anna"], ["[1]"], ["{"]):
        assert not looks_like_json(lines)
