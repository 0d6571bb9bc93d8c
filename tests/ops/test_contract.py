"""One contract for all implementations of all operators, against enumeration on hundreds of lattices."""

import importlib.util

import pytest
import torch

from structperc.errors import InputError
from tests.ops.lattices import KINDS, batches, make, operator
from tests.oracle import Enumeration

NEAR = {torch.float64: {"rtol": 1e-9, "atol": 1e-9}, torch.float32: {"rtol": 1e-5, "atol": 1e-4}}
COUNT = {"reference": 220, "cpu": 330, "cuda": 72}  # lattices for each operator and precision
OWN = {"reference": torch.float64, "cuda": torch.float32}  # of quick tests: gradients are checked in it, GPUs use it
MORE = {"reference": 5_000, "cpu": 5_000}  # when long tests are asked for
if torch.cuda.is_available():
    MORE["cuda"] = 250  # without a GPU, where kernels are interpreted, more would take minutes


class Device(str):
    """One of "reference", "cpu", "cuda", how many lattices it is tested on, and their precision."""

    count: int
    dtype: torch.dtype


def devices(counts: dict[str, int], precisions: tuple[torch.dtype, ...]) -> list[Device]:
    made = [Device(name) for name in counts for _ in precisions]
    for each, dtype in zip(made, precisions * len(counts), strict=True):
        each.count, each.dtype = counts[each], dtype
    return made


QUICK = [x for x in devices(COUNT, (torch.float64, torch.float32)) if x == "cpu" or x.dtype == OWN[x]]
LONG = [pytest.param(x, marks=pytest.mark.long) for x in devices(MORE, (torch.float64, torch.float32))]


@pytest.fixture(params=[*QUICK, *LONG], ids=lambda x: f"{x}-{x.dtype}-{x.count}")
def device(request: pytest.FixtureRequest) -> Device:
    if request.param == "cuda" and importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed, so that its kernels cannot be interpreted")
    return request.param


@pytest.fixture
def dtype(device: Device) -> torch.dtype:
    return device.dtype


def test_viterbi(device: Device, dtype: torch.dtype) -> None:
    search = operator(device, "viterbi")
    for tables in batches(device.count, dtype):
        every = Enumeration(*tables)
        expected, scores, valid = every.kbest(1)
        found, labels = search(*tables)
        torch.testing.assert_close(found.double(), scores[:, 0], **NEAR[dtype])
        assert (found == -torch.inf).equal(~valid[:, 0])
        _same_or_as_good(labels, expected[:, 0], scores[:, 0], every, dtype)


def test_kbest(device: Device, dtype: torch.dtype) -> None:
    search = operator(device, "kbest")
    for turn, tables in enumerate(batches(device.count, dtype, seed=1)):
        k = (1, 3, 5, 20, 100)[turn % 5]
        every = Enumeration(*tables)
        expected, scores, valid = every.kbest(k)
        labels, found, listed = search(*tables, k)
        assert listed.equal(valid)
        torch.testing.assert_close(found.double(), scores, **NEAR[dtype])
        for r in range(k):
            _same_or_as_good(labels[:, r], expected[:, r], scores[:, r], every, dtype)
        assert all(
            len({tuple(y) for y in ys[v].tolist()}) == int(v.sum()) for ys, v in zip(labels, listed, strict=True)
        )


@pytest.mark.parametrize(("L", "dtype"), [(16, torch.float32), (17, torch.float64), (45, torch.float32)])
def test_searches_among_many_labels(L: int, dtype: torch.dtype) -> None:
    for seed, kind in enumerate(KINDS):
        tables = make(kind, L, 2, dtype, seed)
        every = Enumeration(*tables)
        expected, scores, _ = every.kbest(3)
        found, labels = operator("cpu", "viterbi")(*tables)
        several, ranked, _ = operator("cpu", "kbest")(*tables, 3)
        for x, y, r in [(labels, found, 0), *((several[:, r], ranked[:, r], r) for r in range(3))]:
            torch.testing.assert_close(y.double(), scores[:, r], **NEAR[dtype])
            _same_or_as_good(x, expected[:, r], scores[:, r], every, dtype)
        for x, y in zip(operator("cpu", "best_before_and_after")(*tables), every.best(), strict=True):
            torch.testing.assert_close(x.double(), y, **NEAR[dtype])


def _same_or_as_good(
    labels: torch.Tensor, expected: torch.Tensor, scores: torch.Tensor, every: Enumeration, dtype
) -> None:
    """The same labels; where rounding makes others as good, labels of the same score."""
    index = (labels * every.L ** torch.arange(every.T - 1, -1, -1)).sum(1, keepdim=True)
    own = every.scores.gather(1, index).squeeze(1).where(scores > -torch.inf, -torch.inf)
    whole = every.scores.where(every.legal, 0).frac().eq(0).all(1)
    assert labels[whole].equal(expected[whole])  # of whole scores ties are exact
    torch.testing.assert_close(own, scores, **NEAR[dtype])


def test_best_before_and_after(device: Device, dtype: torch.dtype) -> None:
    find = operator(device, "best_before_and_after")
    for tables in batches(device.count, dtype, seed=2):
        for found, expected in zip(find(*tables), Enumeration(*tables).best(), strict=True):
            torch.testing.assert_close(found.double(), expected, **NEAR[dtype])


def test_forward_backward(device: Device, dtype: torch.dtype) -> None:
    expect = operator(device, "forward_backward")
    for tables in batches(device.count, dtype, seed=3):
        total, nodes, pairs = Enumeration(*tables).forward_backward()
        found = expect(*tables, True)
        if tables[1].shape[1] == 1:
            pairs = pairs.sum(1, keepdim=True)
        for x, y in zip(found, (total, nodes, pairs), strict=True):
            torch.testing.assert_close(x.double(), y, **NEAR[dtype])
        alone = expect(*tables, False)
        assert alone[0].equal(found[0])
        assert alone[1].equal(found[1])
        assert alone[2].numel() == 0


def test_path_score_and_counts(device: Device, dtype: torch.dtype) -> None:
    score, count = operator(device, "path_score"), operator(device, "path_counts")
    for unary, edge, lengths in batches(device.count, dtype, seed=4):
        B, T, L = unary.shape
        rows, labels = torch.randint(B, (30,)), torch.randint(L, (30, T))
        labels = labels.where(torch.arange(T) < lengths[rows].unsqueeze(1), -7)  # never read
        every = Enumeration(unary, edge, lengths)
        index = (labels.clamp(min=0) * L ** torch.arange(T - 1, -1, -1)).sum(1)
        expected = (every.own + every.steps).sum(2)[rows, index]
        torch.testing.assert_close(score(unary, edge, lengths, labels, rows).double(), expected, **NEAR[dtype])
        weights = torch.randn(30).to(dtype)
        own, steps = count(weights, lengths, labels, rows, list(unary.shape), list(edge.shape))
        finite = (x.masked_fill(~x.isfinite(), 0) for x in (unary, edge))
        linear = sum((x.double() * y.double()).sum() for x, y in zip(finite, (own, steps), strict=True))
        tables = [x.masked_fill(~x.isfinite(), 0) for x in (unary, edge)]
        direct = (score(*tables, lengths, labels, rows).double() * weights.double()).sum()
        torch.testing.assert_close(linear, direct, rtol=1e-4, atol=1e-3 if dtype == torch.float32 else 1e-9)
        labels[0, 0], rows[0] = L, 1  # the sequence that fills T
        if device == "cpu":
            with pytest.raises(InputError, match=f"^label {L} .*token 0 .*sequence 1 .*0..{L - 1};"):
                score(unary, edge, lengths, labels, rows)
        else:
            assert score(unary, edge, lengths, labels, rows).isnan().tolist() == [True] + [False] * 29


def test_sample(device: Device, dtype: torch.dtype) -> None:
    draw = operator(device, "sample")
    for unary, edge, lengths in batches(device.count // 2, dtype, seed=5):
        B, T, _ = unary.shape
        noise = torch.rand(B, 3, T, dtype=torch.float64)
        labels = draw(unary, edge, lengths, noise)
        every = Enumeration(unary, edge, lengths)
        p = (every.scores - every.scores.logsumexp(1, keepdim=True)).exp().where(every.legal, 0)
        assert (labels == 0).masked_fill(every.real.unsqueeze(1) & every.legal.any(1).view(-1, 1, 1), True).all()
        for s in range(3):
            _drawn_at(noise[:, s], labels[:, s], p, every)


def _drawn_at(noise: torch.Tensor, labels: torch.Tensor, p: torch.Tensor, every: Enumeration) -> None:
    """Each label is the one where the cumulative probability, given the labels before, passes the noise."""
    alike = torch.ones_like(p, dtype=torch.bool)
    for t in range(every.T):
        here = every.paths[:, t]
        mass = torch.stack([p.where(alike & (here == j), 0).sum(1) for j in range(every.L)], 1)
        share = mass.cumsum(1) / mass.sum(1, keepdim=True)
        chosen = labels[:, t : t + 1]
        high = share.gather(1, chosen).squeeze(1)
        low = high - (mass.gather(1, chosen) / mass.sum(1, keepdim=True)).squeeze(1)
        counts = every.real[:, t] & every.legal.any(1)
        assert (((low <= noise[:, t] + 1e-5) & (noise[:, t] <= high + 1e-5)) | ~counts).all()
        alike &= here == chosen


def test_local_log_partition(device: Device, dtype: torch.dtype) -> None:
    follow = operator(device, "local_log_partition")
    for unary, edge, lengths in batches(device.count, dtype, seed=6):
        B, T, L = unary.shape
        expected = torch.zeros(B, T, L, dtype=torch.float64)
        table = edge.double().expand(B, T, L, L)
        for t in range(T - 1):
            sums = (unary[:, t + 1].double().unsqueeze(1) + table[:, t + 1]).logsumexp(2)
            sums = sums.where(sums > -torch.inf, torch.inf)
            expected[:, t] = sums.where((t + 1 < lengths).unsqueeze(1), 0)
        torch.testing.assert_close(follow(unary, edge, lengths).double(), expected, **NEAR[dtype])


@pytest.mark.parametrize("name", ["best_before_and_after", "local_log_partition"])
def test_gradients_equal_the_reference(device: Device, dtype: torch.dtype, name: str) -> None:
    reference, pull = operator("reference", name), operator(device, f"{name}_backward")
    for unary, edge, lengths in batches(device.count // 5, dtype, seed=7):
        inputs = unary.detach().requires_grad_(), edge.detach().requires_grad_()
        results = reference(*inputs, lengths)
        results = results if isinstance(results, tuple) else (results,)
        grads = tuple(torch.randint(-3, 4, x.shape).to(dtype) for x in results)
        expected = [
            torch.zeros_like(x) if g is None else g
            for x, g in zip(
                inputs,
                torch.autograd.grad(results, inputs, grads, allow_unused=True)
                if any(r.requires_grad for r in results)
                else (None, None),
                strict=True,
            )
        ]
        for x, y in zip(pull(unary, edge, lengths, *grads), expected, strict=True):
            torch.testing.assert_close(x, y, **NEAR[dtype])
