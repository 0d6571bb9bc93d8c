"""Words as pieces: rows that hold every word, and mini-batches of them."""

from types import SimpleNamespace

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from structperc.errors import InputError
from structperc.nn import TokenCollator, tokenize_words
from structperc.nn.subwords import first_subwords
from tests.encoders.tiny_models import SPECIAL, word_pieces


@pytest.fixture(scope="module")
def tokenizer():
    """[CLS] an ##na met b ##o [SEP]; blanks have no pieces."""
    return PreTrainedTokenizerFast(tokenizer_object=word_pieces(), model_max_length=8, **SPECIAL)


SENTENCES = [["Anna", "met", "Bo"], ["Hi"]]


def test_labels_at_first_pieces(tokenizer):
    first, second = tokenize_words(tokenizer, SENTENCES, [[1, 0, 3], [0]])
    assert first["words"] == [False, True, False, True, True, False, False]
    assert first["labels"] == [-100, 1, -100, 0, 3, -100, -100]
    assert second["input_ids"] == tokenizer("Hi")["input_ids"]
    assert (second["words"], second["labels"]) == ([False, True, False, False], [-100, 0, -100, -100])
    assert "labels" not in tokenize_words(tokenizer, SENTENCES)[0]
    assert tokenize_words(tokenizer, []) == []


@pytest.mark.parametrize(
    ("sentences", "labels", "complaint"),
    [
        ([["a"], ["ab"] * 7], None, "1: 7 words"),
        ([["a", " "]], None, "0: only 1 of 2"),
        (["Anna met Bo"], None, "got text, expected a list of words"),
        ([["a"]], [], "1 sentences, but labels of 0"),
    ],
)
def test_lost_words(tokenizer, sentences, labels, complaint):
    with pytest.raises(InputError, match=complaint):
        tokenize_words(tokenizer, sentences, labels)


def test_tokenizer_without_word_ids():
    with pytest.raises(InputError, match="fast"):
        tokenize_words(SimpleNamespace(is_fast=False), SENTENCES)


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


def test_mini_batches_are_padded(tokenizer):
    rows = tokenize_words(tokenizer, SENTENCES, [[1, 0, 3], [0]])
    batch, ids = TokenCollator(pad_token_id=9)(rows), rows[1]["input_ids"]
    assert batch["input_ids"][1].tolist() == [*ids, 9, 9, 9]
    assert batch["attention_mask"].sum(1).tolist() == [7, 4]
    assert batch["words"].dtype == torch.bool
    assert batch["words"].sum(1).tolist() == [3, 1]
    assert batch["labels"][1].tolist() == [-100, 0, -100, -100, -100, -100, -100]
    left = TokenCollator(9, side="left", fillers={"weight": 0.5})(
        [{**row, "weight": [1.0] * len(row["words"])} for row in rows]
    )
    assert left["input_ids"][1].tolist() == [9, 9, 9, *ids]
    assert left["weight"][1].tolist() == [0.5] * 3 + [1.0] * 4
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
