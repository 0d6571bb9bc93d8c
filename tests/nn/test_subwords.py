"""Words as pieces: rows that hold every word, and mini-batches of them."""

import pytest
import torch

from structperc.errors import InputError
from structperc.nn import TokenCollator, first_subwords, tokenize_words


class Encoded(dict):
    """As a BatchEncoding: lists by name, and the word of each position."""

    def __init__(self, ids):
        super().__init__(input_ids=[[0 if i is None else i + 5 for i in row] for row in ids])
        self["attention_mask"] = [[1] * len(row) for row in ids]
        self.ids = ids

    def word_ids(self, row):
        return self.ids[row]


class Tokenizer:
    """Cuts words into pieces of two characters; blanks have none."""

    is_fast, model_max_length = True, 8

    def __call__(self, sentences, is_split_into_words, truncation, **_):
        assert is_split_into_words
        assert not truncation
        return Encoded(
            [[None, *(i for i, w in enumerate(s) for _ in range(0, len(w.strip()), 2)), None] for s in sentences]
        )


SENTENCES = [["Anna", "met", "Bo"], ["Hi"]]


def test_labels_at_first_pieces():
    first, second = tokenize_words(Tokenizer(), SENTENCES, [[1, 0, 3], [0]])
    assert first["words"] == [False, True, False, True, False, True, False]
    assert first["labels"] == [-100, 1, -100, 0, -100, 3, -100]
    assert second == {"input_ids": [0, 5, 0], "attention_mask": [1] * 3, "words": [False, True, False]} | {
        "labels": [-100, 0, -100]
    }
    assert "labels" not in tokenize_words(Tokenizer(), SENTENCES)[0]
    assert tokenize_words(Tokenizer(), []) == []


@pytest.mark.parametrize(
    ("sentences", "labels", "complaint"),
    [
        ([["a"], ["ab"] * 7], None, "1: 7 words"),
        ([["a", " "]], None, "0: only 1 of 2"),
        (["Anna met Bo"], None, "got text, expected a list of words"),
        ([["a"]], [], "1 sentences, but labels of 0"),
    ],
)
def test_lost_words(sentences, labels, complaint):
    with pytest.raises(InputError, match=complaint):
        tokenize_words(Tokenizer(), sentences, labels)


def test_tokenizer_without_word_ids():
    slow = Tokenizer()
    slow.is_fast = False
    with pytest.raises(InputError, match="fast"):
        tokenize_words(slow, SENTENCES)


def test_first_pieces_are_the_tokens():
    ids = [[None, 0, 0, 1, None], [None, 0, 1, 2, 2]]
    expected = [[False, True, False, True, False], [False, True, True, True, False]]
    assert first_subwords(ids).tolist() == first_subwords(ids, counts=[2, 3]).tolist() == expected
    assert first_subwords([[3, 3, 4]]).tolist() == [[True, False, True]]  # a window further on


@pytest.mark.parametrize(
    ("ids", "counts", "complaint"),
    [
        ([[0], [0, 1]], None, r"rows have \[1, 2\] positions"),
        ([[0, 2]], None, "0: word 1"),
        ([[0]], [1, 1], "numbers of words of 2 rows"),
    ],
)
def test_missing_words_are_found(ids, counts, complaint):
    with pytest.raises(InputError, match=complaint):
        first_subwords(ids, counts)


def test_mini_batches_are_padded():
    rows = tokenize_words(Tokenizer(), SENTENCES, [[1, 0, 3], [0]])
    batch = TokenCollator(pad_token_id=9)(rows)
    assert batch["input_ids"][1].tolist() == [0, 5, 0, 9, 9, 9, 9]
    assert batch["attention_mask"].sum(1).tolist() == [7, 3]
    assert batch["words"].dtype == torch.bool
    assert batch["words"].sum(1).tolist() == [3, 1]
    assert batch["labels"][1].tolist() == [-100, 0, -100, -100, -100, -100, -100]
    left = TokenCollator(9, side="left", fillers={"weight": 0.5})(
        [{**row, "weight": [1.0] * len(row["words"])} for row in rows]
    )
    assert left["input_ids"][1].tolist() == [9, 9, 9, 9, 0, 5, 0]
    assert left["weight"][1].tolist() == [0.5] * 4 + [1.0] * 3
    given = [{name: torch.tensor(values) for name, values in row.items()} for row in rows]
    assert all(TokenCollator(9)(given)[name].equal(batch[name]) for name in batch)
    assert TokenCollator()([]) == {}


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([{"input_ids": [1], "speaker": [2]}], "no padding for speaker"),
        (
            [{"input_ids": [1], "labels": [2]}, {"input_ids": [1]}],
            "row 1 of the mini-batch: only some rows have labels",
        ),
        ([{"input_ids": [1, 2], "labels": [2]}], "row 0 of the mini-batch: .*input_ids 2, labels 1"),
    ],
)
def test_mismatched_rows(rows, complaint):
    with pytest.raises(InputError, match=complaint):
        TokenCollator()(rows)


def test_an_unknown_side_is_refused():
    with pytest.raises(InputError, match=r"side .*right .*left.*'top'"):
        TokenCollator(side="top")
