"""Numbers of words: equal exactly when the words are, and the same everywhere."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structperc.data.words import DIGIT, LOWER, UPPER, word_hashes, word_kind, word_numbers, word_shape


@given(st.lists(st.text(max_size=3), max_size=20))
def test_equal_numbers_for_equal_words(words):
    numbers = word_hashes(words)
    assert len(numbers) == len(words)
    for a, x in zip(words, numbers, strict=True):
        for b, y in zip(words, numbers, strict=True):
            assert (a == b) == (x == y)


def test_numbers_of_single_words_and_batches():
    numbers = word_hashes(["U.S.", "EU", "U.S."])
    assert (numbers > 0).all()
    assert [int(word_hashes([w])[0]) for w in ("U.S.", "EU", "U.S.")] == numbers.tolist()


def test_same_in_another_process():
    code = "from structperc.data.words import word_hashes; print(*word_hashes(['Rome', 'é']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(n) for n in word_hashes(["Rome", "é"])]


@pytest.mark.parametrize(
    ("word", "shape", "kind"),
    [
        ("Animal", "Aa", UPPER),
        ("G.M.", "A.A.", UPPER),
        ("1996-08-22", "0-0-0", DIGIT),
        ("iPod", "aAa", LOWER),
        ("École", "Éa", UPPER),
        ("été", "éaé", LOWER),
        ("'s", "'a", 0),
        ("", "", 0),
        ("'", "'", 0),
    ],
)
def test_shapes_and_kinds(word, shape, kind):
    assert word_shape(word) == shape
    assert word_kind(word) == kind


@given(st.lists(st.text(max_size=3), max_size=20))
def test_numbers_of_batches(words):
    exact, folded, shapes, kinds = word_numbers(words)
    assert exact.tolist() == word_hashes(words).tolist()
    assert folded.tolist() == word_hashes(word.casefold() for word in words).tolist()
    assert shapes.tolist() == word_hashes(map(word_shape, words)).tolist()
    assert kinds.tolist() == [word_kind(word) for word in words]
    assert {column.dtype.name for column in (exact, folded, shapes, kinds)} == {"int64"}
