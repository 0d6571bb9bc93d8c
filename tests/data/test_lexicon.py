"""Words that are more often lower-cased than capitalised, against counting by hand."""

import os
import random
from collections import Counter

import pytest
import torch

from structperc.data.lexicon import LowerCaseLexicon
from structperc.data.words import word_hashes
from structperc.errors import InputError


def naive(words):
    lower = Counter(word.casefold() for word in words if word[0].islower())
    upper = Counter(word.casefold() for word in words if word[0].isupper())
    return {word for word in lower if lower[word] > upper[word]}


@pytest.mark.parametrize("seed", range(10))
def test_lower_case_words(seed):
    draw = random.Random(seed)
    words = draw.choices(["a", "A", "the", "The", "THE", "ß", "SS", "É", "é", "1", ".", "iPod", "IPOD"], k=seed * 5)
    lexicon = LowerCaseLexicon.from_words(iter(words))
    wanted = naive(words)
    assert {word for word in {*words, "a", "x", "1", "", "É"} if word in lexicon} == {
        word for word in {*words, "a", "x", "1", "", "É"} if word.casefold() in wanted
    }
    assert lexicon.words.tolist() == sorted(word_hashes(wanted).tolist())


@pytest.mark.parametrize("words", [[], ["the", "x"]])
def test_lookup_of_batches(words):
    lexicon = LowerCaseLexicon.from_words(words)
    folded = torch.from_numpy(word_hashes(["x", "y", "the", "the"])).view(2, 2)
    folded = torch.cat([folded, torch.zeros(2, 1, dtype=torch.int64)], 1)  # padding
    found = lexicon(folded)
    assert found.tolist() == ([[True, False, False], [True, True, False]] if words else [[False] * 3] * 2)
    assert lexicon(folded[:, :0]).shape == (2, 0)


def test_running_text(tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text("The day and  the\tnight\n\nthe Day day Night\n", encoding="utf-8")
    monkeypatch.setenv("TEXTS", str(tmp_path))
    lexicon = LowerCaseLexicon("${TEXTS}/text.txt")
    assert len(lexicon.words) == 0  # nothing is read before it is asked for
    lexicon.read(["Other"])
    assert [word in lexicon for word in ("day", "DAY", "the", "and", "night", "other")] == [True] * 4 + [False] * 2
    assert lexicon.text == "${TEXTS}/text.txt"


def test_one_column(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("x In\nY in\n\nIn O\n", encoding="utf-8")
    for column, wanted in ((0, {"x"}), (1, set()), (None, {"x"})):
        lexicon = LowerCaseLexicon(str(path), column)
        lexicon.read([])
        assert {word for word in ("x", "y", "in", "o") if word in lexicon} == wanted
    with pytest.raises(InputError, match=r"train.txt:1: .*2 columns"):
        LowerCaseLexicon(str(path), 2).read([])


def test_changed_file(tmp_path):
    path = tmp_path / "text.txt"
    lexicons = [LowerCaseLexicon(str(path)) for _ in range(2)]
    for n, text in enumerate(("a", "B b b")):
        path.write_text(text)
        os.utime(path, ns=(n, n))
        for lexicon in lexicons:
            lexicon.read([])
            assert ("a" in lexicon) == (text == "a")
    assert [[word in lexicon for word in "ab"] for lexicon in lexicons] == [[False, True]] * 2
    assert lexicons[0].words.data_ptr() != lexicons[1].words.data_ptr()  # else models could not be saved


def test_saved_words(tmp_path):
    lexicon = LowerCaseLexicon.from_words(["a", "b", "C"])
    for other in (LowerCaseLexicon(str(tmp_path / "gone.txt")), LowerCaseLexicon.from_words(["x", "y", "z"])):
        assert "a" not in other
        other.load_state_dict(lexicon.state_dict())
        assert [word in other for word in ("a", "b", "c", "x")] == [True, True, False, False]


@pytest.mark.parametrize(("text", "column"), [("text.txt", -1), (None, 0)])
def test_wrong_columns(text, column):
    with pytest.raises(InputError, match="lexicon: column"):
        LowerCaseLexicon(text, column)


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(InputError, match=r"gone.txt: "):
        LowerCaseLexicon(str(tmp_path / "gone.txt")).read(["a"])
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(InputError, match=r"empty.txt: "):
        LowerCaseLexicon(str(tmp_path / "empty.txt")).read(["a"])
