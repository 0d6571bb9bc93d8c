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
    numbers = [int(place.rpartition(":")[2]) for place, _ in found]
    assert all(array.splitlines()[number - 1].lstrip(" [").startswith("{") for number in numbers)
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('{"text": "Anna left",}', "comma before }"),
        ('{"tokens": ["Anna",]}', "comma before } or ]"),
        ('{"text": "Anna"},', "comma after the object"),
        ("{'text': 'Anna'}", "Python dictionary"),
        ("{'text': None, \"x\": 1}", "Python dictionary"),
        ('{"text": NaN}', "NaN is no JSON"),
        ('{"a": [-Infinity]}', "-Infinity is no JSON"),
        ("{", "an object begins here"),
        ('{"text": "Anna",', "an object begins here"),
        ("[", "an array begins here"),
        ('[{"a": 1},', "an array begins here"),
        ('[{"a": 1}]', "an array"),
        ('{"a": "x\ty"}', "control character"),
        ('{"a": 1} {"a": 2}', "one object on each line"),
        ("[" * 10_000, "deeply nested"),
        ("Anna", "this is no JSON"),
        ("1", "no object"),
    ],
)
def test_lines_that_are_wrong(line, named):
    with pytest.raises(InputError, match=r"^a:2: ") as error:
        parse_json_lines(["{}", line], "a")
    assert named in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('[\n{"a": 1},\n]', "a:2: there is a comma after the last element"),
        ('[\n{"a": 1}\n{"a": 2}]', "a:2: no comma or ]"),
        ('[{"a": 1},\n{"a": NaN}]', "a:2: NaN"),
        ('[{"a": 1},\n\n{"a" 1}]', "a:3: this element"),
        ('[["Anna", {"entities": []}]]', "a:1: this is JSON, but"),
        ('[{"a": 1}]\n[{"a": 1}]', "follows the end of the array"),
        ('[{"a": 1}', "a:1: no comma or ]"),
        ("[", "a:1: this element"),
    ],
)
def test_arrays_that_are_wrong(text, named):
    with pytest.raises(InputError) as error:
        parse_json_records(text, "a")
    assert named in str(error.value)


def test_what_begins_as_json_does():
    for lines in (['{"a": 1,}'], ["{'a'"], ['[{"a": 1}'], ["{", ' "a": 1'], ["[", "{"], ["[", ' {"a": 1}']):
        assert looks_like_json(lines)
    for lines in ([], ["{ O"], ["[", "Anna"], ["{", "Anna O"], ["Anna"], ["[1]"], ["{"]):
        assert not looks_like_json(lines)
