"""Corpus criteria against naive sums, and MCE-F against an enumeration of all paths."""

import math

import pytest
import torch

from structperc.chain import kbest
from structperc.chain.restrictions import constrain
from structperc.criteria import CorpusCriterion, Logistic, MCEFLoss, MCELoss, Sigmoid
from structperc.criteria.mce_f import SegmentCounts, TokenCounts
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import spans
from structperc.errors import InputError
from structperc.metrics.counts import segment_counts
from structperc.structures import Lattice
from tests import oracle
from tests.criteria.batches import random_gold, random_lattice, scored_of


class Quotient(CorpusCriterion):
    """a / b of two counts that the 'scored' are."""

    n_counts = 2

    def counts(self, scored):
        return scored

    weighted_counts = counts

    def objective(self, totals):
        return totals[0] / totals[1]

    def defined(self, totals):
        return bool(totals[1] > 0)


def batches(n=4):
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(3 + i, 2, generator=generator, dtype=torch.float64) for i in range(n)]


def test_gradients_at_the_totals():
    criterion = Quotient()
    counts = [batch.requires_grad_() for batch in batches()]
    criterion.totals = torch.cat(counts).detach().sum(0)
    sum(criterion(batch).sum() for batch in counts).backward()
    whole = torch.cat([batch.detach() for batch in counts]).requires_grad_()
    criterion.objective(whole.sum(0)).backward()
    torch.testing.assert_close(torch.cat([batch.grad for batch in counts]), whole.grad)
    assert not criterion.recent.any()  # nothing is remembered where totals are given


@pytest.mark.parametrize(("memory", "corpus_size"), [(0.0, 200), (0.5, None), (0.95, 200)])
def test_decayed_totals(memory, corpus_size):
    criterion = Quotient(memory)
    criterion.corpus_size = corpus_size
    seen = []
    for batch in batches():
        seen.append(batch)
        losses, acts = criterion.losses_and_updates(batch)
        decay = [memory ** (len(seen) - 1 - i) for i in range(len(seen))]
        a, b = (sum(w * float(x[:, s].sum()) for w, x in zip(decay, seen, strict=True)) for s in (0, 1))
        scale = 1 if corpus_size is None else corpus_size / sum(w * len(x) for w, x in zip(decay, seen, strict=True))
        a, b = a * scale, b * scale
        torch.testing.assert_close(losses, batch[:, 0] / b - batch[:, 1] * a / b**2)
        assert acts.all()


def test_evaluation_remembers_nothing():
    criterion = Quotient()
    first, second = batches(2)
    criterion(first)
    state = {name: value.clone() for name, value in criterion.state_dict().items()}
    losses = criterion.eval()(second)
    assert all(torch.equal(value, state[name]) for name, value in criterion.state_dict().items())
    assert torch.equal(losses, criterion.train()(second))


def test_totals_survive_a_checkpoint():
    criterion, again = Quotient(), Quotient()
    first, second = batches(2)
    criterion(first)
    criterion.totals = torch.ones(2)  # of the weights of one epoch: not saved
    state = criterion.state_dict()
    assert set(state) == {"recent", "recent_size"}
    again.load_state_dict(state)
    criterion.totals = None
    assert torch.equal(criterion(second), again(second))


def test_models_saved_without_totals():
    tagger = torch.nn.ModuleDict({"criterion": Quotient(), "scorer": torch.nn.Linear(2, 2)})
    tagger.load_state_dict({name: p.detach() for name, p in tagger.named_parameters()})
    with pytest.raises(RuntimeError, match="Missing"):
        tagger.load_state_dict({})


def test_update_with_undefined_objective():
    criterion = Quotient()
    empty = torch.tensor([[1.0, 0.0], [2.0, 0.0]], requires_grad=True)
    losses, acts = criterion.losses_and_updates(empty)
    losses.sum().backward()
    assert not losses.any()
    assert not acts.any()
    assert not empty.grad.any()
    losses, acts = criterion.losses_and_updates(torch.tensor([[1.0, 2.0], [0.0, 0.0]]))
    assert acts.tolist() == [True, False]
    assert losses[0] != 0


def test_bad_memory_is_named():
    for memory in (1.0, -0.1, float("nan")):
        with pytest.raises(InputError, match="Quotient: memory "):
            Quotient(memory)


SETS = {
    3: LabelSet(("O", "B-X", "I-X")),
    5: LabelSet(("O", "B-X", "I-X", "B-Y", "I-Y")),
}
IOBES = LabelSet(("O", "B-X", "I-X", "E-X", "S-X"), "IOBES")


def criterion_for(labels, **options):
    criterion = MCEFLoss(**options)
    criterion.allocate(labels)
    return criterion


def units_of(labelling, labels, units):
    """{(start, end, kind)} of a tuple of label ids."""
    names = labels.decode(labelling)
    if isinstance(units, TokenCounts):
        return {(t, t + 1, name) for t, name in enumerate(names) if name != "O"}
    return {(span.start, span.end, span.type) for span in spans(names)}


def brute_counts(lattice, gold, b, criterion):
    ranked = oracle.sorted_paths(lattice, b)
    own = tuple(gold[b, : int(lattice.lengths[b])].tolist())

    def strongest(scored):
        if criterion.psi is None:
            return oracle.best(scored)
        total = torch.tensor([criterion.psi * s for s, _ in scored], dtype=torch.float64)
        return float(total.logsumexp(0)) / criterion.psi if scored else -math.inf

    def smooth(unit):
        start, end, _ = unit
        right = strongest([(s, y) for s, y in ranked if y[start:end] == own[start:end]])
        wrong = strongest([(s, y) for s, y in ranked if y[start:end] != own[start:end]])
        return criterion.smoothing(torch.tensor(wrong - right, dtype=torch.float64)).item()

    others = [y for _, y in ranked if y != own]
    wanted = units_of(own, criterion.labels, criterion.units)
    found = set().union(*(units_of(y, criterion.labels, criterion.units) for y in others[: criterion.rivals]))
    losses = [smooth(unit) for unit in wanted]
    return [sum(1 - loss for loss in losses), sum(losses), sum(smooth(unit) for unit in found - wanted)]


def masked(lattice, labels):
    return constrain(lattice, labels.start, labels.transition, labels.end)


def legal(lattice, labels, seed):
    """A labelling of each sequence that the scheme allows."""
    noise = random_lattice(seed + 100, *lattice.unary.shape, lattice.lengths.tolist())
    return kbest(masked(noise, labels), 1).labels[:, 0]


@pytest.mark.parametrize("options", [{}, {"psi": 1.3, "rivals": 3}], ids=["strongest", "many"])
@pytest.mark.parametrize("units", [SegmentCounts(), TokenCounts()], ids=["segments", "tokens"])
@pytest.mark.parametrize(("L", "constrained"), [(3, False), (5, True)])
@pytest.mark.parametrize("seed", [0, 3])
def test_soft_counts_equal_enumeration(seed, L, constrained, units, options):
    lattice = random_lattice(seed, B=7, L=L, lengths=(4, 3, 1, 2, 4, 0, 1))
    gold = legal(lattice, SETS[L], seed) if constrained else random_gold(lattice, seed)
    if seed == 3:  # gold is best: y~ is the second
        gold = kbest(masked(lattice, SETS[L]) if constrained else lattice, 1).labels[:, 0]
    if constrained:
        lattice = masked(lattice, SETS[L])
    criterion = criterion_for(SETS[L], smoothing=Sigmoid(0.7, 0.2), units=units, **options)
    counts = criterion.counts(_scored(lattice, gold, 1 + criterion.rivals))
    expected = [brute_counts(lattice, gold, b, criterion) for b in range(7)]
    torch.testing.assert_close(counts, torch.tensor(expected, dtype=torch.float64))
    assert (counts.sum(0) > 0).all()
    assert not counts[5].any()


def _scored(lattice, gold, k=2):
    return scored_of(lattice, gold, MCELoss(), k)


@pytest.mark.parametrize("seed", range(2))
def test_steep_counts_equal_the_evaluation(seed):
    """Where labels mark the ends of segments, what follows a segment makes no difference."""
    lattice = masked(random_lattice(seed, B=6, T=5, L=5, lengths=(5, 4, 1, 2, 5, 3)), IOBES)
    gold = legal(lattice, IOBES, seed)
    gold[0] = kbest(lattice, 1).labels[0, 0]
    counts = criterion_for(IOBES, smoothing=Sigmoid(1e9)).counts(_scored(lattice, gold))
    correct, found, wanted, _ = segment_counts(kbest(lattice, 1).labels[:, 0], gold, lattice.lengths, IOBES)
    expected = torch.cat([correct, wanted - correct, found - correct], 1)
    torch.testing.assert_close(counts, expected.double())
    assert expected.any(0).all()


def test_labels_after_a_segment():
    """Gold B-X O, best labelling B-X I-X: Eq. 15 finds B-X there, and its tokens make no false segment."""
    unary = torch.tensor([[[0.0, 9.0, 0.0], [3.0, 0.0, 5.0]]])
    lattice = Lattice(unary, torch.zeros(1, 1, 3, 3), torch.tensor([2]))
    gold = torch.tensor([[1, 0]])
    counts = criterion_for(SETS[3], smoothing=Sigmoid(1e3)).counts(_scored(lattice, gold))
    assert counts.tolist() == [[1, 0, 1]]  # (0, 2) differs from gold at its second token
    counts = criterion_for(SETS[3], smoothing=Sigmoid(1e3)).counts(_scored(lattice, torch.tensor([[1, 2]])))
    assert counts.tolist() == [[1, 0, 0]]


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_objective_ranks_as_the_f_score(beta):
    found, missed, made_up = 6.0, 3.0, 2.0
    precision, recall = found / (found + made_up), found / (found + missed)
    f_score = (beta**2 + 1) * precision * recall / (beta**2 * precision + recall)
    objective = MCEFLoss(beta).objective(torch.tensor([found, missed, made_up], dtype=torch.float64))
    assert f_score == pytest.approx(1 / (1 + objective.item()))


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0])
def test_rates_of_the_paper(beta):
    """d F / d l is (beta^2 Z_D + (beta^2 + 1) Z_N) / Z_D^2 for a gold segment, 1 / Z_D for others."""
    totals = torch.tensor([6.0, 3.0, 2.0], dtype=torch.float64)
    found, missed, made_up = MCEFLoss(beta).rates(totals)
    Z_N, Z_D = beta**2 * totals[1] + totals[2], (beta**2 + 1) * totals[0]
    torch.testing.assert_close(missed - found, (beta**2 * Z_D + (beta**2 + 1) * Z_N) / Z_D**2)
    torch.testing.assert_close(made_up, 1 / Z_D)


class Model:
    """Batches of sequences of words; a table of words by labels and one of label pairs, in one vector."""

    def __init__(self, seed=0, words=5, L=3):
        generator = torch.Generator().manual_seed(seed)
        self.words, self.L = words, L
        self.weights = torch.randn(words * L + L * L, generator=generator, dtype=torch.float64)
        self.batches = []
        for lengths in ((4, 2, 0), (3,), (1, 5, 5, 2)):
            x = torch.randint(0, words, (len(lengths), max(lengths)), generator=generator)
            gold = torch.randint(0, L, x.shape, generator=generator)
            real = torch.arange(x.shape[1]) < torch.tensor(lengths)[:, None]
            self.batches.append((x, gold.where(real, 0), torch.tensor(lengths)))

    def scored(self, weights):
        table, edge = weights[: self.words * self.L].view(-1, self.L), weights[self.words * self.L :]
        for x, gold, lengths in self.batches:
            yield _scored(Lattice(table[x], edge.view(1, 1, self.L, self.L), lengths), gold)


@pytest.mark.parametrize(("units", "psi"), [(SegmentCounts(), None), (TokenCounts(), 1.3)], ids=["segments", "tokens"])
def test_sum_of_batch_gradients(units, psi):
    model = Model(1)
    criterion = criterion_for(SETS[3], beta=1.5, smoothing=Sigmoid(0.8, -0.1), units=units, psi=psi)

    @torch.no_grad()
    def objective(weights):
        return criterion.objective(sum(criterion.counts(s).sum(0) for s in model.scored(weights))).item()

    weights = model.weights.clone().requires_grad_()
    with torch.no_grad():
        criterion.totals = sum(criterion.counts(s).sum(0) for s in model.scored(weights))
    losses = 0.0
    for scored in model.scored(weights):
        loss = criterion(scored).sum()
        loss.backward()
        losses += loss.item()
    step = 1e-6 * torch.eye(len(weights), dtype=torch.float64)
    differences = [(objective(model.weights + e) - objective(model.weights - e)) / 2e-6 for e in step]
    torch.testing.assert_close(weights.grad, torch.tensor(differences, dtype=torch.float64), atol=1e-7, rtol=1e-6)
    assert losses == pytest.approx(0, abs=1e-9)  # the objective is a quotient of counts: twice the corpus, same value


def test_batches_without_segments():
    criterion = criterion_for(SETS[3])
    lattice = random_lattice(1, B=2, lengths=(4, 3))
    losses, acts = criterion.losses_and_updates(_scored(lattice, torch.zeros(2, 4, dtype=torch.int64)))
    assert not losses.any()
    assert not acts.any()
    losses, acts = criterion.losses_and_updates(_scored(lattice, torch.tensor([[1, 2, 0, 0], [0, 1, 0, 0]])))
    assert losses.isfinite().all()
    assert acts.all()


def test_a_hopeless_start_has_a_finite_objective():
    unary = torch.tensor([[[0.0, -400.0, 300.0]]], requires_grad=True)
    lattice = Lattice(unary, torch.zeros(1, 1, 3, 3), torch.tensor([1]))
    criterion = criterion_for(SETS[3])
    loss = criterion(_scored(lattice, torch.tensor([[1]]))).sum()
    assert loss.isfinite()
    assert torch.autograd.grad(loss, unary)[0].isfinite().all()
    assert criterion.objective(torch.tensor([0.0, 4.0, 2.0], dtype=torch.float64)).item() == pytest.approx(6 / 8e-6)


@pytest.mark.parametrize("psi", [None, 2.0])
def test_one_legal_path(psi):
    unary = torch.tensor([[[-torch.inf, 1.0, -torch.inf]]], requires_grad=True)
    lattice = Lattice(unary, torch.zeros(1, 1, 3, 3), torch.tensor([1]))
    counts = criterion_for(SETS[3], psi=psi).counts(_scored(lattice, torch.tensor([[1]])))
    assert counts.tolist() == [[1, 0, 0]]
    assert not torch.autograd.grad(counts.sum(), unary)[0].any()


def test_bad_options_are_named():
    with pytest.raises(InputError, match="MCEFLoss: beta "):
        MCEFLoss(0.0)
    with pytest.raises(InputError, match=r"MCEFLoss: psi .*0"):
        MCEFLoss(psi=0)
    with pytest.raises(InputError, match="MCEFLoss: rivals "):
        MCEFLoss(rivals=0)
    with pytest.raises(InputError, match=r"MCEFLoss: smoothing .*Sigmoid.*Logistic"):
        MCEFLoss(smoothing=Logistic())
    with pytest.raises(InputError, match=r"MCEFLoss .*MCELoss"):
        criterion_for(LabelSet(("DT", "NN"), "none"))
    with pytest.raises(InputError, match=r"MCEFLoss .*MCELoss"):
        criterion_for(LabelSet(("O",)))
    with pytest.raises(InputError, match="no segment"):
        MCEFLoss().objective(torch.tensor([0.0, 0.0, 3.0]))
    lattice = random_lattice(0)
    alone = _scored(lattice, random_gold(lattice), 1)
    with pytest.raises(ValueError, match=r"MCEFLoss .*K=1"):
        criterion_for(SETS[3]).counts(alone)
