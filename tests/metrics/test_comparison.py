"""Comparisons of two and of more systems."""

from itertools import combinations

import pytest

from structperc.errors import InputError
from structperc.metrics import compare, compare_all
from tests.errors import error_message

GOLD = [["B-P", "I-P", "O"], ["O", "B-L"], ["B-P"]]
A = [["B-P", "I-P", "O"], ["O", "O"], ["I-P"]]  # 2 of 2 segments found are right, 2 tokens wrong
B = [["B-P", "O", "O"], ["O", "B-L"], ["B-L"]]  # 1 of 3 found, 2 tokens wrong


def test_segments_by_hand():
    result = compare(GOLD, A, B)
    a, b = result.segments
    assert (a.total, b.total) == ((2, 2, 3), (1, 3, 3))
    assert (a.n_improper, b.n_improper) == (1, 0)
    assert result.tokens == (3, 1, 1, 1, 1.0)  # both, A alone, B alone, neither, p
    assert result.sentences == (0, 1, 1, 1, 1.0)
    assert result.rows() == [
        ("F1", 4 / 5, 2 / 6),
        ("precision", 2 / 2, 1 / 3),
        ("recall", 2 / 3, 1 / 3),
        ("F1 L", 0.0, 2 / 3),
        ("F1 P", 1.0, 0.0),
        ("token accuracy", 4 / 6, 4 / 6),
        ("sentence accuracy", 1 / 3, 1 / 3),
    ]


def test_labels_without_segments():
    result = compare([["N", "V"], ["N"]], [["N", "N"], ["N"]], [["V", "V"], ["V"]], "none")
    assert result.segments is None
    assert result.tokens == (0, 2, 1, 0, 1.0)
    assert result.sentences == (0, 1, 0, 1, 1.0)
    assert [name for name, *_ in result.rows()] == ["token accuracy", "sentence accuracy"]


def test_empty_sentences_are_passed_over():
    result = compare([[], *GOLD, []], [[], *A, []], [[], *B, []])
    assert result == compare(GOLD, A, B)


def test_table():
    table = compare(GOLD, A, B, names=("crf", "a-long-name")).table()
    lines = [" ".join(line.split()) for line in table.splitlines()]
    assert lines[:2] == ["crf a-long-name difference", "F1 80.00 33.33 -46.67"]
    assert {"F1 L 0.00 66.67 +66.67", "wrong boundary 0 1 +1", "missed 1 0 -1", "tokens 1 1 1"} <= set(lines)
    assert "F1 -46.67 (-100.00 .. +100.00)" in lines[-1]


def test_bootstrap_draws_documents():
    """Two documents: A is right in the first alone, B in the second alone."""
    gold, n = 12 * [["B-P"]], 6 * [["O"]]
    a, b = [*gold[:6], *n], [*n, *gold[6:]]
    found = compare(gold, a, b, documents=6 * [0] + 6 * [1]).bootstrap
    assert (found.difference, found.low, found.high) == (0, -1, 1)
    assert compare(gold, a, b).bootstrap.low > -1
    with pytest.raises(InputError, match="documents"):
        compare(gold, a, b, documents=[0])


def test_another_gamma():
    result = compare(GOLD, A, B, beta=2.0)
    assert result.rows()[:5] == [
        ("F2", pytest.approx(5 * 2 / (4 * 3 + 2)), pytest.approx(5 * 1 / (4 * 3 + 3))),
        ("precision", 2 / 2, 1 / 3),
        ("recall", 2 / 3, 1 / 3),
        ("F2 L", 0.0, pytest.approx(5 / (4 + 2))),
        ("F2 P", 1.0, 0.0),
    ]


@pytest.mark.parametrize(
    ("predicted", "message"),
    [
        (A[:2], "gold has 3 sentences, B.txt has 2"),
        ([A[0], ["O"], A[2]], "sentence 2: gold has 2 labels, B.txt has 1"),
        ([A[0], ["O", "S-P"], A[2]], "'S-P'"),
        ([A[0], ["O", "NN"], A[2]], "'NN'"),
    ],
)
def test_mistakes_are_named(predicted, message):
    assert message in error_message(compare, GOLD, A, predicted, names=("A.txt", "B.txt"))


def test_no_text():
    with pytest.raises(InputError, match="gold"):
        compare([[]], [[]], [[]])


TEXTS = {"a": A, "b": B, "gold": GOLD}


@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_pairs_equal_single_comparisons(beta):
    result = compare_all(GOLD, list(TEXTS.values()), list(TEXTS), beta=beta)
    assert [pair.names for pair in result.pairs()] == list(combinations(TEXTS, 2))
    for pair in result.pairs():
        two = compare(GOLD, *(TEXTS[name] for name in pair.names), names=pair.names, beta=beta)
        assert pair == two._replace(bootstrap=None)
        rows = {name: pytest.approx((x, y)) for name, x, y in two.rows()}
        places = [list(TEXTS).index(name) for name in pair.names]
        found = {name: tuple(column[i] for i in places) for name, column in result.columns().items()}
        assert found[f"F{beta:g}"] == rows[f"F{beta:g}"]
        assert (found["precision"], found["recall"]) == (rows["precision"], rows["recall"])
        assert (found["tokens"], found["sentences"]) == (rows["token accuracy"], rows["sentence accuracy"])


def test_table_of_several():
    table = compare_all(GOLD, list(TEXTS.values()), list(TEXTS)).table()
    lines = [" ".join(line.split()) for line in table.splitlines()]
    assert lines[:2] == ["F1 precision recall tokens sentences", "a 80.00 100.00 66.67 66.67 33.33"]
    assert lines[-2:] == ["a gold 0 2 0.5 0 2 0.5", "b gold 0 2 0.5 0 2 0.5"]


def test_several_without_segments():
    result = compare_all([["N", "V"]], [[["N", "N"]], [["V", "V"]], [["V", "N"]]], ["a", "b", "c"], "none")
    assert result.columns() == {"tokens": [0.5, 0.5, 0.0], "sentences": [0.0, 0.0, 0.0]}


def test_mistakes_of_several_are_named():
    with pytest.raises(InputError, match=r"gold .*3.*c .*2"):
        compare_all(GOLD, [A, B, A[:2]], ["a", "b", "c"])
    with pytest.raises(InputError, match=r"names .*1.*predictions .*2"):
        compare_all(GOLD, [A, B], ["a"])
