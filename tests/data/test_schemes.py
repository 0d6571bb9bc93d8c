"""Schemes found from labels alone, against all labellings of three tokens."""

from itertools import product

import pytest

from structperc.data.schemes import common_scheme, fitting_schemes, in_scheme
from structperc.data.segments import convert, spans
from structperc.data.tags import SCHEMES
from structperc.errors import InputError

SEGMENTS = [scheme for scheme in SCHEMES if scheme != "none"]


def test_labels_with_segments_fit_one_scheme_at_most():
    names = ["O", *(f"{letter}-{kind}" for letter in "BIELSU" for kind in "XY")]
    seen = dict.fromkeys(SEGMENTS, 0)
    for length in (1, 2, 3):
        for labels in product(names, repeat=length):
            fitting = fitting_schemes([labels])
            assert fitting == SEGMENTS if set(labels) == {"O"} else len(fitting) <= 1
            for scheme in fitting:
                assert convert(labels, scheme, scheme) == list(labels)
                seen[scheme] += 1
    assert len(set(seen.values())) == 1  # as many labellings as there are ways to place segments
    assert fitting_schemes([["NN", "VB"]]) == []


def test_the_scheme_that_several_share():
    one = [["B-X", "I-X", "O"]]
    iob1, iobes = ([convert(labels, "IOB2", scheme) for labels in one] for scheme in ("IOB1", "IOBES"))
    nothing, wild = [["O", "O", "O"]], [["I-X", "O", "B-X"]]
    for found, expected in (
        ([one, nothing], "IOB2"),
        ([one, wild], "IOB2"),
        ([wild, nothing], "IOB2"),
        ([iob1, iob1, nothing], "IOB1"),
        ([iobes], "IOBES"),
        ([nothing], "IOB2"),
        ([[["NN"]]], "IOB2"),
    ):
        assert common_scheme({str(i): labels for i, labels in enumerate(found)}) == expected
    with pytest.raises(InputError, match=r"^b: its labels are of scheme IOB1, others are not"):
        common_scheme({"a": one, "b": iob1})


def test_gold_is_brought_to_the_scheme_of_predictions(caplog):
    gold = [["B-X", "I-X", "B-X", "O", "B-Y"], ["O"]]
    for source, target in product(SEGMENTS, SEGMENTS):
        given = [convert(labels, "IOB2", source) for labels in gold]
        wanted = [convert(labels, "IOB2", target) for labels in gold]
        assert in_scheme(given, "gold", target) == in_scheme(given, "gold", target, source) == wanted
    assert in_scheme([["NN"]], "gold", "none") == [["NN"]]
    with caplog.at_level("WARNING"):
        found = in_scheme([["O", "I-X", "B-X"]], "gold.txt", "IOB2", "IOB2")
    assert found == [["O", "B-X", "B-X"]]
    assert "gold.txt: 1 labels illegal in IOB2 were repaired" in caplog.text
    assert spans(found[0]) == spans(["O", "I-X", "B-X"])


@pytest.mark.parametrize(
    ("labels", "target", "source", "message"),
    [
        (["I-X", "O", "B-X"], "IOB2", None, "g: its gold labels are illegal in every scheme; set --labels"),
        (["S-X"], "IOB2", "IOB2", "g: label 'S-X' is not of scheme IOB2"),
        (["NN"], "none", "IOB2", "g: label 'NN' is not of scheme IOB2"),
        (["B-X"], "none", "IOB2", "scheme 'none' has no segments"),
    ],
)
def test_gold_that_cannot_be_compared(labels, target, source, message):
    with pytest.raises(InputError) as error:
        in_scheme([labels], "g", target, source)
    assert str(error.value).startswith(message)
