"""Update bounds of Collins (2002) and Kazama & Torisawa (2007, §3), as hard assertions on separable toy data."""

from dataclasses import dataclass

import pytest
import torch

from structperc.chain import kbest, path_score
from structperc.criteria import MarginLoss, PerceptronLoss
from structperc.optim import Perceptron as PerceptronOptimizer
from structperc.ragged import Ragged
from structperc.scorers import SparseLinear
from structperc.structures import Batch, Scored, Words
from tests.oracle import label_sequences

WORDS, L = 5, 3


@dataclass
class Toy:
    """Sentences over five words, gold labels from a random separator, its margin and the longest difference."""

    sentences: list[list[int]]
    gold: list[list[int]]
    delta: float
    longest: float


def phi(words, labels):
    vector = torch.zeros(WORDS * L + L * L, dtype=torch.float64)
    for t, (word, label) in enumerate(zip(words, labels, strict=True)):
        vector[word * L + label] += 1
        if t:
            vector[WORDS * L + labels[t - 1] * L + label] += 1
    return vector


def toy(seed):
    generator = torch.Generator().manual_seed(seed)
    separator = torch.randn(WORDS * L + L * L, generator=generator, dtype=torch.float64)
    separator /= separator.norm()
    lengths = torch.randint(1, 5, (12,), generator=generator).tolist()
    sentences = [torch.randint(0, WORDS, (n,), generator=generator).tolist() for n in lengths]
    gold, delta, longest = [], float("inf"), 0.0
    for words in sentences:
        paths = [list(p) for p in label_sequences(len(words), L)]
        vectors = torch.stack([phi(words, p) for p in paths])
        scores = vectors @ separator
        best = int(scores.argmax())
        others = torch.arange(len(paths)) != best
        gold.append(paths[best])
        delta = min(delta, float((scores[best] - scores[others]).min()))
        longest = max(longest, float((vectors[best] - vectors).norm(dim=1).max()))
    return Toy(sentences, gold, delta, longest)


def batch_of(data, rows):
    words = [w for r in rows for w in data.sentences[r]]
    ids = torch.tensor(words, dtype=torch.int32)
    lengths = torch.tensor([len(data.sentences[r]) for r in rows])
    gold = torch.zeros(len(rows), int(lengths.max()), dtype=torch.int64)
    for i, r in enumerate(rows):
        gold[i, : lengths[i]] = torch.tensor(data.gold[r])
    features = Ragged(ids, torch.arange(len(words) + 1, dtype=torch.int32))
    zeros = torch.zeros_like(gold)
    first, last = zeros.bool(), zeros.bool()  # not asked for: no scheme
    return Batch(features, None, lengths, gold, zeros, first, last, torch.tensor(rows), Words(*[zeros] * 4))


def train(data, criterion, batch_size, limit=200_000):
    """Trains until a pass without updates; -> number of per-sequence updates, the scorer."""
    scorer = SparseLinear(transitions=True)
    scorer.allocate(WORDS, 0, L)
    optimizer = PerceptronOptimizer(scorer.parameters(), average=False)
    rows = list(range(len(data.sentences)))
    batches = [batch_of(data, rows[i : i + batch_size]) for i in range(0, len(rows), batch_size)]
    updates, changed = 0, True
    while changed and updates <= limit:
        changed = False
        for batch in batches:
            optimizer.zero_grad()
            lattice = scorer(batch)
            candidates = kbest(lattice, 2)
            scores = path_score(lattice, torch.cat([batch.gold[:, None], candidates.labels], 1))
            zeros = torch.zeros_like(scores)
            scored = Scored(lattice, batch.gold, candidates, scores[:, 0], scores[:, 1:], zeros[:, 0], zeros[:, 1:])
            losses, acts = criterion.losses_and_updates(scored)
            losses.sum().backward()
            optimizer.step()
            acting = int(acts.sum())
            updates += acting
            changed |= acting > 0
    return updates, scorer


def smallest_gap(data, scorer):
    weights = torch.cat([scorer.node.flatten(), scorer.transition.flatten()]).double().detach()
    gaps = []
    for words, right in zip(data.sentences, data.gold, strict=True):
        for path in label_sequences(len(words), L):
            if list(path) != right:
                gaps.append(float((phi(words, right) - phi(words, path)) @ weights))
    return min(gaps)


def reached_margin(data, scorer):
    return smallest_gap(data, scorer) / float(torch.cat([p.flatten() for p in scorer.parameters()]).norm())


@pytest.mark.parametrize(("seed", "batch_size"), [(0, 1), (1, 4)])
def test_perceptron(seed, batch_size):
    data = toy(seed)
    updates, scorer = train(data, PerceptronLoss(), batch_size)
    assert 0 < updates <= batch_size * data.longest**2 / data.delta**2
    assert reached_margin(data, scorer) >= 0  # gold may win a tie


@pytest.mark.parametrize(("seed", "C", "batch_size"), [(1, 4.0, 1), (2, 1.0, 4)])
def test_margin(seed, C, batch_size):
    data = toy(seed)
    updates, scorer = train(data, MarginLoss(C), batch_size)
    square = batch_size * data.longest**2
    assert 0 < updates <= (2 * C + square) / data.delta**2
    assert smallest_gap(data, scorer) > C
    assert reached_margin(data, scorer) >= data.delta * C / (2 * C + square)
