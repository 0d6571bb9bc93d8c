"""Scores of whole segments on top of any encoder: by enumeration of all segmentations, whatever the mask looks like."""

import math

import pytest
import torch

from structperc import LabelSet
from structperc.criteria import (
    CRFLoss,
    HingeLoss,
    LocalAndNonlocal,
    MarginLoss,
    MCELoss,
    MEMMLoss,
    NBestRiskLoss,
    PerceptronLoss,
    RiskLoss,
    SoftmaxMarginLoss,
)
from structperc.errors import InputError, InvalidScoreError
from structperc.nn import ChainHead, SegmentHead
from structperc.nonlocal_features import PhraseConsistency
from tests.ops.segmentations import expected, labels_of, ranked

LABELS = LabelSet(("B-X", "I-X", "O", "B-Y", "I-Y"), "IOB2")
NAMES = {0: "O", 1: "B-X", 2: "B-Y", 4: "I-X", 5: "I-Y"}  # of the labels of segmentations
H, D, C, T = 3, 2, 3, 5
KEPT = torch.tensor(  # right padding, left padding, holes, a single token, none
    [[1, 1, 1, 1, 0], [0, 0, 1, 1, 1], [1, 0, 1, 0, 1], [0, 0, 1, 0, 0], [0] * T], dtype=torch.bool
)
GOLD = torch.tensor([[2, 0, 1, 3, -100], [-100, -100, 3, 4, 2], [0, -100, 1, -100, 0], [9, 9, 3, 9, 9], [-100] * T])


def some_head(**options):
    torch.manual_seed(1)
    head = SegmentHead(LABELS, H, D, hidden=4, **options).double()
    with torch.no_grad():
        for p in head.parameters():
            p.copy_(torch.randn(p.shape))
    return head


def some_vectors():
    vectors = torch.randn(len(KEPT), T, H, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return vectors.masked_fill(~KEPT[:, :, None], math.nan)  # never read


@torch.no_grad()
def listed(head, vectors, row):
    """All segmentations of the tokens of a row with their scores, best first."""
    h = vectors[row][KEPT[row]]
    segment = torch.full((len(h), D, C), -math.inf, dtype=h.dtype)
    for t in range(len(h)):
        for d in range(1, min(D, len(h) - t) + 1):
            units = head.first.weight @ h[t] + head.first.bias + head.last.weight @ h[t + d - 1] + head.length[d - 1]
            segment[t, d - 1] = head.segment.weight @ units.clamp(min=0) + head.segment.bias
            segment[t, d - 1, 0] = segment[t, d - 1, 0] if d == 1 else -math.inf
    token = h @ head.token.weight.T + head.token.bias
    return ranked(token, segment, head.pair, len(h))


def scored(head, vectors, row):
    """Score, number of wrong labels, labels of all segmentations of the tokens of a row, best first."""
    gold, found = GOLD[row][KEPT[row]].tolist(), []
    for score, one in listed(head, vectors, row):
        labels = LABELS.encode(names(one)).tolist()
        found.append((score, sum(a != b for a, b in zip(labels, gold, strict=True)), labels))
    return found


def names(segments):
    return [NAMES[label] for label in labels_of(segments, C)]


def test_losses_and_labels():
    head, vectors = some_head(), some_vectors()
    best = head.decode(vectors, KEPT)
    for labels in (GOLD, torch.full_like(GOLD, 2)):  # 2: O everywhere, no segment in the batch
        losses = head(vectors, labels, KEPT, reduction="none")
        for row, kept in enumerate(KEPT):
            found = listed(head, vectors, row)
            gold = LABELS.decode(labels[row][kept])
            (own,) = (score for score, one in found if names(one) == gold)
            log_z = torch.tensor([score for score, _ in found]).logsumexp(0).item()
            assert losses[row].item() == pytest.approx(log_z - own, abs=1e-5)
            assert LABELS.decode(best[row][kept]) == names(found[0][1])
            assert (best[row][~kept] == -100).all()
        torch.testing.assert_close(head(vectors, labels, KEPT), losses.sum() / 4)


def test_probabilities_of_entities():
    head, vectors = some_head(), some_vectors()
    for row, found in enumerate(head.entities(vectors, KEPT, min_probability=0)):
        every, at = listed(head, vectors, row), KEPT[row].nonzero().flatten().tolist()
        table = expected(every, torch.Size([len(at), D, C]))[1]
        wanted = {
            (LABELS.type_names[c - 1], at[t], at[t + d] + 1): table[t, d, c].item()
            for t, d, c in table.nonzero().tolist() if c
        }  # fmt: skip
        assert {(one.type, one.start, one.end): one.probability for one in found.spans} == pytest.approx(wanted)
        best = [(LABELS.type_names[c - 1], at[t], at[t + d - 1] + 1) for t, d, c in every[0][1] if c]
        assert [(one.type, one.start, one.end) for one in found.spans if one.best] == best
        total = torch.tensor([score for score, _ in every], dtype=torch.float64)
        assert found.probability == pytest.approx(total.softmax(0)[0].item())
        (only,) = head.entities(vectors[row : row + 1], KEPT[row : row + 1])
        assert only.spans == [one for one in found.spans if one.best]


def test_allowed_labels():
    """The best segmentation with allowed labels, and the loss of incomplete ones, by enumeration."""
    head, vectors = some_head(), some_vectors()
    allowed = torch.rand(*KEPT.shape, 5, generator=torch.Generator().manual_seed(3)) < 0.5
    allowed[..., 2] = True  # O
    allowed &= KEPT[:, :, None]
    for gold in (allowed, (allowed | (torch.arange(5) != 2)) & KEPT[:, :, None]):
        losses, best = head(vectors, gold, reduction="none"), head.decode(vectors, KEPT, allowed=gold)
        for row, kept in enumerate(KEPT):
            every = [(score, names(one)) for score, one in listed(head, vectors, row)]
            masks = gold[row][kept].tolist()
            legal = [(s, one) for s, one in every if all(m[LABELS.index(y)] for m, y in zip(masks, one, strict=True))]
            log_z, right = (torch.tensor([s for s, _ in some]).logsumexp(0).item() for some in (every, legal))
            assert losses[row].item() == pytest.approx(log_z - right, abs=1e-5)
            assert LABELS.decode(best[row][kept]) == legal[0][1]


def loss_of(criterion, found):
    """The loss of a criterion from all scores, given numbers of wrong labels."""
    scores, wrong = (torch.tensor([one[i] for one in found], dtype=torch.float64) for i in (0, 1))
    gold = scores[wrong == 0]
    if isinstance(criterion, PerceptronLoss):
        return scores.max() - gold
    if isinstance(criterion, HingeLoss):
        return (scores + 2 * wrong).max() - gold
    if isinstance(criterion, SoftmaxMarginLoss):
        return (scores + 2 * wrong).logsumexp(0) - gold
    if isinstance(criterion, RiskLoss):
        return (scores.softmax(0) * 2 * wrong).sum()
    rivals = scores[wrong > 0]
    return torch.sigmoid(rivals.max() - gold) if len(rivals) else 0.0


COMPARED = [HingeLoss(2.0), RiskLoss(2.0), MCELoss()]


@pytest.mark.parametrize("criterion", COMPARED, ids=lambda one: type(one).__name__)
def test_criteria_by_enumeration(criterion):
    head, vectors = some_head(criterion=criterion), some_vectors()
    losses = head(vectors, GOLD, KEPT, reduction="none")
    for row in range(len(KEPT)):
        assert losses[row].item() == pytest.approx(float(loss_of(criterion, scored(head, vectors, row))), abs=1e-6)
    given = [vectors[:2].nan_to_num().requires_grad_(), head.segment.weight, head.pair]

    def function(vectors, *weights):
        own = dict(zip(("segment.weight", "pair"), weights, strict=True))
        return torch.func.functional_call(head, own, (vectors, GOLD[:2], KEPT[:2]), {"reduction": "none"})

    assert torch.autograd.gradcheck(function, given, fast_mode=True)


INSIDE = torch.tensor([False, True, False, False, True])  # labels I
WORDS = [["a"] * n for n in KEPT.sum(1).tolist()]
EQUAL = [CRFLoss(), MarginLoss(C=2), NBestRiskLoss(), LocalAndNonlocal(C=1)]


def head_and_chain(longest, **options):
    """A head whose segments have no scores, and a chain with the same scores, each with its input."""
    torch.manual_seed(2)
    head, chain = SegmentHead(LABELS, H, longest, **options).eval(), ChainHead(LABELS, **options).eval()
    torch.nn.init.normal_(head.pair)
    vectors, kinds = some_vectors().float(), 1 + LABELS.types
    with torch.no_grad():
        logits = head.token(vectors)[..., kinds]
        chain.transitions.copy_(head.pair[kinds][:, kinds].masked_fill(INSIDE, 0))
    return (head, vectors), (chain, logits.masked_fill(INSIDE, -math.inf) if longest == 1 else logits)


@pytest.mark.parametrize("criterion", EQUAL, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("longest", [1, T])
def test_without_scores_of_segments_it_is_a_chain(criterion, longest):
    further = isinstance(criterion, LocalAndNonlocal)
    both = head_and_chain(longest, criterion=criterion, nonlocal_features=[PhraseConsistency()] if further else [])
    gold, words = GOLD, {"words": WORDS} if further else {}
    if longest == 1:
        gold = GOLD.where(~INSIDE[GOLD.clamp(0, 4)], GOLD - 1)
    ours, theirs = ((one(x, gold, KEPT, reduction="none", **words), *one.kbest(x, 9, KEPT, **words)) for one, x in both)
    torch.testing.assert_close(ours, theirs)


def test_probabilities_without_scores_of_segments():
    ours, theirs = (
        (*one.confidence(x, KEPT), one.marginals(x, KEPT), one.segment_confidence(x, one.decode(x, KEPT), KEPT))
        for one, x in head_and_chain(T)
    )
    torch.testing.assert_close(ours, theirs, equal_nan=True)


def test_nonlocal_features_by_enumeration():
    head, vectors = some_head(criterion=LocalAndNonlocal(C=1), nonlocal_features=[PhraseConsistency()]), some_vectors()
    head.nonlocal_features.float()
    weights = dict(zip(PhraseConsistency().names(["X", "Y"]), head.nonlocal_features[0].weight.tolist(), strict=True))
    found = head.kbest(vectors, 1, KEPT, words=WORDS)
    for row in range(len(KEPT)):
        totals = []
        for score, one in listed(head, vectors, row):
            kinds = [("OXY"[c], d) for _, d, c in one if c]
            pairs = [sorted((a, b)) for i, (a, size) in enumerate(kinds) for b, other in kinds[:i] if size == other]
            totals.append(score + sum(weights[f"phrase({a},{b})"] for a, b in pairs))
        assert found.scores[row].item() == pytest.approx(max(totals))
    head(vectors, GOLD, KEPT, words=WORDS).backward()
    assert head.nonlocal_features[0].weight.grad is not None


def test_forbidden_spans():
    head, vectors = some_head(), some_vectors()[2:3]  # tokens at 0, 2 and 4
    spans = [("X", 0, 3), ("Y", 4, 5), ("X", 0, 5)]  # the last one is longer than max_length
    found = listed(head, some_vectors(), 2)
    left = [one for _, one in found if not {(0, 2, 1), (2, 1, 2)} & set(one)]
    best = head.decode(vectors, KEPT[2:3], forbidden=[spans])[0]
    assert LABELS.decode(best[KEPT[2]]) == names(left[0])
    with pytest.raises(InputError, match="must begin and end with a token"):
        head.decode(vectors, KEPT[2:3], forbidden=[[("X", 0, 2)]])  # ends at a position without a token


@pytest.mark.parametrize("scheme", ["IOB2", "BILOU"])
def test_sentences_of_a_row_and_kbest(scheme):
    """Segments within sentences; all scores are those of segmentations of the row without a segment across them."""
    labels = LabelSet.from_corpus(["B-X", "B-Y"], scheme)
    torch.manual_seed(1)
    head, vectors = SegmentHead(labels, H, D, hidden=4).double(), some_vectors()[:1]
    torch.nn.init.normal_(head.segment.weight)
    torch.nn.init.normal_(head.pair)
    sentences = torch.tensor([[0, 0, 1, 1, 1]])  # 4 tokens
    every = [(score, one) for score, one in listed(head, vectors, 0) if (1, 2) not in {(t, d) for t, d, _ in one}]
    found = head.kbest(vectors, len(every) + 1, KEPT[:1], sentences=sentences)
    assert found.scores[0, :-1].tolist() == pytest.approx([score for score, _ in every])
    assert found.valid[0].tolist() == [True] * len(every) + [False]
    assert len({tuple(one) for one in found.labels[0].tolist()}) == len(every) + 1
    assert torch.equal(head.decode(vectors, KEPT[:1], sentences=sentences), found.labels[:, 0])
    gold = found.labels[:, 3]  # legal in the scheme, sentence by sentence
    log_z = found.scores[0, :-1].logsumexp(0)
    assert head(vectors, gold, KEPT[:1], sentences=sentences).item() == pytest.approx(
        (log_z - found.scores[0, 3]).item()
    )
    (entities,) = head.entities(vectors, KEPT[:1], sentences=sentences)
    assert [(one.start, one.end) for one in entities.spans] == [(t, t + d) for t, d, c in every[0][1] if c]


def test_gradients():
    head, vectors = some_head(), some_vectors()[:2].requires_grad_()
    parameters = dict(head.named_parameters())

    def losses(vectors, *values):
        own = dict(zip(parameters, values, strict=True))
        inputs = (vectors, GOLD[:2], KEPT[:2])
        return torch.func.functional_call(head, own, inputs, {"reduction": "none"})

    assert torch.autograd.gradcheck(losses, (vectors, *parameters.values()), fast_mode=True)


def test_only_the_whole_segment_tells_the_type():
    """Type X if first and last word are equal, Y if not: no sum of scores of single words and pairs of labels."""
    torch.manual_seed(0)
    words = torch.tensor([[a, 2, b, 3] for a in (0, 1) for b in (0, 1)])
    X, Y, outside = (0, 1, 1), (3, 4, 4), (2,)
    gold = torch.tensor([X + outside, Y + outside, Y + outside, X + outside])
    vectors = torch.nn.functional.one_hot(words, 4).float()
    head = SegmentHead(LABELS, 4, max_length=3, hidden=16)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.1)
    for _ in range(30):
        optimizer.zero_grad()
        head(vectors, gold).backward()
        optimizer.step()
    assert torch.equal(head.decode(vectors), gold)


def test_precision_and_state():
    head = some_head().float()
    vectors = some_vectors().bfloat16()
    assert "max_length=2" in repr(head)
    with torch.autocast("cpu", torch.bfloat16):
        assert head(vectors, GOLD, KEPT).dtype == torch.float32
    other = SegmentHead(LABELS, H, D, hidden=4)
    other.load_state_dict(head.state_dict())
    assert head.state_dict().keys() == {*dict(head.named_parameters()), "_extra_state"}  # older states can be loaded
    assert torch.equal(other(vectors, GOLD, KEPT), head(vectors, GOLD, KEPT))
    with pytest.raises(InputError, match="label 0 is B-X"):
        SegmentHead(["O", "B-X", "I-X", "B-Y", "I-Y"], H, D, hidden=4).load_state_dict(head.state_dict())


def test_decode_is_exported_for_any_sizes():
    class Decoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.head = some_head()

        def forward(self, vectors, mask):
            return self.head.decode(vectors, mask)

    sizes = {0: torch.export.Dim("B", min=1), 1: torch.export.Dim("T", min=1)}
    program = torch.export.export(Decoder(), (some_vectors(), KEPT), dynamic_shapes=(sizes, sizes)).module()
    for B, length in ((1, 1), (2, 9)):
        vectors, mask = torch.randn(B, length, H, dtype=torch.float64), torch.rand(B, length) < 0.7
        assert torch.equal(program(vectors, mask), Decoder()(vectors, mask))


def test_wrong_input():
    head, vectors, gold = some_head(), torch.zeros(1, T, H), torch.tensor([[0, 1, 2, 2, 2], [-100, 2, 0, 1, 1]])
    with pytest.raises(InputError, match=r"row 1, position 2: .* 3 tokens, but max_length .* 2"):
        head(vectors.expand(2, -1, -1), gold)
    with pytest.raises(InputError, match=r"row 0, position 1: .* no I-X"):
        head(vectors, torch.tensor([[-100, 1, 2, 2, 2]]))
    with pytest.raises(InputError, match=r"vectors: .*expected \(B, T, 3\)"):
        head.decode(torch.zeros(1, T, H + 1))
    with pytest.raises(InputError, match=r"gold: .* expected \(1, 5, 5\)"):
        head(vectors, torch.ones(1, T, 3, dtype=torch.bool))
    only = torch.nn.functional.one_hot(torch.tensor([[2] * T, [0, 1, 1, 2, 2]]), 5).bool()  # B-X I-X I-X O O
    two = vectors.expand(2, -1, -1)
    for call in (lambda: head(two, only), lambda: head.decode(two, allowed=only)):
        with pytest.raises(InputError, match=r"row 1: .* at most 2 tokens"):
            call()
    with pytest.raises(InvalidScoreError, match="vectors: NaN at row 0, position 4, dimension 0"):
        head.decode(some_vectors())
    with pytest.raises(InputError, match="MEMMLoss"):
        some_head(criterion=MEMMLoss())
    with pytest.raises(InputError, match="IOB1"):
        SegmentHead(["O", "I-X", "B-X"], H, scheme="IOB1")
    with pytest.raises(InputError, match="I-X"):
        SegmentHead(["O", "B-X"], H)
    for name in ("width", "max_length", "hidden"):
        with pytest.raises(InputError, match=f"{name} must be at least 1"):
            SegmentHead(**{"labels": LABELS, "width": H, name: 0})
