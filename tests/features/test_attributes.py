import math
from functools import partial

import pytest

from structperc.builder import Builder
from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.features import DocumentAttribute, FeatureExtractor, Gazetteer
from structperc.features.attributes import SURFACE, surface_attribute

FLAGS = ["2d", "4d", "d&a", "d&-", "d&/", "d&,", "d&.", "n", "ic", "ac", "l", "cp"]


@pytest.mark.parametrize(
    ("token", "flags"),
    [
        ("90", {"2d"}),
        ("1990", {"4d"}),
        ("456789", {"n"}),
        ("7", {"n"}),
        ("A8956-67", {"d&a", "d&-", "ic", "ac"}),
        ("09-96", {"d&-"}),
        ("11/9/89", {"d&/"}),
        ("23,000.00", {"d&,", "d&."}),
        ("1.00", {"d&."}),
        ("BBN", {"ic", "ac"}),
        ("U.S.", {"ic", "ac"}),
        ("M.", {"ic", "ac", "cp"}),
        ("m.", {"l"}),
        ("Sally", {"ic"}),
        ("can", {"l"}),
        ("mid-1990s", {"l", "d&a", "d&-"}),
        ("iPod", set()),
        ("--", set()),
        ("É", {"ic", "ac"}),
    ],
)
def test_word_form_flags(token, flags):
    assert {name for name in FLAGS if SURFACE[name](token)} == flags
    assert {SURFACE[name](token) for name in FLAGS} <= {"", "1"}


@pytest.mark.parametrize(
    ("name", "token", "value"),
    [
        ("w", "Blackburn", "Blackburn"),
        ("wl", "Blackburn", "blackburn"),
        ("p1", "lamb", "l"),
        ("p4", "lamb", "lamb"),
        ("p5", "lamb", ""),
        ("s3", "lamb", "amb"),
        ("s4", "lamb", "lamb"),
        ("s5", "lamb", ""),
        ("s12", "constitution", "constitution"),
        ("pattern", "F-16's", "A-00-a"),
        ("pattern", "Ünal", "-aaa"),
        ("pattern", "22/8/1996", "00-0-0000"),
        ("shape", "Animal", "Aa"),
        ("shape", "G.M.", "A.A."),
        ("shape", "1996-08-22", "0-0-0"),
        ("has_number", "F-16", "1"),
        ("has_number", "F-", ""),
        ("has_uppercase", "iPod", "1"),
        ("has_uppercase", "pod", ""),
        ("has_hyphen", "F-16", "1"),
        ("has_hyphen", "F16", ""),
    ],
)
def test_values(name, token, value):
    attribute = surface_attribute(name)
    assert attribute is not None
    assert attribute(token) == value


@pytest.mark.parametrize("name", ["p", "p0", "s-1", "pos", "chunk", "P1", "p1 ", "c4"])
def test_other_names_are_no_surface_attributes(name):
    assert surface_attribute(name) is None


# -- a user's own ---------------------------------------------------------------------------------------------


def vowels(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter in "aeiou")


def length(word):
    return len(word)


CORPUS = Corpus.from_sentences([{"word": ["Anna", "Bo", "Tt"], "lemma": ["xo", "ui", "ye"]}])


def extractor(attribute, node=("own[0]",), **options):
    return FeatureExtractor(list(node), cutoff=1, attributes={"own": attribute}, progress=False, **options)


def test_own_attributes_of_columns():
    made = extractor(vowels, ["own[0]", "own(lemma)[-1]|own[0]"])
    made.fit(CORPUS)
    names = made.index.names("node")
    assert {"own[0]=aa", "own[0]=o", "own(lemma)[-1]=o|own[0]=o"} <= set(names)
    assert "own[0]=" not in names  # "Tt" has no value
    assert made.columns == ["word", "lemma"]
    state, arrays = made.state_dict_json(), made.state_arrays()
    assert state["attributes"] == {"own": f"{__name__}.vowels"}
    again = FeatureExtractor.from_state(state, arrays, Builder([__name__]))
    assert again.ids(CORPUS).nodes.ids.tolist() == made.ids(CORPUS).nodes.ids.tolist()
    with pytest.raises(InputError, match=f"features.attributes.own: .*--trust {__name__}"):
        FeatureExtractor.from_state(state, arrays, Builder())


def test_values_of_other_types():
    with pytest.raises(InputError, match=r"\.length \(.*test_attributes\.py:[0-9]+\).* 4 for 'Anna'"):
        extractor(length).fit(CORPUS)


REFUSED = {"lambda": lambda word: word, "partial": partial(vowels), "method": str.lower, "class": Gazetteer}


@pytest.mark.parametrize("attribute", REFUSED.values(), ids=REFUSED)
def test_functions_without_a_path_are_refused(attribute):
    with pytest.raises(InputError, match=r"attributes\.own: .* define it in a module"):
        extractor(attribute)


def test_names_of_own_attributes():
    with pytest.raises(InputError, match=r"attributes: .*'own'"):
        extractor(vowels, ["w[0]"])
    with pytest.raises(InputError, match=r"attributes: 'w' .*surface"):
        FeatureExtractor(["w[0]"], attributes={"w": vowels})
    with pytest.raises(InputError, match=r"attributes: 'own' .*gazetteers"):
        extractor(vowels, gazetteers={"own": Gazetteer(["Bo"])})


@pytest.mark.parametrize(
    "path",
    [
        "structperc.cli.main.main",
        "os.system",
        f"{__name__}.math",
        f"{__name__}.partial",
        f"{__name__}.Gazetteer",
        "eval",
    ],
)
def test_only_trusted_modules(path):
    """Not those of this library, and not what a trusted module has imported."""
    with pytest.raises(InputError, match=r"^here: "):
        Builder([__name__]).function(path, "here")
    assert math.pi


class Reads(DocumentAttribute):
    """Gives what it was made with."""

    def __init__(self, values=None):
        self.values = values

    def transform(self, corpus, lookup):
        return self.values


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["a"], "each of the 3 tokens; it returned 1"),
        (["a", None, "b"], "returned None for 'Bo'"),
        ("abc", "a list of strings"),
        (None, "a list of strings"),
    ],
)
def test_document_attributes(values, words):
    made = FeatureExtractor(["own[0]"], documents={"own": Reads(values)}, progress=False)
    with pytest.raises(InputError, match=r"Reads\.transform \(.*test_attributes\.py:[0-9]+\)") as error:
        made.fit(CORPUS)
    assert words in str(error.value)


def test_document_attributes_with_lists():
    made = FeatureExtractor(["own[0]"], cutoff=1, documents={"own": Reads(["a", "", "b"])}, progress=False)
    made.fit(CORPUS)
    assert made.index.names("node") == ["own[0]=a", "own[0]=b"]
