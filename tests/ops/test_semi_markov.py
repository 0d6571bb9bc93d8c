"""One contract for the implementations of segment operators, against enumeration."""

import importlib.util
import math

import pytest
import torch

from structperc.errors import InputError, InvalidScoreError
from structperc.ops.reference.semi_markov import semi_markov_entropy, semi_markov_path_score
from structperc.ops.segment_operators import semi_markov_best, semi_markov_log_partition, semi_markov_sums
from tests.ops.lattices import operator
from tests.ops.segmentations import expected, labels_of, ranked

KINDS = ("normal", "by length", "integers", "equal", "impossible", "poisoned", "far")
SIZES = ((1, 1, 2), (2, 2, 4), (3, 2, 3), (2, 5, 3))  # C, D, T; the last with D > T
CASES = [("normal", *size) for size in SIZES[:3]] + [
    (kind, *SIZES[1 if kind == "poisoned" else 3]) for kind in KINDS[1:]
]
CASES += [("impossible", *SIZES[1])]
B = 4
INTERPRETED = [("by length", *SIZES[3]), ("impossible", *SIZES[1]), ("poisoned", *SIZES[1])]


@pytest.fixture(params=["reference", "cpu", "cuda"])
def device(request):
    if request.param == "cuda" and importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed, so that its kernels cannot be interpreted")
    return request.param


def make(kind, C, D, T, dtype=torch.float64):
    """Scores of a kind; lengths run from 0 to T."""
    torch.manual_seed(C * 100 + D * 10 + T + len(kind))
    shape = (1, 1) if kind == "by length" else (B, T)
    token, segment, pair = torch.randn(B, T, C) * 2, torch.randn(*shape, D, C), torch.randn(C, C)
    lengths = torch.tensor([0, T, max(T - 1, 0), 1])
    if kind in ("integers", "impossible"):
        token, segment, pair = token.round(), segment.round(), pair.round()
    if kind == "equal":
        token, segment, pair = (torch.zeros_like(x) for x in (token, segment, pair))
    if kind == "far":  # products of probabilities vanish
        token, segment, pair = (200 * x.round() for x in (token, segment, pair))
    if kind == "impossible":
        for x in (token, segment, pair):
            x[torch.rand(x.shape) < 0.3] = -torch.inf
    if kind == "poisoned":
        token[torch.arange(T) >= lengths.unsqueeze(1)] = torch.nan
        ends = torch.arange(T).unsqueeze(1) + torch.arange(1, D + 1)
        segment[ends > lengths.view(-1, 1, 1)] = torch.inf
    return token.to(dtype), segment.to(dtype), pair.to(dtype), lengths


def rows(tables):
    token, segment, pair, lengths = tables
    for b in range(B):
        yield b, ranked(token[b], segment[b if len(segment) > 1 else 0], pair, int(lengths[b]))


def test_searches(device):
    for case in INTERPRETED if device == "cuda" else CASES:
        tables = make(*case, torch.float32)
        C, k = case[1], 7
        scores, labels = operator(device, "semi_markov_viterbi")(*tables)
        several, found, valid = operator(device, "semi_markov_kbest")(*tables, k)
        best = operator(device, "semi_markov_best")(*tables)
        assert torch.equal(several[:, 0], labels)
        again = semi_markov_path_score(*tables, several)
        for b, listed in rows(tables):
            n = int(tables[3][b])
            assert [path[:n].tolist() for path in several[b][valid[b]]] == [labels_of(one, C) for _, one in listed[:k]]
            assert found[b][valid[b]].tolist() == pytest.approx([s for s, _ in listed[:k]], abs=1e-4)
            assert again[b][valid[b]].tolist() == pytest.approx(found[b][valid[b]].tolist(), abs=1e-4)
            assert scores[b].item() == pytest.approx(listed[0][0] if listed else -math.inf, abs=1e-4)
            with_it = torch.full_like(best[b], -torch.inf)
            for s, one in listed[::-1]:
                for t, d, c in one:
                    with_it[t, d - 1, c] = s
            torch.testing.assert_close(best[b], with_it, rtol=0, atol=1e-4)


def test_sums(device):
    dtype, near = (torch.float64, 1e-9) if device == "reference" else (torch.float32, 1e-4)
    for case in INTERPRETED if device == "cuda" else CASES:
        tables = make(*case, dtype)
        total, *found = operator(device, "semi_markov_sums")(*tables)
        entropies = semi_markov_entropy(*tables)
        again = operator(device, "semi_markov_log_partition")(*tables, True)
        wanted = [total, found[0].sum(1, keepdim=True) if case[0] == "by length" else found[0], *found[1:]]
        torch.testing.assert_close([*again], wanted)
        assert torch.equal(operator(device, "semi_markov_log_partition")(*tables, False)[0], total)
        for b, listed in rows(tables):
            log_z, *wanted, entropy = expected(listed, found[0][b].shape)
            assert total[b].item() == pytest.approx(log_z, abs=near)
            assert entropies[b].item() == pytest.approx(entropy, abs=near)
            torch.testing.assert_close([x[b].double() for x in found], wanted, rtol=0, atol=near)


def test_sums_of_many_tokens():
    """Their products are scaled."""
    torch.manual_seed(0)
    token, segment, pair = torch.randn(2, 90, 9), torch.randn(2, 90, 4, 9), torch.randn(9, 9)
    for given in (segment, segment[:1, :1]):
        tables = (token.double(), given.double(), pair.double(), torch.tensor([90, 70]), True)
        found, wanted = (operator(device, "semi_markov_log_partition")(*tables) for device in ("cpu", "reference"))
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


def test_long_sequences_keep_their_digits():
    """Scores of 1e4 a token: sums reach 1e7, where neighbouring numbers of float32 differ by 1."""
    torch.manual_seed(0)
    token = (torch.randn(1, 1000, 2) * 64).round() / 64  # without rounding in the sum below
    more = torch.randn(1, 1000, 3, 2), torch.randn(2, 2), torch.tensor([1000])
    labels, probabilities, totals = [], [], []
    for own in (token, token + 1e4):
        labels.append(operator("cpu", "semi_markov_viterbi")(own, *more)[1])
        probabilities.append(operator("cpu", "semi_markov_sums")(own, *more)[1])
        exact = (x.double() for x in (own, *more[:2]))
        totals.append(operator("cpu", "semi_markov_log_partition")(*exact, more[2], False)[0].item())
    assert torch.equal(*labels)
    torch.testing.assert_close(*probabilities, rtol=0, atol=1e-5)
    assert totals[1] - totals[0] == pytest.approx(1e7, rel=0, abs=1e-5)


def test_sums_that_vanish():
    """What is hopeless up to some token may be the best of all."""
    never, one = -torch.inf, torch.zeros(1, 1, 1, 2)
    token = torch.tensor([[[-300.0, 0]] * 4 + [[0, -800]]])
    same = torch.tensor([[0, never], [never, 0]])
    joined = torch.tensor([[0, never, never], [never, 0, -800], [never, never, 0]])  # 1 1 1 1 2
    kinds = torch.tensor([[[-300, 0, never]] * 4 + [[0, never, 0]]])
    for scores, given, pair, types in (
        (token, one, same, [1, 1, 1, 1, 1]),
        (kinds, one[..., :1].expand(1, 1, 1, 3), joined, [1, 1, 1, 1, 2]),
    ):
        tables = scores, given, pair, torch.tensor([5])
        total, _, tokens, _ = operator("cpu", "semi_markov_log_partition")(*tables, True)
        assert total.item() == -800
        torch.testing.assert_close(tokens[0], torch.eye(len(pair))[types])


def test_gradients():
    token, segment, pair, lengths = make("normal", 2, 2, 2)
    for shared in (segment, segment[:1, :1]):
        inputs = [x.clone().requires_grad_() for x in (token, shared, pair)]
        assert torch.autograd.gradcheck(lambda *x: semi_markov_sums(*x, lengths), inputs, fast_mode=True)
        for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
            assert check(lambda *x: semi_markov_log_partition(*x, lengths, True)[0], inputs, fast_mode=True)
    for function in (semi_markov_entropy, semi_markov_path_score):
        more = (torch.tensor([[[0, 2], [1, 0], [1, 1]]] * B),) if function is semi_markov_path_score else ()
        assert torch.autograd.gradcheck(lambda *x: function(*x, lengths, *more), inputs, fast_mode=True)  # noqa: B023
    best = torch.autograd.grad(semi_markov_best(*inputs, lengths)[1, 0, 1, 1], inputs)  # one segment of two tokens
    assert [x.nonzero().tolist() for x in best] == [[[1, 0, 1], [1, 1, 1]], [[0, 0, 1, 1]], []]
    assert torch.autograd.gradgradcheck(lambda *x: semi_markov_sums(*x, lengths)[0], inputs, fast_mode=True)


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_samples(device):
    tables = make("integers", 2, 2, 4)
    noise = torch.rand(B, 4000, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    drawn = operator(device, "semi_markov_sample")(*tables, noise)
    for b, listed in rows(tables):
        n, log_z = int(tables[3][b]), torch.tensor([s for s, _ in listed]).logsumexp(0).item()
        for s, one in listed[:3]:
            share = (drawn[b, :, :n] == torch.tensor(labels_of(one, 2))).all(1).double().mean().item()
            assert share == pytest.approx(math.exp(s - log_z), abs=0.03)


def test_probabilities_add_up_at_large_scores():
    token, segment, pair = torch.zeros(1, 3, 2), torch.full((1, 1, 1, 2), 1e30), torch.zeros(2, 2)
    _, segments, tokens, pairs = operator("reference", "semi_markov_sums")(token, segment, pair, torch.tensor([3]))
    assert segments.tolist() == [[[[0.5, 0.5]]] * 3]
    assert tokens.tolist() == [[[0.5, 0.5]] * 3]
    assert pairs.tolist() == [[[0.5, 0.5]] * 2]
    assert semi_markov_entropy(token, segment, pair, torch.tensor([3])).item() == pytest.approx(3 * math.log(2))


def test_probabilities_of_tokens_add_up_at_ties_of_large_scores():
    generator = torch.Generator().manual_seed(0)
    token, segment, pair = (
        torch.randint(-2, 3, shape, generator=generator) * 1e30 for shape in ((300, 4, 2), (300, 4, 2, 2), (2, 2))
    )
    _, _, tokens, pairs = operator("cpu", "semi_markov_log_partition")(
        token, segment, pair, torch.full((300,), 4), True
    )
    torch.testing.assert_close(tokens.sum(2), torch.ones(300, 4))
    assert pairs.sum((1, 2)).max() <= 3 + 1e-6


def test_invalid_scores():
    token, segment, pair, lengths = make("normal", 2, 2, 3, torch.float32)
    token[1, 0, 0] = torch.nan
    for name in ("viterbi", "kbest", "sample"):
        more = {"kbest": (2,), "sample": (torch.rand(B, 2, 3, dtype=torch.float64),)}.get(name, ())
        with pytest.raises(InvalidScoreError, match="sequence 1 of 4"):
            operator("cpu", f"semi_markov_{name}")(token, segment, pair, lengths, *more)
    for device in ("cpu", "reference"):
        total, segments, *_ = operator(device, "semi_markov_sums")(token, segment, pair, lengths)
        best = operator(device, "semi_markov_best")(token, segment, pair, lengths)
        fits = torch.arange(3).unsqueeze(1) + torch.tensor([1, 2]) <= lengths.view(B, 1, 1)
        fits[[0, 2, 3]] = False  # sequences without invalid scores
        assert torch.equal(segments.isnan(), fits.unsqueeze(3).expand_as(segments))
        assert torch.equal(best.isnan(), segments.isnan())
        assert total.isnan().tolist() == [False, True, False, False]
    with pytest.raises(InputError, match="sequence 3 of 4"):
        semi_markov_sums(token, segment, pair, torch.tensor([0, 1, 2, 4]))
