"""The kernels for CUDA, interpreted, against the reference: ragged batches, many types, invalid scores."""

import importlib.util

import pytest
import torch

from structperc.ops.registration import implementation
from tests.ops.lattices import operator

if importlib.util.find_spec("triton") is None:
    pytest.skip("Triton is not installed, so that its kernels cannot be interpreted", allow_module_level=True)

SEARCHES = ("viterbi", "kbest", "sample")


def make(C, D, T, shape, lengths, dtype):
    """Whole scores, so that there are ties; a tenth is impossible, and tokens in the padding are NaN."""
    torch.manual_seed(C)
    lengths = torch.tensor(lengths)
    token, segment, pair = (torch.randint(-3, 4, x).to(dtype) for x in ((len(lengths), T, C), (*shape, C, D), (C, C)))
    for x in (token, segment, pair):
        x[torch.rand(x.shape) < 0.1] = -torch.inf
    token[torch.arange(T) >= lengths.unsqueeze(1)] = torch.nan
    return token, segment.mT, pair.T, lengths  # not contiguous


def calls(lengths, T):
    noise = torch.rand(len(lengths), 3, T, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return ("viterbi",), ("kbest", 5), ("sample", noise), ("sums",), ("best",)


def results(device, tables, name, *more):
    found = (operator if device == "cuda" else implementation)(device, f"semi_markov_{name}")(*tables, *more)
    return found if isinstance(found, tuple) else (found,)


BATCHES = {
    "by sequence": lambda: make(3, 3, 4, (4, 1), [4, 3, 1, 0], torch.float64),
    "70 types": lambda: make(70, 2, 2, (1, 2), [2], torch.float32),  # slabs of a matrix of pairs
}


@pytest.mark.parametrize("batch", BATCHES)
def test_blocks_of_a_gpu_as_the_reference(batch, monkeypatch):
    from structperc.ops.cuda import segmentations, segments

    for module in (segments, segmentations):
        monkeypatch.setattr(module, "INTERPRETED", False)
    token, *others = tables = BATCHES[batch]()
    for name, *more in calls(others[2], token.shape[1]):
        found, expected = results("cuda", tables, name, *more), results("reference", tables, name, *more)
        for x, y in zip(found, expected, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-6, atol=1e-6 if x.is_floating_point() else 0)


def test_invalid_scores():
    token, segment, pair, lengths = clean = make(2, 2, 3, (4, 3), [0, 3, 2, 1], torch.float32)
    token, segment = token.clone(), segment.clone()
    token[1, 2, 0], segment[2, 0, 1, 1] = torch.nan, torch.inf
    segment[3, 0, 1] = torch.nan  # does not fit
    wrong, tables = torch.tensor([False, True, True, False]), (token, segment, pair, lengths)
    fits = torch.arange(3).view(1, 3, 1) + torch.tensor([1, 2]) <= lengths.view(4, 1, 1)
    inside = fits.unsqueeze(3).expand(-1, -1, -1, 2)
    for name, *more in calls(lengths, 3):
        found, expected = results("cuda", tables, name, *more), results("reference", clean, name, *more)
        for n, (x, y) in enumerate(zip(found, expected, strict=True)):
            torch.testing.assert_close(x[~wrong], y[~wrong])
            if name in SEARCHES:
                assert x[wrong].isnan().all() if x.is_floating_point() else not x[wrong].any()
            elif x.dim() == 4:
                assert x[wrong].isnan().equal(inside[wrong])
            else:
                assert x[wrong].isnan().equal(fits[wrong, :, :1].expand(-1, -1, 2) if n == 2 else y[wrong] == y[wrong])
    pair = pair.clone()
    pair[1, 0] = torch.inf
    assert results("cuda", (*clean[:2], pair, lengths), "viterbi")[0].isnan().equal(wrong)
    token, segment, pair, lengths = make(70, 1, 2, (1, 2), [2, 1], torch.float32)
    pair = pair.clone()
    pair[69, 0] = torch.inf  # not in the first slab
    assert results("cuda", (token, segment, pair, lengths), "viterbi")[0].isnan().tolist() == [True, False]


@pytest.mark.parametrize(("B", "T"), [(0, 3), (2, 0)])
def test_batches_without_a_token(B, T):
    tables = torch.zeros(B, T, 2), torch.zeros(1, 1, 2, 2), torch.zeros(2, 2), torch.zeros(B, dtype=torch.int64)
    for name, *more in calls(tables[3], T):
        for x, y in zip(results("cuda", tables, name, *more), results("reference", tables, name, *more), strict=True):
            assert x.dtype == y.dtype
            assert x.equal(y)
