from itertools import combinations

import pytest

from structperc.errors import InputError
from structperc.metrics import compare, compare_all

GOLD = [["B-P", "I-P", "O"], ["O", "B-L"], ["B-P"]]
A = [["B-P", "I-P", "O"], ["O", "O"], ["I-P"]]
B = [["B-P", "O", "O"], ["O", "B-L"], ["B-L"]]
TEXTS = {"a": A, "b": B, "gold": GOLD}


@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_every_pair_is_what_comparing_two_gives(beta):
    result = compare_all(GOLD, list(TEXTS.values()), list(TEXTS), beta=beta)
    assert [(pair.a, pair.b) for pair in result.pairs()] == list(combinations(TEXTS, 2))
    for pair in result.pairs():
        two = compare(GOLD, TEXTS[pair.a], TEXTS[pair.b], beta=beta)
        assert (pair.tokens, pair.sentences) == (two.tokens, two.sentences)
        rows = {name: pytest.approx((x, y)) for name, x, y in two.rows()}
        places = [list(TEXTS).index(name) for name in (pair.a, pair.b)]
        found = {name: tuple(column[i] for i in places) for name, column in result.columns().items()}
        assert found[f"F{beta:g}"] == rows[f"F{beta:g}"]
        assert (found["precision"], found["recall"]) == (rows["precision"], rows["recall"])
        assert (found["tokens"], found["sentences"]) == (rows["token accuracy"], rows["sentence accuracy"])


def test_table():
    assert compare_all(GOLD, list(TEXTS.values()), list(TEXTS)).table().splitlines() == [
        "                F1   precision      recall      tokens   sentences",
        "a            80.00      100.00       66.67       66.67       33.33",
        "b            33.33       33.33       33.33       66.67       33.33",
        "gold        100.00      100.00      100.00      100.00      100.00",
        "",
        "McNemar, only right:",
        "A     B          tokens: A       B           p  sentences: A       B           p",
        "a     b                  1       1           1             1       1           1",
        "a     gold               0       2         0.5             0       2         0.5",
        "b     gold               0       2         0.5             0       2         0.5",
    ]


def test_labels_that_are_no_segments():
    result = compare_all([["N", "V"]], [[["N", "N"]], [["V", "V"]], [["V", "N"]]], ["a", "b", "c"], "none")
    assert result.columns() == {"tokens": [0.5, 0.5, 0.0], "sentences": [0.0, 0.0, 0.0]}


def test_mistakes_are_named():
    with pytest.raises(InputError, match="gold has 3 sentences, c has 2"):
        compare_all(GOLD, [A, B, A[:2]], ["a", "b", "c"])
    with pytest.raises(InputError, match="names has 1, predictions 2"):
        compare_all(GOLD, [A, B], ["a"])
    with pytest.raises(InputError, match="beta"):
        compare_all(GOLD, [A, B], ["a", "b"], beta=-1)
