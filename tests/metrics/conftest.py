import pytest
import torch


def pad_rows(labels, rows, fill=0, width=0):
    """Rows of label names -> ids (B, T) padded with `fill`, lengths (B,)."""
    T = max([width, *map(len, rows)])
    ids = torch.full((len(rows), T), fill)
    for b, row in enumerate(rows):
        ids[b, : len(row)] = torch.from_numpy(labels.encode(row))
    return ids, torch.tensor([len(row) for row in rows])


@pytest.fixture(scope="session")
def padded():
    return pad_rows
