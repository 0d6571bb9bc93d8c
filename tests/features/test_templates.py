import pytest
import yaml

from structperc.errors import InputError
from structperc.features.templates import TemplatePart, parse_templates, shipped_sets, template_name
from tests.errors import error_message


def names(text):
    return [template_name(template) for template in parse_templates(yaml.safe_load(text))]


def test_templates_of_a_list():
    text = """
    - bias
    - {of: [w, pos], at: [-1, 0]}
    - {of: [pos], at: [[-1, 0], [0, 1]]}
    - w[-1]|pos[0]
    - {of: [d&a, "d&,"], at: [0]}
    """
    assert names(text) == [
        "bias",
        "w[-1]",
        "pos[-1]",
        "w[0]",
        "pos[0]",
        "pos[-1]|pos[0]",
        "pos[0]|pos[1]",
        "w[-1]|pos[0]",
        "d&a[0]",
        "d&,[0]",
    ]


def test_names_of_templates():
    templates = parse_templates(["bias", "w[-1] | pos[+2]"])
    assert templates == ((), (TemplatePart("w", -1), TemplatePart("pos", 2)))
    assert parse_templates([template_name(template) for template in templates]) == templates


def test_a_template_named_twice_counts_once():
    assert parse_templates(["w[0]", {"of": ["w"], "at": [0, 1]}]) == ((TemplatePart("w", 0),), (TemplatePart("w", 1),))


@pytest.mark.parametrize(
    "item",
    [
        "w[x]",
        "w[0]|",
        "w[0]|w[0]",
        "[0]",
        "kazama2008",
        "",
        "w[0",
        "w[-1000]",
        3,
        None,
        {"of": ["w"]},
        {"of": [], "at": [0]},
        {"of": "w", "at": [0]},
        {"of": ["w"], "at": 0},
        {"of": ["w"], "at": ["0"]},
        {"of": ["w"], "at": [[]]},
        {"of": ["w"], "at": [True]},
        {"of": ["a b"], "at": [0]},
        {"of": [None], "at": [0], "more": 1},
    ],
)
def test_bad_items_are_named(item):
    found = error_message(parse_templates, ["bias", item])
    assert repr(item) in found or "a b[0]" in found
    assert "kazama2007" in found


@pytest.mark.parametrize("items", ["bias", {"of": ["w"], "at": [0]}])
def test_templates_must_be_a_list(items):
    with pytest.raises(InputError, match="brackets"):
        parse_templates(items)


# Table 1 of Kazama & Torisawa 2007: the bias, 24 attributes at five places, pairs of three attributes at
# three places; gazetteers: four at five places and at three pairs. A window of five holds ten pairs.
SETS = {
    "kazama2007": 1 + 24 * 5 + 3 * 3,
    "kazama2007_gazetteers": 4 * 5 + 4 * 3,
    "suzuki2006_chunking": 1 + 2 * 5 + 2 * 10,
    "suzuki2006_ner": 1 + 12 * 5 + 12 * 10,
    "ratnaparkhi1996": 1 + 5 + 4 + 4 + 3,
    "shen2007": 1 + 5 + 4 + 4 + 3 + 2 + 5 + 5,
    "entities": 1 + 22 * 5 + 3 * 3 + 3 + 2 + 2 * 4,
    "entities_documents": 8 + 2,
    "entities_gazetteers": 4 * 5 + 4 * 3 + 4,
    "first_labels": 7,
    "clusters": 4 * 5 + 2 * 4,
    "clusters_documents": 6,
    "vector_clusters": 4 * 5 + 2 * 4,
    "vector_clusters_documents": 6,
    "neighbouring_labels": 6 + 5 + 3,
    "chunks": 1 + 2 * 5 + 2 * 10 + 8 * 3 + 8 + 1 + 6,
    "parts_of_speech": 29 + 5 + (4 * 3 - 2) + 3 * 4 + 2,  # shen2007 has s3 and p3 of the word
}


def test_shipped_sets():
    assert {name: len(parse_templates([name])) for name in shipped_sets()} == SETS
