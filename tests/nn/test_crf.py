"""The drop-in for pytorch-crf: what its own tests check, by enumeration, and the same values as its module's."""

import itertools
import math

import pytest
import torch
from torchcrf import CRF as Theirs  # noqa: N811

from structperc.errors import InputError
from structperc.nn import CRF, ChainHead
from tests.oracle import label_sequences

B, T, L = 3, 4, 5
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0]], dtype=torch.uint8)


def both(batch_first=False):
    theirs, own = Theirs(L, batch_first), CRF(L, batch_first)
    torch.manual_seed(2)
    for p in theirs.parameters():
        torch.nn.init.normal_(p)
    own.load_state_dict(theirs.state_dict())
    emissions, tags, mask = torch.randn(T, B, L), torch.randint(L, (T, B)), MASK.T
    data = (emissions, tags, mask)
    return theirs, own, tuple(x.transpose(0, 1) for x in data) if batch_first else data


def score(crf, emissions, tags):
    """Of one row, term by term."""
    total = crf.start_transitions[tags[0]] + crf.end_transitions[tags[-1]]
    total = total + sum(crf.transitions[a, b] for a, b in itertools.pairwise(tags))
    return float((total + sum(emissions[t, y] for t, y in enumerate(tags))).detach())


def test_initial_weights():
    torch.manual_seed(4)
    own = CRF(L)
    torch.manual_seed(4)
    theirs = Theirs(L)
    for name, p in theirs.named_parameters():
        assert torch.equal(own.get_parameter(name), p)
    assert [name for name, _ in own.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    assert repr(own) == repr(theirs) == "CRF(num_tags=5)"
    assert (own.num_tags, own.batch_first, CRF(3, batch_first=True).batch_first) == (5, False, True)
    for number in (0, -1):
        with pytest.raises(ValueError, match=f"tags.* {number}"):
            CRF(number)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_log_likelihood_and_gradients_are_theirs(batch_first, masked):
    theirs, own, (emissions, tags, mask) = both(batch_first)
    for kind in (torch.uint8, torch.bool) if masked else (None,):
        given = mask.to(kind) if kind else None
        for reduction in ("none", "sum", "mean", "token_mean"):
            wanted, found = (crf(emissions, tags, given, reduction=reduction) for crf in (theirs, own))
            torch.testing.assert_close(found, wanted)
        grads = [torch.autograd.grad(crf(emissions, tags, given), list(crf.parameters())) for crf in (theirs, own)]
        torch.testing.assert_close(grads[1], grads[0])
        assert own.decode(emissions, given) == theirs.decode(emissions, given)


def test_log_likelihood_and_labels_by_enumeration():
    _, own, (emissions, tags, mask) = both()
    found, best = own(emissions, tags, mask, reduction="none"), own.decode(emissions, mask)
    for b in range(B):
        length = int(mask[:, b].sum())
        scored = {y: score(own, emissions[:, b], y) for y in label_sequences(length, L)}
        gold = scored[tuple(tags[:length, b].tolist())]
        assert found[b].item() == pytest.approx(gold - math.log(sum(map(math.exp, scored.values()))), abs=1e-4)
        assert best[b] == list(max(scored, key=scored.get))


def test_independence_of_the_batch():
    _, own, (emissions, tags, mask) = both()
    alone = [own(emissions[:, b : b + 1], tags[:, b : b + 1], mask[:, b : b + 1]) for b in range(B)]
    torch.testing.assert_close(own(emissions, tags, mask), torch.stack(alone).sum())
    assert own.decode(emissions, mask) == [own.decode(emissions[:, [b]], mask[:, [b]])[0] for b in range(B)]


def test_holes_in_a_mask_are_left_out():
    _, own, (emissions, tags, _) = both(batch_first=True)
    mask, kept = torch.tensor([[1, 0, 1, 1]]), [0, 2, 3]
    torch.testing.assert_close(own(emissions[:1], tags[:1], mask), own(emissions[:1, kept], tags[:1, kept]))
    assert own.decode(emissions[:1], mask) == own.decode(emissions[:1, kept])


def test_weights_of_a_head():
    _, own, (emissions, tags, mask) = both(batch_first=True)
    head = ChainHead([str(i) for i in range(L)], scheme="none")
    head.load_state_dict(own.state_dict(), strict=False)
    torch.testing.assert_close(head(emissions, tags, mask), -own(emissions, tags, mask, reduction="mean"))
    assert [[y for y in row if y >= 0] for row in head.decode(emissions, mask).tolist()] == own.decode(emissions, mask)


E, TAGS = torch.randn(1, 2, L), torch.zeros(1, 2, dtype=torch.int64)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda crf: crf(E[0], TAGS), "emissions "),
        (lambda crf: crf.decode(E[0]), "emissions "),
        (lambda crf: crf.decode(E[:, :, 1:]), "expected last dimension of emissions is 5, got 4"),
        (
            lambda crf: crf(E, TAGS.expand(2, 2)),
            r"the first two dimensions of emissions and tags must match, got \(1, 2\) and \(2, 2\)",
        ),
        (
            lambda crf: crf.decode(E, torch.ones(2, 2)),
            r"the first two dimensions of emissions and mask must match, got \(1, 2\) and \(2, 2\)",
        ),
        (lambda crf: crf.decode(E, torch.tensor([[0, 1]])), "mask of the first timestep must all be on"),
        (lambda crf: crf(E, TAGS, reduction="foo"), "invalid reduction: foo"),
    ],
)
def test_refusals_are_theirs(call, complaint):
    for crf in (CRF(L), Theirs(L)):
        with pytest.raises(ValueError, match=complaint):
            call(crf)
    with pytest.raises(InputError):
        call(CRF(L))
