"""Random small sentences, as the reference and as the library want them."""

import random
import re
from collections import Counter

import pytest
import torch

from structperc.data.words import word_hashes
from structperc.guided import ContextFeatures, GuidedModel
from structperc.guided.context_features import parse_context
from structperc.guided.model import GuidedOptimizer, LearningCounts
from structperc.guided.training_arrays import UNKNOWN
from structperc.ragged import Ragged
from structperc.scorers import SparseLinear
from structperc.structures import Batch, FlatBatch, Words, real_tokens
from tests.guided.reference import Reference, Sentence

VOCABULARY = ["the", "a", "dog", "cat", "runs"]
N_STATIC = 12  # static features, of names "0", "1", ...
OUTSIDE = "OUTSIDE"


def sentences(seed: int, n: int, L: int, longest: int = 9) -> list[Sentence]:
    """Sentences of 0 to `longest` words; features repeat within a sentence, one of a token at most once."""
    draw = random.Random(seed)
    made = []
    for _ in range(n):
        T = draw.randint(0, longest)
        static = [[str(f) for f in draw.sample(range(N_STATIC), draw.randint(1, 3))] for _ in range(T)]
        made.append(Sentence(draw.choices(VOCABULARY, k=T), static, [draw.randrange(L) for _ in range(T)]))
    return made


def batch_of(made: list[Sentence], spare: int = 0) -> Batch:
    """Padded by `spare` more places than needed; there is something in the padding of gold that nobody may read."""
    lengths = torch.tensor([len(s.words) for s in made], dtype=torch.int64)
    T = int(lengths.amax()) + spare if made else 0
    words, gold = torch.zeros(len(made), T, dtype=torch.int64), torch.full((len(made), T), 999)
    for row, sentence in enumerate(made):
        words[row, : len(sentence.words)] = torch.from_numpy(word_hashes(sentence.words))
        gold[row, : len(sentence.gold)] = torch.tensor(sentence.gold, dtype=torch.int64)
    allowed = None
    if sets := [torch.tensor(own, dtype=torch.bool) for s in made if (own := s.allowed)]:
        allowed = torch.ones(len(made), T, sets[0].shape[1], dtype=torch.bool)
        for row, sentence in enumerate(made):
            if sentence.allowed:
                allowed[row, : len(sentence.words)] = torch.tensor(sentence.allowed)
    bags = [[int(f) for f in features] for s in made for features in s.static]
    ids = torch.tensor([i for bag in bags for i in bag], dtype=torch.int32)
    offsets = torch.tensor([0, *map(len, bags)], dtype=torch.int32).cumsum(0).int()
    empty = torch.zeros_like(words)
    numbers = Words(words, words, empty, empty)
    masks = empty, empty.bool(), empty.bool()
    weights = torch.tensor([float(s.weight) for s in made])[:, None].expand(len(made), T)
    return Batch(Ragged(ids, offsets), None, lengths, gold, *masks, lengths, numbers, allowed=allowed, weights=weights)


def flat(batch: Batch) -> FlatBatch:
    """The same sentences without padding."""
    real = real_tokens(batch.lengths, batch.gold.shape[1])
    tokens = (batch.gold, batch.sentences, batch.first, batch.last)
    gold, numbers, first, last = (values[real] for values in tokens)
    words = Words(*(values[real] for values in batch.words))
    allowed = None if batch.allowed is None else batch.allowed[real]
    rows = batch.rows
    made = FlatBatch(batch.nodes, None, batch.lengths, gold, numbers, first, last, rows, words, allowed=allowed)
    return made if bool((batch.weights == 1).all()) else made._replace(weights=batch.weights[real])


class ModelWithOptimizer(GuidedModel):
    """A model together with what moves it."""

    def allocate(self, n_node: int, n_labels: int) -> None:
        super().allocate(n_node, n_labels)
        self.updates = GuidedOptimizer(self.parameters())

    def learn(self, batch: Batch) -> LearningCounts:
        return super().learn(flat(batch), self.updates)

    @property
    def steps(self) -> int:
        return self.updates.param_groups[0]["steps"]

    def sums(self, p: torch.Tensor) -> torch.Tensor:
        return self.updates.state[p]["sums"]


def model_of(templates: list, L: int, size: int = 2**16, **options) -> ModelWithOptimizer:
    """All weights zero."""
    model = ModelWithOptimizer(SparseLinear(transitions=False), ContextFeatures(templates, size), **options)
    model.allocate(N_STATIC, L)
    return model


def reference_of(model: GuidedModel) -> Reference:
    """The same model for the reference, its weights zero."""
    templates = list(map(str, parse_context(model.context.templates)))
    return Reference(templates, model.static.node.shape[1], model.beam, model.order)


def set_weights(model: GuidedModel, weights: dict) -> None:
    """Give the model the weights of a reference."""
    for (feature, label), value in weights.items():
        place(model, feature).detach()[label] = value


def weights_of(model: GuidedModel, names: set) -> dict:
    """The weights of (feature, label) pairs. AssertionError where another place of the tables holds anything."""
    features = {feature: place(model, feature).detach() for feature, _ in sorted(names)}
    found = {(feature, label): features[feature][label].item() for feature, label in names}
    mass = sum(table.detach().abs().sum().item() for table in (model.static.node, model.context.table))
    assert mass == pytest.approx(sum(map(abs, found.values())))
    return found


def place(model: GuidedModel, feature: str) -> torch.Tensor:
    """The row (L,) of a feature of the reference, such as "3" or "t[-1] w[0]=[2, 'dog']"."""
    if feature.isdigit():
        return model.static.node[int(feature)]
    template, _, values = feature.partition("=")
    known = dict(zip(re.findall(r"\w\[-?\d+\]", template), eval(values), strict=True))
    window = torch.tensor([[known.get(f"t[{i}]", UNKNOWN) for i in (-2, -1, 1, 2)]])
    shown = [known.get(f"w[{i}]", OUTSIDE) for i in range(-2, 3)]
    words = torch.tensor([0 if word == OUTSIDE else int(word_hashes([word])[0]) for word in shown])
    rows = model.context.rows(window, model.context.keys(words, torch.tensor([len(words)]))[2:3])
    return model.context.table[rows[0, list(map(str, model.context.parsed)).index(template)]]


class Weights(Counter):
    """The weights of a model under the names of the reference, each looked up when it is asked for."""

    def __init__(self, model: GuidedModel) -> None:
        super().__init__()
        self.model = model

    def __missing__(self, name: tuple[str, int]) -> float:
        row = place(self.model, name[0]).tolist()
        self.update({(name[0], label): weight for label, weight in enumerate(row)})
        return self[name]


def draw_weights(model: GuidedModel, seed: int, most: int) -> None:
    """Whole numbers from -most to most: ties are frequent. Row 0 of the context table stays zero."""
    torch.manual_seed(seed)
    for p in model.parameters():
        p.detach().copy_(torch.randint(-most, most + 1, p.shape))
    model.context.table.detach()[0] = 0
