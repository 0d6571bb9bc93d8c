import pytest

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
