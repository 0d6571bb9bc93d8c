"""Algorithm 4.2 of Kazama & Torisawa (2007): against the steps as the paper lists them; its bounds on updates."""

import itertools
from functools import cache

import pytest
import torch

from structperc.chain import kbest, path_score
from structperc.criteria import LocalAndNonlocal, MarginLoss
from structperc.errors import InputError
from structperc.optim import Perceptron
from structperc.structures import Candidates, Lattice, Scored
from tests.oracle import label_sequences

LABELS = 3


def random_scored(seed, K=4, B=24, T=2):
    """Candidates with small integer scores, so that ties and equal gaps occur; gold in the list or outside of it."""
    generator = torch.Generator().manual_seed(seed)
    lattice = Lattice(torch.zeros(B, T, LABELS), torch.zeros(B, T, LABELS, LABELS), torch.full((B,), T))
    paths = torch.tensor(label_sequences(T, LABELS))
    chosen = torch.stack([torch.randperm(len(paths), generator=generator)[: K + 1] for _ in range(B)])
    local = torch.randint(-3, 4, (B, K), generator=generator).double().sort(1, descending=True).values
    more = torch.randint(-3, 4, (B, K), generator=generator).double()
    place = torch.randint(0, K + 1, (B,), generator=generator)  # of gold; K: outside of the list
    gold = paths[chosen.gather(1, place[:, None])[:, 0]]
    outside = place == K
    inside = place.clamp(max=K - 1)[:, None]
    gold_local = torch.where(outside, local[:, -1] - 1, local.gather(1, inside)[:, 0])
    gold_more = torch.where(outside, torch.randint(-3, 9, (B,), generator=generator), more.gather(1, inside)[:, 0])
    candidates = Candidates(paths[chosen[:, :K]], local, torch.ones(B, K, dtype=torch.bool))
    return Scored(lattice, gold, candidates, gold_local, local, gold_more.double(), more)


def literal(scored, b, C_a, C_l, conservative=False, local_first=False):
    """The steps of Algorithm 4.2 -> (y* - y) in local and in non-local scores, or None without an update."""
    paths = scored.candidates.labels[b].tolist()
    gold = scored.gold[b].tolist()
    local, more = scored.candidate_scores[b].tolist(), scored.candidate_nonlocal[b].tolist()
    own = float(scored.gold_scores[b]), float(scored.gold_nonlocal[b])

    def total_gap(i):
        return sum(own) - local[i] - more[i]

    def local_gap(i):
        return own[0] - local[i]

    def part_a():
        first, second = sorted(range(len(paths)), key=lambda i: -(local[i] + more[i]))[:2]
        if paths[first] != gold and total_gap(first) <= C_a:
            return total_gap(first)
        if paths[first] == gold and total_gap(second) <= C_a:
            return total_gap(second)
        return None

    def part_b():
        if conservative and gold in paths:
            return None
        first, second = sorted(range(len(paths)), key=lambda i: -local[i])[:2]
        if paths[first] != gold:
            return local_gap(first)
        return local_gap(second) if local_gap(second) <= C_l else None

    for part in (part_b, part_a) if local_first else (part_a, part_b):
        if (gap := part()) is not None:
            return gap
    return None


@pytest.mark.parametrize("local_first", [False, True])
@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize("C", [(0.0, 0.0), (1.0, 3.0)])
def test_equals_the_steps_of_the_paper(C, conservative, local_first):
    scored = random_scored(0)
    options = {"local": "conservative" if conservative else "aggressive", "first": "local" if local_first else "total"}
    losses, acts = LocalAndNonlocal(*C, **options).losses_and_updates(scored)
    for b in range(len(losses)):
        gap = literal(scored, b, *C, conservative, local_first)
        assert bool(acts[b]) == (gap is not None)
        assert float(losses[b]) == (0 if gap is None else -gap)


def test_gradient_of_the_local_part():
    scored = random_scored(0)
    leaves = [x.clone().requires_grad_() for x in scored[3:7]]
    LocalAndNonlocal(-0.0, 100.0, first="local")(Scored(*scored[:3], *leaves)).sum().backward()
    gold, candidates, gold_more, more = (x.grad for x in leaves)
    assert (gold == -1).all()
    assert (candidates.sum(1) == 1).all()
    assert not gold_more.any()
    assert not more.any()


def test_a_cost_is_added_to_rivals():
    scored = random_scored(0)
    gold, paths = scored.gold.tolist(), scored.candidates.labels.tolist()
    wrong = [
        [sum(x != y for x, y in zip(path, own, strict=True)) for path in listed]
        for listed, own in zip(paths, gold, strict=True)
    ]
    dearer = scored.candidate_scores + 0.5 * torch.tensor(wrong)
    found, plain = LocalAndNonlocal(1.0, cost=0.5), LocalAndNonlocal(1.0)
    expected = plain.losses_and_updates(scored._replace(candidate_scores=dearer))
    assert all(map(torch.equal, found.losses_and_updates(scored), expected))
    assert not torch.equal(expected[0], plain(scored))


def test_candidates_are_searched_with_the_cost():
    lattice, gold = Lattice(torch.zeros(1, 2, 2), torch.zeros(1, 1, 2, 2), torch.tensor([2])), torch.tensor([[0, 1]])
    found = LocalAndNonlocal(0.0, cost=3.0).augment(lattice, gold).unary
    assert found.tolist() == [[[0, 3], [3, 0]]]
    assert LocalAndNonlocal(0.0).augment(lattice, gold) is lattice


def test_bad_options_are_named():
    for options, name in (
        ({"C": -1}, "C must"),
        ({"C": 1, "C_local": -1}, "C_local"),
        ({"C": 1, "cost": -1}, "cost"),
        ({"C": 1, "local": "x"}, "local"),
        ({"C": 1, "first": "x"}, "first"),
    ):
        with pytest.raises(InputError, match=f"LocalAndNonlocal: {name}"):
            LocalAndNonlocal(**options)


# -- bounds on toy documents -----------------------------------------------------------------------------------

WORDS = 4  # 0: a name in an unclear context, 1 and 2: the name in a clear context of either class, 3: another word


def local_vector(words, labels):
    vector = torch.zeros(WORDS * LABELS + LABELS**2, dtype=torch.float64)
    for t, (word, label) in enumerate(zip(words, labels, strict=True)):
        vector[word * LABELS + label] += 1
        if t:
            vector[WORDS * LABELS + labels[t - 1] * LABELS + label] += 1
    return vector


def nonlocal_vector(words, labels):
    """Pairs of mentions of the name (all words but 3), by the classes of both: a table of labels by labels."""
    vector = torch.zeros(LABELS**2, dtype=torch.float64)
    named = [label for word, label in zip(words, labels, strict=True) if word != 3]
    for a, b in itertools.combinations(named, 2):
        vector[min(a, b) * LABELS + max(a, b)] += 1
    return vector


nonlocal_counts = cache(nonlocal_vector)  # of tuples: training asks for the same few labellings again and again


class Documents:
    """Toy documents, all their labellings and differences to gold."""

    def __init__(self, documents):
        self.documents = documents
        self.differences = []  # per document: (local, total) differences to every wrong labelling
        for words, gold in documents:
            paths = label_sequences(len(words), LABELS)
            wrong = [p for p in paths if list(p) != gold]
            own = local_vector(words, gold), nonlocal_vector(words, gold)
            local = torch.stack([own[0] - local_vector(words, p) for p in wrong])
            more = torch.stack([own[1] - nonlocal_vector(words, p) for p in wrong])
            self.differences.append((local, torch.cat([local, more], 1)))

    def margin(self, weights, part):
        return min(float((d[part] @ weights).min()) for d in self.differences) / float(weights.norm())

    @property
    def longest(self):
        return max(float(d[1].norm(dim=1).max()) for d in self.differences)


def lattice_of(words, weights):
    node = weights[: WORDS * LABELS].view(WORDS, LABELS)
    edge = weights[WORDS * LABELS : WORDS * LABELS + LABELS**2].view(1, 1, LABELS, LABELS)
    unary = node[torch.tensor(words)].unsqueeze(0)
    return Lattice(unary, edge.expand(1, len(words), LABELS, LABELS), torch.tensor([len(words)]))


def score(words, gold, weights, n):
    lattice = lattice_of(words, weights)
    candidates = kbest(lattice, n)
    labels = torch.cat([torch.tensor(gold)[None, None], candidates.labels], 1)
    own = path_score(lattice, labels)
    counts = torch.stack([nonlocal_counts(tuple(words), tuple(path)) for path in labels[0].tolist()])
    more = (counts @ weights[-(LABELS**2) :]).unsqueeze(0)
    return Scored(lattice, torch.tensor([gold]), candidates, own[:, 0], own[:, 1:], more[:, 0], more[:, 1:])


def train(data, criterion, n, limit=20_000):
    """Until a pass without updates, a document per step -> weights, number of updates."""
    weights = torch.zeros(WORDS * LABELS + 2 * LABELS**2, dtype=torch.float64, requires_grad=True)
    optimizer = Perceptron([weights], average=False)
    updates, changed = 0, True
    while changed and updates < limit:
        changed = False
        for words, gold in data.documents:
            optimizer.zero_grad()
            losses, acts = criterion.losses_and_updates(score(words, gold, weights, n))
            losses.sum().backward()
            optimizer.step()
            updates += int(acts.sum())
            changed |= bool(acts)
    return weights.detach(), updates


def chosen(words, gold, weights, n):
    scored = score(words, gold, weights, n)
    return scored.candidates.labels[0, (scored.candidate_scores + scored.candidate_nonlocal)[0].argmax()].tolist()


# The same unclear mention [.. 3, 0], locally alike in both documents, takes the class of the clear one.
AMBIGUOUS = [([1, 3, 3, 0], [1, 0, 0, 1]), ([2, 3, 3, 0], [2, 0, 0, 2]), ([0, 3, 3, 1], [1, 0, 0, 1]), ([3], [0])]


@pytest.mark.parametrize("C", [0.0, 2.0])
def test_bound_with_nonlocal_weights(C):
    """All labellings as candidates: gold is always among them, and the total model must do the work."""
    data = Documents(AMBIGUOUS)
    separator, _ = train(data, MarginLoss(20.0), LABELS**4)
    delta, square = data.margin(separator, 1), data.longest**2
    assert delta > 0
    weights, updates = train(data, LocalAndNonlocal(C, local="conservative"), LABELS**4)
    assert 0 < updates <= (2 * C + square) / delta**2
    reached = data.margin(weights, 1)
    assert reached * float(weights.norm()) > C
    assert reached >= delta * C / (2 * C + square)
    assert all(chosen(words, gold, weights, LABELS**4) == gold for words, gold in data.documents)
    assert weights[-(LABELS**2) :].any()


def separable(seed):
    """Documents that a random local separator labels: what the bound of 4.2 asks for. -> documents, margin."""
    generator = torch.Generator().manual_seed(seed)
    separator = torch.randn(WORDS * LABELS + LABELS**2, generator=generator, dtype=torch.float64)
    documents = []
    for length in torch.randint(2, 5, (8,), generator=generator).tolist():
        words = torch.randint(0, WORDS, (length,), generator=generator).tolist()
        paths = [list(p) for p in label_sequences(length, LABELS)]
        scores = torch.stack([local_vector(words, p) for p in paths]) @ separator
        documents.append((words, paths[int(scores.argmax())]))
    data = Documents(documents)
    return data, data.margin(separator, 0)


@pytest.mark.parametrize(("C", "n", "first"), [(0.0, 20, "total"), (0.0, 2, "local"), (4.0, 2, "total")])
def test_bound_and_margin_of_both_parts_together(C, n, first):
    data, delta = separable(int(C > 0))
    square = data.longest**2
    weights, updates = train(data, LocalAndNonlocal(C, first=first), n)
    assert 0 < updates <= (2 * C + square) / delta**2
    for words, gold in data.documents:
        scored = score(words, gold, weights, n)
        others = (scored.candidates.labels[0] != torch.tensor(gold)).any(1) & scored.candidates.valid[0]
        total = (scored.candidate_scores + scored.candidate_nonlocal)[0]
        gap = float((scored.gold_scores + scored.gold_nonlocal)[0] - total[others].max())
        assert gap > C
        assert gap / float(weights.norm()) >= delta * C / (2 * C + square)
        assert scored.candidates.labels[0, 0].tolist() == gold  # (B): the local model alone is right too


def test_the_larger_margin_bounds_the_updates():
    data, delta = separable(1)
    for C, C_local in ((1.0, 3.0), (3.0, 1.0)):
        _, updates = train(data, LocalAndNonlocal(C, C_local), 5)
        assert 0 < updates <= (2 * max(C, C_local) + data.longest**2) / delta**2
