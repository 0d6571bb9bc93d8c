"""A head on top of any scores: by enumeration of all labellings, whatever the mask looks like."""

import itertools
import math

import pytest
import torch

from structperc import LabelSet
from structperc.chain import KBest
from structperc.criteria import (
    CorpusCriterion,
    CRFLoss,
    HingeLoss,
    LocalAndNonlocal,
    MarginLoss,
    MCEFLoss,
    MCELoss,
    PerceptronLoss,
    TokenCrossEntropyLoss,
)
from structperc.errors import InputError, InvalidScoreError
from structperc.nn import ChainHead
from structperc.nonlocal_features import PhraseConsistency, WholeEntity
from tests.oracle import label_sequences

LABELS = LabelSet(("O", "B-X", "I-X"), "IOB2")
L, T = len(LABELS), 6
KEPT = torch.tensor(  # right padding, left padding, holes, a single token, none
    [[1, 1, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 1, 0], [0, 0, 1, 0, 0, 0], [0] * 6], dtype=torch.bool
)
GOLD = torch.tensor([[0, 1, 2, 0, 7, 7], [7, 7, 7, 1, 1, 2], [7, 0, 7, 1, 2, 7], [7, 7, 1, 7, 7, 7], [7] * 6])
LABELLED = GOLD.where(KEPT, -100)
CRITERIA = [
    CRFLoss(),
    TokenCrossEntropyLoss(),
    MarginLoss(C=2, unit="sentence"),
    HingeLoss(),
    MCEFLoss(),
    LocalAndNonlocal(C=2),
]


def some_head(criterion=None, **options):
    head, draw = ChainHead(LABELS, criterion, **options), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in head.parameters():
            p.copy_(torch.randn(p.shape, generator=draw))
    return head


def some_logits(seed=0):
    return torch.randn(len(KEPT), T, L, generator=torch.Generator().manual_seed(seed))


def ranked(head, logits, row):
    """(score, labels) of all legal labellings of the kept tokens of a row, best first."""
    tokens = logits[row][KEPT[row]].double()
    found = []
    for y in label_sequences(len(tokens), L):
        steps = list(itertools.pairwise(y))
        if (y and not LABELS.start[y[0]]) or not all(LABELS.transition[a, b] for a, b in steps):
            continue
        score = sum(float(tokens[t, label]) for t, label in enumerate(y))
        score += sum(float(head.transitions[a, b].double()) for a, b in steps)
        score += float(head.start_transitions[y[0]] + head.end_transitions[y[-1]]) if y else 0
        found.append((score, y))
    return sorted(found, reverse=True)


def log_z(scored):
    return math.log(sum(math.exp(score) for score, _ in scored))


def placed(row, y):
    labels = torch.full((T,), -100)
    labels[KEPT[row]] = torch.tensor(y, dtype=torch.int64)
    return labels.tolist()


@pytest.mark.parametrize("kind", [torch.bool, torch.float32])
def test_likelihood_by_enumeration(kind):
    head, logits = some_head(), some_logits()
    wanted = []
    for row in range(len(KEPT)):
        scored = ranked(head, logits, row)
        gold = tuple(GOLD[row][KEPT[row]].tolist())
        wanted.append(log_z(scored) - next(score for score, y in scored if y == gold))
    for gold, mask in ((LABELLED, None), (GOLD, (3 * KEPT).to(kind)), (LABELLED, torch.ones_like(KEPT).to(kind))):
        assert head(logits, gold, mask, reduction="none").tolist() == pytest.approx(wanted, abs=1e-5)
        assert head(logits, gold, mask, reduction="sum").item() == pytest.approx(sum(wanted), abs=1e-4)
        assert head(logits, gold, mask).item() == pytest.approx(sum(wanted) / 4, abs=1e-5)  # one row has no tokens
    assert head(logits[-1:], GOLD[-1:], KEPT[-1:].to(kind)).item() == 0


def test_labels_lists_and_probabilities_by_enumeration():
    head, logits = some_head(), some_logits()
    labels, lists = head.decode(logits, KEPT), head.kbest(logits, 4, KEPT)
    table, sure = head.marginals(logits, KEPT), head.confidence(logits, KEPT)
    assert torch.equal(sure.labels, labels)
    for row in range(len(KEPT)):
        scored = ranked(head, logits, row)
        z, best = log_z(scored), scored[0]
        assert labels[row].tolist() == placed(row, best[1])
        for k, (score, y) in enumerate(scored[:4]):
            assert lists.labels[row, k].tolist() == placed(row, y)
            assert lists.scores[row, k].item() == pytest.approx(score, abs=1e-4)
        assert lists.valid[row].tolist() == [k < len(scored) for k in range(4)]
        assert (lists.labels[row, len(scored) :] == -100).all()
        expected = torch.zeros(T, L)
        for score, y in scored:
            for t, label in zip(KEPT[row].nonzero().flatten().tolist(), y, strict=True):
                expected[t, label] += math.exp(score - z)
        torch.testing.assert_close(table[row], expected, rtol=1e-4, atol=1e-5)
        chosen = expected.gather(1, labels[row].clamp(min=0)[:, None]).squeeze(1).where(KEPT[row], 0)
        torch.testing.assert_close(sure.tokens[row], chosen, rtol=1e-4, atol=1e-5)
        assert sure.rows[row].item() == pytest.approx(math.exp(best[0] - z), abs=1e-5)


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda one: f"{type(one).__name__}-{one.unit}")
def test_padding_is_ignored(criterion):
    """Each criterion, with anything in places that are no tokens: losses and gradients of rows cut to their tokens."""
    head, logits = some_head(criterion).eval(), some_logits()
    logits[~KEPT] = math.nan
    logits.requires_grad_()
    losses = head(logits, LABELLED, reduction="none")
    losses.sum().backward()
    assert (logits.grad[~KEPT] == 0).all()
    assert losses[-1] == 0
    assert not isinstance(criterion, CorpusCriterion) or losses.isfinite().all()
    for row in range(len(KEPT) - 1) if not isinstance(criterion, CorpusCriterion) else ():
        tokens = logits[row][KEPT[row]][None].detach().requires_grad_()
        loss = head(tokens, GOLD[row][KEPT[row]][None], reduction="sum")
        torch.testing.assert_close(loss, losses[row])
        loss.backward()
        torch.testing.assert_close(tokens.grad[0], logits.grad[row][KEPT[row]])


def test_perceptron_gradient():
    head, logits = some_head(PerceptronLoss()), some_logits()
    losses = head(logits, LABELLED, reduction="none")
    for row in range(len(KEPT)):
        scored = ranked(head, logits, row)
        gold = tuple(GOLD[row][KEPT[row]].tolist())
        own = next(score for score, y in scored if y == gold)
        assert losses[row].item() == pytest.approx(scored[0][0] - own, abs=1e-4)


WORDS = [["a", "b", "c", "a"], ["a", "a", "c"], ["b", "a", "c"], ["a"], []]


def test_nonlocal_features_by_enumeration():
    head = some_head(LocalAndNonlocal(C=1), nonlocal_features=[PhraseConsistency()], decoder=KBest(200))
    plain, logits = some_head(), some_logits()
    assert PhraseConsistency().names(["X"]) == ["phrase(X,X)"]
    weight = float(head.nonlocal_features[0].weight)
    assert (head.search.k, plain.search.k, plain.decoder.k) == (20, 1, 100)
    chosen = head.decode(logits, KEPT, words=WORDS)
    for row in range(len(KEPT)):
        scored = ranked(plain, logits, row)
        totals = [(score + weight * pairs(y, WORDS[row]), y) for score, y in scored]
        assert chosen[row].tolist() == placed(row, max(totals)[1])
        (total,) = head.kbest(logits, 1, KEPT, words=WORDS).scores[row].tolist()
        assert total == pytest.approx(max(totals)[0], abs=1e-4)
    few = some_head(nonlocal_features=[PhraseConsistency()], decoder=KBest(1))
    assert few.kbest(logits, 3, KEPT, words=WORDS).valid[0].tolist() == [True] * 3  # more than its decoder lists
    head(logits, LABELLED, words=WORDS).backward()
    assert head.nonlocal_features[0].weight.grad is not None


def pairs(y, words):
    """Pairs of segments with the same words."""
    segments, opened = [], None
    for t, label in enumerate([*y, 0]):
        if opened is not None and label != 2:
            segments.append(tuple(words[opened:t]))
            opened = None
        opened = t if label == 1 else opened
    return sum(a == b for a, b in itertools.combinations(segments, 2))


def test_sentences_of_a_row():
    head, logits = some_head(), some_logits()[:1]
    sentences = torch.tensor([[3, 3, 3, 8, 8, 8]])
    best = head.decode(logits, sentences=sentences)[0].tolist()
    totals = []
    for y in label_sequences(T, L):
        steps = list(itertools.pairwise(y))
        if y[0] == 2 or y[3] == 2 or any(pair == (0, 2) for pair in steps):
            continue
        score = sum(float(logits[0, t, label]) for t, label in enumerate(y))
        score += sum(float(head.transitions[a, b]) for a, b in steps)
        score += sum(float(head.start_transitions[y[t]] + head.end_transitions[y[t + 2]]) for t in (0, 3))
        totals.append((score, y))
    assert best == list(max(totals)[1])


def test_half_precision_is_rounded_once():
    head, logits = some_head(), some_logits().bfloat16()
    exact = head(logits.float(), LABELLED)
    with torch.autocast("cpu", torch.bfloat16):
        loss = head(logits, LABELLED)
        assert torch.equal(head.decode(logits, KEPT), head.decode(logits.float(), KEPT))
    assert loss.dtype == torch.float32
    assert torch.equal(loss, exact)
    half = some_head().bfloat16()
    assert torch.equal(half(logits, LABELLED), half.float()(logits.float(), LABELLED))


def test_weights_are_saved_and_loaded(tmp_path):
    head = some_head()
    torch.save(head.state_dict(), tmp_path / "head.pt")
    other = ChainHead(dict(enumerate(LABELS.names)))
    other.load_state_dict(torch.load(tmp_path / "head.pt", weights_only=True))
    assert torch.equal(other.decode(some_logits(), KEPT), head.decode(some_logits(), KEPT))
    assert not any(p.requires_grad for p in ChainHead(LABELS, transitions=False).parameters())


def test_labels_are_names_in_order_or_by_number():
    names = ("O", "B-X", "I-X")
    for labels in (names, list(names), dict(enumerate(names)), {"2": "I-X", "0": "O", "1": "B-X"}, LABELS):
        assert ChainHead(labels).labels == LABELS


@pytest.mark.parametrize(
    ("labels", "complaint"),
    [
        (9, "labels: got 9"),
        (["O", 1], "label 1 is 1, expected a name"),
        ({"O": 0, "B-X": 1}, "'O' is not .*label2id"),
        ({0: "O", "0": "B-X"}, "number 0 is duplicated"),
    ],
)
def test_labels_that_are_not_names(labels, complaint):
    with pytest.raises(InputError, match=complaint):
        ChainHead(labels)


@pytest.mark.parametrize(
    ("labels", "scheme", "complaint"),
    [
        (("O", "B-Y", "I-Y"), "IOB2", "label 1 is B-X in the saved state, but B-Y"),
        (("O", "B-X"), "IOB2", "label 2 is I-X in the saved state, but missing"),
        (("O", "B-X", "I-X"), "none", "scheme of the saved labels is IOB2, that of this head none"),
    ],
)
def test_a_state_with_other_labels_is_refused(labels, scheme, complaint):
    model = torch.nn.ModuleDict({"head": ChainHead(labels, scheme=scheme)})
    for strict in (True, False):
        with pytest.raises(InputError, match=complaint):
            model.load_state_dict({f"head.{name}": part for name, part in some_head().state_dict().items()}, strict)


def test_states_with_names(tmp_path):
    import copy

    labels = ("O", "B-Ödland", "I-Ödland")
    head = ChainHead(labels)
    state = head.state_dict()
    assert all(isinstance(part, torch.Tensor) for part in state.values())
    torch.save(state, tmp_path / "head.pt")
    assert torch.load(tmp_path / "head.pt", weights_only=True).keys() == state.keys()
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file(state, tmp_path / "head.safetensors")
    for found in (state, safetensors.load_file(tmp_path / "head.safetensors"), copy.deepcopy(head).state_dict()):
        assert ChainHead(labels).load_state_dict(found).missing_keys == []
    without = {name: part for name, part in state.items() if name != "_extra_state"}
    assert ChainHead(labels).load_state_dict(without, strict=False).missing_keys == ["_extra_state"]
    with pytest.raises(InputError, match="names of the labels cannot be read"):
        ChainHead(labels).load_state_dict({**state, "_extra_state": torch.tensor([1], dtype=torch.uint8)})


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_invalid_logits(number):
    head, logits = some_head(), some_logits()
    logits[1, 4, 2] = number
    for search in (
        lambda: head.decode(logits, KEPT),
        lambda: head.kbest(logits, 2, KEPT),
        lambda: head.confidence(logits, KEPT),
    ):
        with pytest.raises(InvalidScoreError, match=r"(NaN|\+inf) .*row 1, position 4, label 2"):
            search()
    others = torch.arange(len(KEPT)) != 1
    losses, table = head(logits, LABELLED, reduction="none"), head.marginals(logits, KEPT)
    assert losses[1].isnan()
    assert losses[others].equal(head(some_logits(), LABELLED, reduction="none")[others])
    assert table[1][KEPT[1]].isnan().all()
    assert table[others].equal(head.marginals(some_logits(), KEPT)[others])
    assert not torch.isnan(table[1][~KEPT[1]]).any()


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda one: f"{type(one).__name__}-{one.unit}")
def test_row_without_legal_path(criterion):
    head, logits = some_head(criterion).eval(), some_logits()
    logits[0, 1] = -math.inf
    logits.requires_grad_()
    losses = head(logits, LABELLED, reduction="none")
    losses.sum().backward()
    assert losses[0] == 0
    assert not logits.grad[0].any()
    assert all(p.grad is None or p.grad.isfinite().all() for p in head.parameters())
    rest = head(some_logits()[1:], LABELLED[1:], reduction="none")
    torch.testing.assert_close(losses[1:], rest) if not isinstance(criterion, CorpusCriterion) else None
    logits = logits.detach()
    assert head.decode(logits, KEPT)[0].tolist() == [0, 0, 0, 0, -100, -100]
    lists = head.kbest(logits, 2, KEPT)
    assert not lists.valid[0].any()
    assert (lists.labels[0] == -100).all()
    assert (lists.scores[0] == -math.inf).all()
    if head.probabilistic:
        assert not head.marginals(logits, KEPT)[0].any()
        sure = head.confidence(logits, KEPT)
        assert sure.rows[0] == 0
        assert not sure.tokens[0].any()
        assert (sure.rows[1:] > 0).all()


def test_row_without_legal_path_with_nonlocal_features():
    head, logits = some_head(LocalAndNonlocal(C=1), nonlocal_features=[PhraseConsistency()]), some_logits()
    logits[0, 1] = -math.inf
    assert head.decode(logits, KEPT, words=WORDS)[0].tolist() == [0, 0, 0, 0, -100, -100]


class Predictor(torch.nn.Module):
    """Labels, and how sure they are."""

    def __init__(self) -> None:
        super().__init__()
        self.head = some_head()

    def forward(self, logits, mask):
        return self.head.decode(logits, mask), *self.head.confidence(logits, mask)[1:]


class Decoder(Predictor):
    def forward(self, logits, mask):
        return self.head.decode(logits, mask)


def exported(model=None):
    B, length = torch.export.Dim("B", min=1), torch.export.Dim("T", min=1)
    return torch.export.export(
        model or Predictor(), (some_logits(), KEPT), dynamic_shapes=({0: B, 1: length}, {0: B, 1: length})
    )


def same_for_masks_of_any_form(run):
    torch.manual_seed(0)
    for B, length in ((7, 11), (1, 1), (2, 30)):
        logits, mask = torch.randn(B, length, L), torch.rand(B, length) < 0.6
        mask[0] = False
        logits[~mask] = math.nan
        for found, expected in zip(run(logits, mask), Predictor()(logits, mask), strict=True):
            torch.testing.assert_close(found, expected)


@pytest.fixture(scope="module")
def program():
    """Exported once: labels, and how sure they are."""
    return exported()


def test_decode_is_exported_without_the_library(program):
    assert not [node for node in program.graph.nodes if "structperc" in str(node.target)]
    same_for_masks_of_any_form(program.module())
    broken = torch.full((1, 3, L), math.nan)
    labels, tokens, rows = program.module()(broken, torch.tensor([[True, True, False]]))
    assert labels.tolist() == [[0, 0, -100]]
    assert tokens[0, :2].isnan().all()
    assert rows.isnan().all()


def test_an_exported_head_sorts_nothing(program):
    """ONNX has no stable sort; what is left is what torch's exporter can write, see docs/how_to/export.md."""
    modules = program.graph_module.modules()
    used = {str(node.target) for module in modules for node in module.graph.nodes if node.op == "call_function"}
    assert "aten.scatter.src" in used
    by_sorting = ("sort", "topk", "kthvalue", "median", "quantile", "unique", "nonzero", "argwhere", "masked_select")
    assert not [name for name in used if any(part in name for part in by_sorting)]


def test_a_head_as_onnx_answers_alike(tmp_path):
    pytest.importorskip("onnxscript", reason="torch.onnx.export needs onnxscript")
    runtime = pytest.importorskip("onnxruntime", reason="ONNX files are run by onnxruntime")
    torch.onnx.export(exported(Decoder()), dynamo=True, input_names=["logits", "mask"]).save(tmp_path / "head.onnx")
    session = runtime.InferenceSession(tmp_path / "head.onnx")

    def run(logits, mask):
        return map(torch.from_numpy, session.run(None, {"logits": logits.numpy(), "mask": mask.numpy()}))

    for B, length in ((7, 11), (1, 1), (2, 30)):
        logits, mask = torch.randn(B, length, L), torch.rand(B, length) < 0.6
        assert next(run(logits, mask)).equal(Decoder()(logits, mask))


X = torch.zeros(2, 3, L)
GOOD = torch.zeros(2, 3, dtype=torch.int64)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (lambda head: head(X[0], GOOD), r"logits: the shape is \(3, 3\), expected \(B, T, 3\), a score for each label"),
        (lambda head: head(X.long(), GOOD), "logits: expected floating-point numbers, got torch.int64"),
        (lambda head: head(X, GOOD[:1]), r"gold: the shape is \(1, 3\), expected \(2, 3\), that of logits"),
        (lambda head: head(X, GOOD.float()), "gold: labels are integers"),
        (lambda head: head(X, GOOD + 3), r"gold: row 0, position 0: unknown label 3; labels are 0\.\.2, and -100"),
        (lambda head: head(X, torch.tensor([[0, 0, 0], [0, -100, 2]])), "gold: row 1, position 2: IOB2"),
        (lambda head: some_head(MCEFLoss())(X, X == 0), "gold: MCEFLoss needs complete labels"),
        (lambda head: some_head(PerceptronLoss()).marginals(X), "PerceptronLoss has scores, not probabilities"),
        (
            lambda head: some_head(nonlocal_features=[PhraseConsistency()]).marginals(X),
            "with non-local features has scores, not probabilities",
        ),
        (lambda head: some_head(MCELoss(), search=KBest(1)), "search.k is 1, but MCELoss"),
        (lambda head: some_head(LocalAndNonlocal(1, local_unit="sentence")), "local_unit sentence"),
        (lambda head: some_head(nonlocal_features=[WholeEntity()]), "WholeEntity reads candidate lists"),
        (lambda head: ChainHead(["O", "X-Y"]), "'X-Y'"),
    ],
)
def test_invalid_arguments(wrong, complaint):
    with pytest.raises(InputError, match=complaint):
        wrong(some_head())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (None, "words: PhraseConsistency"),
        ([["a"] * 3], "words: .* 2 rows"),
        ([["a"] * 3, ["a"] * 2], r"words: row 1 has 2 words, but its mask \(or gold\) marks 3 positions"),
    ],
)
def test_words_of_tokens(words, complaint):
    with pytest.raises(InputError, match=complaint):
        some_head(nonlocal_features=[PhraseConsistency()]).decode(X, words=words)


def test_allowed_labels_of_decode():
    """The best of the k best label sequences that the mask allows; positions without a token are not limited."""
    torch.manual_seed(4)
    head, logits = ChainHead(["O", "B-PER", "I-PER"]), torch.randn(6, 4, 3)
    mask = torch.tensor([True, False, True, True]).expand(6, 4)
    allowed = (torch.rand(6, 4, 3) < 0.5) | (torch.arange(3) < 2)  # O and B-PER everywhere
    allowed[:, 1] = False
    every = head.kbest(logits, 27, mask)
    own = every.labels.clamp(min=0)
    fits = (allowed[:, None].expand(-1, 27, -1, -1).gather(3, own[..., None])[..., 0] | ~mask[:, None]).all(2)
    expected = every.labels[torch.arange(6), (fits & every.valid).int().argmax(1)]
    assert head.decode(logits, mask, allowed=allowed).tolist() == expected.tolist()
    allowed[2, 3] = torch.tensor([False, False, True])
    allowed[2, 2] = torch.tensor([True, False, False])
    with pytest.raises(InputError, match="row 2, position 3"):
        head.decode(logits, mask, allowed=allowed)
    with pytest.raises(InputError, match="allowed"):
        head.decode(logits, mask, allowed=allowed[0])


@pytest.mark.parametrize("features", [[], [PhraseConsistency()]])
def test_forbidden_spans_of_decode(features):
    """The best of the k best label sequences that have none of the spans; positions are those of the row."""
    torch.manual_seed(5)
    head = ChainHead(["O", "B-PER", "I-PER"], MarginLoss(C=1), features)
    logits = torch.randn(3, 4, 3) + torch.tensor([-2.0, 1.0, 1.0])
    mask = torch.tensor([True, False, True, True]).expand(3, 4)
    words = [["a", "b", "a"]] * 3
    every = head.kbest(logits, 27, mask, words=words).labels
    forbidden = [[], None, []]
    for row in (0, 2):  # two segments of the best labels that are left, one after the other
        for _ in range(2):
            found = head.decode(logits, mask, words=words, forbidden=forbidden)[row].tolist()
            forbidden[row] += segments(found)[:1]
    expected = [
        next(path for path in paths if not set(segments(path)) & set(own or []))
        for paths, own in zip(every.tolist(), forbidden, strict=True)
    ]
    assert any(forbidden)
    assert head.decode(logits, mask, words=words, forbidden=forbidden).tolist() == expected
    allowed = torch.tensor([False, True, False]).expand(3, 4, 3)
    with pytest.raises(InputError, match="row 0, position 3"):
        head.decode(logits, mask, words=words, allowed=allowed, forbidden=[[("PER", 3, 4)], None, None])
    for wrong in ([[("PER", 0, 2)], [], []], [[("LOC", 0, 1)], [], []], [[]], [[("PER", 3, 5)], [], []]):
        with pytest.raises(InputError, match="forbidden"):
            head.decode(logits, mask, words=words, forbidden=wrong)


def segments(labels):
    """Segments of labels O, B-PER, I-PER by positions, -100 where there is no token."""
    found, tokens = [], [(place, y) for place, y in enumerate(labels) if y >= 0]
    for n, (place, y) in enumerate(tokens):
        if y == 1:
            end = next((m for m in range(n + 1, len(tokens)) if tokens[m][1] != 2), len(tokens))
            found.append(("PER", place, tokens[end - 1][0] + 1))
    return found


def test_entities_have_positions_in_the_row():
    head = ChainHead(["O", "B-PER", "I-PER"])
    logits = torch.tensor([[[0.0, 3.0, 0.0], [9.0, 0.0, 0.0], [0.0, 0.0, 3.0]]])
    (found,) = head.entities(logits, torch.tensor([[True, False, True]]), min_probability=0.01)
    assert [(one.start, one.end, one.best) for one in found.spans] == [(0, 1, False), (0, 3, True), (2, 3, False)]
    sure = head.segment_confidence(logits, torch.tensor([[1, 0, 2]]), torch.tensor([[True, False, True]]))
    assert sure[0].tolist() == pytest.approx(
        [found.spans[1].probability, math.nan, found.spans[1].probability], nan_ok=True
    )
