"""YAML, strictly."""

import pytest
import yaml

from structperc.data.yaml_file import parse_yaml, place, read_node, read_yaml
from tests.errors import error_message

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: 1\nb: [1.5, true, null, x]\n",
        "a: &a {x: 1}\nb: *a\nc: {<<: *a, x: 2, y: 3}\nd: {<<: *a, z: 1}\n",
        "base: &base {<<: &inner {k: 1}, k: 2}\nother: {<<: *base}\n",
        "{1: a, '1': b, 02: c}",
    ],
)
def test_valid_yaml(text):
    assert parse_yaml(text, "f") == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\nb: 2\na: 3\n", "f:3: duplicate key 'a', first in line 1"),
        ("a:\n  - {b: 1, b: 1}\n", "f:2: duplicate key 'b'"),
        ("yes: a\non: b\n", "f:2: duplicate key 'on', first in line 1"),
        ("a: [1\nb: 2\n", "f:2: expected ',' or ']'"),
        ("a: 1\n--- b\n", "f:2: but found another document"),
        ("a: *nothing\n", "f:1: found undefined alias 'nothing'"),
        ("a: !!int x\n", "f: invalid value"),
        ("a: !own x\n", "f:1: could not determine a constructor"),
        ('a: 1\nb: "x\\0y"\n', "f:2: invalid character NUL"),
        (BOMB, "f: aliases expand to more than 100,000 values"),
    ],
)
def test_invalid_yaml(text, complaint):
    assert error_message(parse_yaml, text, "f").startswith(complaint)


def test_places_of_keys(tmp_path):
    path = tmp_path / "f.yaml"
    path.write_text("a:\n  args:\n    b: {c: 1}\nx: [1]\nm: {<<: {n: 1}}\n")
    places = {key.value: place(key) for key, _ in read_node(path).value}
    assert places == {"a": f"{path}:1", "x": f"{path}:4", "m": f"{path}:5"}
    assert read_yaml(path)["x"] == [1]
