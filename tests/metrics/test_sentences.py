import torch

from structperc.metrics.accuracy import right_sentences, sentence_boundaries


def test_without_numbers_a_sequence_is_a_sentence():
    boundaries = sentence_boundaries(torch.tensor([3, 1, 0]), 3)
    assert boundaries.real.tolist() == [[True, True, True], [True, False, False], [False] * 3]
    assert boundaries.first.tolist() == [[True, False, False], [True, False, False], [False] * 3]
    assert boundaries.last.tolist() == [[False, False, True], [True, False, False], [False] * 3]


def test_sentences_begin_where_the_number_changes():
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
