"""Rows and scores of context features, template by template."""

import itertools

import pytest
import torch

from structperc.errors import InputError
from structperc.guided import ContextFeatures
from structperc.guided.context_features import SETS, parse_context
from structperc.guided.training_arrays import UNKNOWN
from tests.errors import error_message

L = 4
ALL = list(itertools.product([UNKNOWN, *range(L)], repeat=4))  # windows


def features(templates, size=2**16):
    made = ContextFeatures(templates, size)
    made.allocate(L)
    return made


def rows(made, windows, word=7):
    """(n, F) in the order of `made.parsed`."""
    keys = made.keys(torch.tensor([5, word, 6]), torch.tensor([3]))[1].expand(len(windows), -1)
    return made.rows(torch.tensor(windows), keys)


def seen(window, template):
    """The labels that a template sees, None where it does not fire."""
    labels = [window[(-2, -1, 1, 2).index(offset)] for offset in template.labels]
    return None if UNKNOWN in labels else tuple(labels)


def test_sets_of_the_paper():
    """Table 2: what sets A, B and C add; D and E add nothing that looks at labels."""
    a, b, c, d, e = (set(map(str, parse_context([f"shen2007_{name}"]))) for name in "abcde")
    assert a == {"t[-1]", "t[-2] t[-1]"}
    assert b - a == {"t[1]", "t[-1] t[1]", "t[1] t[2]"}
    alone, words = {"t[-2]", "t[2]"}, {"t[-2]", "t[-1]", "t[1]", "t[2]", "t[-2] t[-1]", "t[-1] t[1]", "t[1] t[2]"}
    assert c - b == alone | {f"{template} w[0]" for template in words}
    assert a < b < c == d == e


def test_templates_are_read_in_any_order_and_once():
    written = ["w[+1] t[2] t[-1]", "t[-1]  t[2] w[1]", "shen2007_a", "t[-1]"]
    assert list(map(str, parse_context(written))) == ["t[-1] t[2] w[1]", "t[-1]", "t[-2] t[-1]"]


BAD = ["t[0]", "t[-3] t[-1]", "w[0]", "t[-1] pos[0]", "t[-1] t[-1]", "t[-1]|w[0]", "t-1", "shen2007_f", "", 3]


@pytest.mark.parametrize("item", [*BAD, {"of": ["t"]}])
def test_bad_templates_are_named(item):
    assert f"template {item!r}" in error_message(ContextFeatures, ["t[-1]", item])


def test_bad_options():
    with pytest.raises(InputError, match="'shen2007_a'"):
        ContextFeatures("shen2007_a")
    with pytest.raises(InputError, match=r"context.size: .* got 0"):
        ContextFeatures(["t[-1] w[0]"], size=0)


@pytest.mark.parametrize("items", SETS)
def test_templates_need_known_labels(items):
    made = features([items])
    for window, own in zip(ALL, rows(made, ALL).tolist(), strict=True):
        assert [row > 0 for row in own] == [seen(window, template) is not None for template in made.parsed]


def test_rows_of_combinations():
    """Every row of the table is used, each by one combination of one template; row 0 by none."""
    made = features(["t[2]", "t[-2] t[1]", "t[-1] t[1] t[2]", "t[-2] t[-1] t[1] t[2]"])
    meanings = {}
    for window, own in zip(ALL, rows(made, ALL).tolist(), strict=True):
        for template, row in zip(made.parsed, own, strict=True):
            if row:
                meanings.setdefault(row, set()).add((template, seen(window, template)))
    assert all(len(meaning) == 1 for meaning in meanings.values())
    assert sorted(meanings) == list(range(1, 1 + L + L**2 + L**3 + L**4)) == list(range(1, len(made.table)))


def test_words_in_combinations():
    """In a table with room for them combinations, templates and words do not meet."""
    made = features(["t[-1] w[0]", "t[1] w[0]", "t[-1] w[1]", "t[-2] t[-1] w[0]"], 2**22)
    known = [window for window in ALL if UNKNOWN not in window]
    found = [rows(made, known, word)[:, column] for word in (7, 8) for column in range(4)]
    distinct = [set(column.tolist()) for column in found]
    assert list(map(len, distinct)) == 2 * [L, L, L, L**2]
    shared = [set.intersection(*pair) for pair in itertools.combinations(distinct, 2)]
    same_word_after = [distinct[2] & distinct[6]]  # w[1] is not the word that changes
    assert [pair for pair in shared if pair] == same_word_after


def test_words_share_the_rows_of_a_small_table():
    made = features(["t[-1]", "t[-1] w[0]", "t[1] w[0]"], size=3)
    assert made.table.shape == (1 + L + 3, L)
    found = rows(made, [window for window in ALL if UNKNOWN not in window])
    assert set(found[:, 0].tolist()) == {1, 2, 3, 4}
    assert set(found[:, 1:].flatten().tolist()) <= {5, 6, 7}


def test_words_outside_of_the_sentence():
    """Templates see no words of other sentences, not even beyond an offset longer than the sentence."""
    made = ContextFeatures(["t[-1] w[2]", "t[-1] w[-1]"])
    alone = made.keys(torch.tensor([3]), torch.tensor([1]))
    among = made.keys(torch.tensor([8, 3, 0, 4]), torch.tensor([1, 1, 0, 2]))
    assert torch.equal(alone[0], among[1])
    assert not torch.equal(alone[0], made.keys(torch.tensor([3, 0, 4]), torch.tensor([3]))[0])
    assert made.keys(torch.zeros(0, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)).shape == (0, 2)
