"""Schemes found from labels alone, against all labellings of three tokens."""

import random
from itertools import product

import pytest

from structperc.data.scheme_detection import common_scheme, fit_scheme, legal_schemes, to_scheme
from structperc.data.tag_schemes import PREFIX_SCHEMES as SEGMENTS
from structperc.data.tag_schemes import convert, spans
from structperc.errors import InputError
from tests.errors import error_message
from tests.oracle import label_sequences


def test_schemes_of_all_label_sequences():
    names = ["O", *(f"{letter}-{kind}" for letter in "BIELSUMW" for kind in "XY")]
    seen = dict.fromkeys(SEGMENTS, 0)
    for length in (1, 2, 3):
        for labels in label_sequences(length, names):
            fitting = legal_schemes([labels])
            if set(labels) == {"O"}:
                assert fitting == list(SEGMENTS)
            elif len(fitting) > 1:
                assert set(fitting) <= {"IOBES", "BMES", "BMEWO"}
                assert all(convert(labels, fitting[0], other) == list(labels) for other in fitting)
            for scheme in fitting:
                assert convert(labels, scheme, scheme) == list(labels)
                seen[scheme] += 1
    assert len(set(seen.values())) == 1  # as many labellings as there are ways to place segments
    assert legal_schemes([["NN", "VB"]]) == []


def test_common_scheme():
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
    with pytest.raises(InputError, match=r"^b: .*IOB1"):
        common_scheme({"a": one, "b": iob1})


def test_conversion_of_gold(caplog):
    gold = [["B-X", "I-X", "B-X", "O", "B-Y"], ["O"]]
    for source, target in product(SEGMENTS, SEGMENTS):
        given = [convert(labels, "IOB2", source) for labels in gold]
        wanted = [convert(labels, "IOB2", target) for labels in gold]
        assert to_scheme(given, "gold", target) == to_scheme(given, "gold", target, source) == wanted
    assert to_scheme([["NN"]], "gold", "none") == [["NN"]]
    with caplog.at_level("WARNING"):
        found = to_scheme([["O", "I-X", "B-X"]], "gold.txt", "IOB2", "IOB2")
    assert found == [["O", "B-X", "B-X"]]
    assert "gold.txt: 1 label" in caplog.text
    assert spans(found[0]) == spans(["O", "I-X", "B-X"])


TYPES = ["PER", "LOC", "creative-work"]
POS = ["DT", "NN", "VB", "-LRB-", "IN", "I", "S", "PRP$", "HYPH", ",", "O"]


def sentences_of_segments(size, chooser):
    """Sentences of IOB2, three in four tokens outside of segments."""
    found = []
    for _ in range(size):
        labels = []
        while len(labels) < 6:
            n = chooser.choice([1, 1, 2, 3])
            kind = chooser.choice(TYPES)
            labels += ["O"] * (3 * n) if chooser.random() < 0.7 else [f"B-{kind}", *[f"I-{kind}"] * (n - 1)]
        found.append(labels)
    return [["B-PER", "I-PER", "I-PER", "O", "B-LOC"], *found]


@pytest.mark.parametrize(
    "name", [*SEGMENTS, "IOB2 b-TYPE", "IOB2 b-TYPE O", "IOBES TYPE-B", "BMES B_TYPE", "IOB2 B-TYPE 0", "IOB1 TYPE_b -"]
)
def test_most_common_notation(name):
    for size, odd in product([2, 10, 200], [None, "label", "b=PER", "PERSON", "0?"]):
        check_notation(name, size, odd)


def check_notation(name, size, odd):
    sentences = [convert(labels, "IOB2", name) for labels in sentences_of_segments(size, random.Random(size))]
    wrong = 0
    if odd is not None:
        for labels in sentences[-max(1, size // 50) :]:
            labels[0], wrong = odd, wrong + 1
    found = fit_scheme(sentences)
    assert found.scheme == name
    assert found.unrecognized == ({odd: wrong} if wrong else {})
    assert found.inside - found.prefixed == wrong
    assert (found.remark() is None) == (odd is None)


@pytest.mark.parametrize(
    ("labels", "scheme", "remark"),
    [
        (["DT", "NN", "I", "-LRB-"], "none", None),
        (["B-PER"], "IOB2", None),
        (["O", "O"], "IOB2", None),
        (["PERSON", "PERSON", "O", "LOC", "LOC", "O"], "none", "no prefixes"),
        (["B+PER", "I-PER", "B-PER", "O"], "IOB2", "2 of 3 labels fit IOB2"),
        (["l-s---mn-", "v3spia---", "u--------", "n-s---mn-", "d--------"], "none", "prefixes"),
    ],
)
def test_labels_with_and_without_segments(labels, scheme, remark):
    found = fit_scheme([labels])
    assert found.scheme == scheme
    assert (remark or "") in (found.remark() or "")
    assert (found.remark() is None) == (remark is None)


def test_parts_of_speech_are_no_segments():
    chooser = random.Random(1)
    assert fit_scheme([chooser.choices(POS, k=20) for _ in range(50)]).scheme == "none"


@pytest.mark.parametrize(
    ("labels", "target", "source", "message"),
    [
        (["I-X", "O", "B-X"], "IOB2", None, "g: the gold labels are illegal in every scheme; set --labels"),
        (["S-X"], "IOB2", "IOB2", "1, token 1: label 'S-X'"),
        (["NN"], "none", "IOB2", "1, token 1: label 'NN'"),
        (["B-X"], "none", "IOB2", "'none'"),
    ],
)
def test_invalid_gold(labels, target, source, message):
    assert message in error_message(to_scheme, [labels], "g", target, source)
