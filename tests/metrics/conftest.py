import pytest
import torch
from torch.nn.utils.rnn import pad_sequence


@pytest.fixture(scope="session")
def padded():
    """Rows of label names -> ids (B, T) padded with 0, lengths (B,)."""

    def padded(labels, rows):
        ids = [torch.from_numpy(labels.encode(row)) for row in rows]
        return pad_sequence(ids, batch_first=True), torch.tensor([len(row) for row in rows])

    return padded
