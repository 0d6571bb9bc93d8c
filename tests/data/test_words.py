"""Numbers of words: equal exactly when the words are, and the same everywhere."""

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from structperc.data.words import word_hashes


@given(st.lists(st.text(max_size=3), max_size=20))
def test_equal_numbers_for_equal_words(words):
    numbers = word_hashes(words)
    assert len(numbers) == len(words)
    for a, x in zip(words, numbers, strict=True):
        for b, y in zip(words, numbers, strict=True):
            assert (a == b) == (x == y)


def test_positive_and_alone_or_together():
    numbers = word_hashes(["U.S.", "EU", "U.S."])
    assert (numbers > 0).all()
    assert [int(word_hashes([w])[0]) for w in ("U.S.", "EU", "U.S.")] == numbers.tolist()


def test_same_in_another_process():
    code = "from structperc.data.words import word_hashes; print(*word_hashes(['Rome', 'é']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(n) for n in word_hashes(["Rome", "é"])]
