"""Accuracy of tokens and sentences, and boundaries of sentences."""

import pytest
import torch

from structperc.metrics import SentenceAccuracy, TokenAccuracy
from structperc.metrics.counts import right_sentences, sentence_boundaries, sentence_counts, token_counts


def test_without_numbers_a_sequence_is_a_sentence():
    boundaries = sentence_boundaries(torch.tensor([3, 1, 0]), 3)
    assert boundaries.real.tolist() == [[True, True, True], [True, False, False], [False] * 3]
    assert boundaries.first.tolist() == [[True, False, False], [True, False, False], [False] * 3]
    assert boundaries.last.tolist() == [[False, False, True], [True, False, False], [False] * 3]


def test_starts_of_sentences():
    numbers = torch.tensor([[0, 0, 1, 2, 2, 99], [7, 8, 99, 99, 99, 99]])
    boundaries = sentence_boundaries(torch.tensor([5, 2]), 6, numbers)
    assert boundaries.first.nonzero().tolist() == [[0, 0], [0, 2], [0, 3], [1, 0], [1, 1]]
    assert boundaries.last.nonzero().tolist() == [[0, 1], [0, 2], [0, 4], [1, 0], [1, 1]]


def test_right_sentences_are_in_row_major_order():
    numbers = torch.tensor([[0, 0, 1, 2, 2, 5], [3, 4, 5, 5, 5, 5]])
    right = torch.tensor([[1, 0, 1, 1, 1, 0], [1, 0, 0, 0, 0, 0]], dtype=torch.bool)
    boundaries = sentence_boundaries(torch.tensor([5, 2]), 6, numbers)
    assert right_sentences(right, boundaries).tolist() == [False, True, True, True, False]


def test_no_token_at_all():
    boundaries = sentence_boundaries(torch.tensor([0, 0]), 0)
    assert [part.shape for part in boundaries] == [(2, 0)] * 3
    assert right_sentences(torch.ones(2, 0, dtype=torch.bool), boundaries).shape == (0,)


GOLD = torch.tensor([[0, 1, 2, 0, 1], [2, 2, 1, 0, 0], [1, 0, 0, 0, 0]])
PREDICTED = torch.tensor([[0, 1, 1, 0, 1], [2, 2, 1, 7, 7], [1, 9, 9, 9, 9]])  # 9 of 9 tokens but one are right
LENGTHS = torch.tensor([5, 3, 1])
SENTENCES = torch.tensor([[0, 0, 1, 1, 2], [3, 3, 4, 4, 4], [5, 5, 5, 5, 5]])


def test_counts_by_hand():
    assert [int(n) for n in token_counts(PREDICTED, GOLD, LENGTHS)] == [8, 9]
    assert [int(n) for n in sentence_counts(PREDICTED, GOLD, LENGTHS)] == [2, 3]
    assert [int(n) for n in sentence_counts(PREDICTED, GOLD, LENGTHS, SENTENCES)] == [5, 6]
    assert [int(n) for n in sentence_counts(PREDICTED, GOLD, torch.tensor([5, 0, 1]))] == [1, 2]


def test_documents_count_as_their_sentences_do():
    rows = [(0, 0, 2), (0, 2, 4), (0, 4, 5), (1, 0, 2), (1, 2, 3), (2, 0, 1)]
    metric = SentenceAccuracy()
    for b, start, end in rows:
        metric.update(PREDICTED[b : b + 1, start:end], GOLD[b : b + 1, start:end], torch.tensor([end - start]))
    assert float(metric.compute()) == pytest.approx(5 / 6, abs=1e-15)


@pytest.mark.parametrize("metric", [TokenAccuracy(), SentenceAccuracy()], ids=lambda m: type(m).__name__)
def test_nothing_is_zero(metric):
    empty = torch.zeros(2, 0, dtype=torch.int64)
    metric.update(empty, empty, torch.tensor([0, 0]))
    assert float(metric.compute()) == 0.0


def test_batches_of_different_size():
    metric = TokenAccuracy()
    metric.update(GOLD[:1], GOLD[:1], torch.tensor([1]))
    metric.update(GOLD[:1] + 1, GOLD[:1], torch.tensor([4]))
    assert float(metric.compute()) == 0.2
