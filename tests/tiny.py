"""A handful of sentences, small taggers for them, and their objectives by plain loops in float64."""

import random
from collections.abc import Sequence

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor

from structperc.chain import KBest
from structperc.data.corpus import Corpus
from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.encoded import EncodedCorpus
from structperc.features import FeatureExtractor
from structperc.nn.candidate_scorer import ComparedSequences
from structperc.optim.base import TrainingProtocol
from structperc.optim.full_batch import FullBatch
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger

PER, LOC, WORDS = ["Anna", "Bo", "Paris"], ["Rome", "Paris", "Bo"], ["met", "in", "saw", "the", "left"]
NODE, EDGE = [{"of": ["w"], "at": [-1, 0, 1]}, "bias"], [{"of": ["w"], "at": [0]}]


def sentences(n: int, seed: int = 0) -> list[list[tuple[str, str]]]:
    """(word, IOB2 label) of n sentences of 1 to 7 tokens; two names mean either type."""
    draw, made = random.Random(seed), []
    for _ in range(n):
        sentence: list[tuple[str, str]] = []
        for _ in range(draw.randint(1, 3)):
            kind, names = draw.choice([("PER", PER), ("LOC", LOC)])
            name = draw.sample(names, draw.randint(0, 2))
            sentence += [(word, f"{'BI'[i > 0]}-{kind}") for i, word in enumerate(name)]
            sentence.append((draw.choice(WORDS), "O"))
        made.append(sentence[draw.randint(0, 1) :] or sentence)
        made[-1][0] = (made[-1][0][0], made[-1][0][1].replace("I-", "B-"))
    return made


class Sentences(SequenceDataModule):
    """Training sentences and nothing else."""

    def __init__(self, made: Sequence[Sequence[tuple[str, str]]], **options) -> None:
        super().__init__(**options)
        flat = [pair for sentence in made for pair in sentence]
        boundaries = np.cumsum([0, *map(len, made)])
        columns = {"word": [word for word, _ in flat], "label": [label for _, label in flat]}
        self.rows = Corpus.from_columns(columns, boundaries.tolist(), list(range(len(made)))).to_dataset()

    def read(self, split):
        return ("sentences", self.rows) if split == "train" else None


def without_names(text: str) -> str:
    """Columns with predictions, without the first line, which names them."""
    head, _, rest = text.partition("\n")
    assert head.startswith("#columns=")
    return rest.removeprefix("\n")


def make_tagger(data, criterion, optimizer=torch.optim.SGD, *, k=2, **options):
    """A tagger with random weights, fitted to the data."""
    corpus, labels = data.corpus("train"), data.label_set()
    return random_tagger(corpus, labels, criterion, NODE, k=k, optimizer=optimizer, **options)


def random_tagger(
    corpus, labels, criterion, node=("w[0]",), *, edge=(), documents=None, k=1, sparse_grad=False, seed=0, **options
):
    """A tagger with random weights for the features of a corpus, or of sentences."""
    features = FeatureExtractor(list(node), edge, cutoff=1, documents=documents, progress=False)
    features.fit(corpus if isinstance(corpus, Corpus) else Corpus.from_sentences(corpus))
    tagger = Tagger(features, SparseLinear(sparse_grad=sparse_grad), criterion, KBest(k), **options)
    tagger.allocate(labels)
    torch.manual_seed(seed)
    for p in tagger.parameters():
        torch.nn.init.normal_(p)
    return tagger


def fit(tagger: Tagger, data: SequenceDataModule, epochs: int, accelerator: str = "cpu", **options) -> pl.Trainer:
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = pl.Trainer(max_epochs=epochs, accelerator=accelerator, enable_model_summary=False, **quiet, **options)
    trainer.fit(tagger, datamodule=data)
    return trainer


# -- objectives ----------------------------------------------------------------------------------------------


def weights_of(tagger: Tagger) -> list[Tensor]:
    """Copies in float64, with gradients, in the order of the parameters."""
    return [p.detach().double().clone().requires_grad_() for p in tagger.parameters()]


def occurrences(rows: EncodedCorpus, size: int, kind: str = "nodes") -> Tensor:
    """(N, size) how often each token has each feature."""
    features = getattr(rows.arrays, kind)
    table = torch.zeros(len(features.counts), size, dtype=torch.float64)
    for token, i in zip(features.row_ids.tolist(), features.ids.tolist(), strict=True):
        table[token, i] += 1
    return table


class Loops:
    """-log p(gold) of sentences by the forward recursion, token by token."""

    def __init__(self, tagger: Tagger, rows: EncodedCorpus) -> None:
        self.tagger, self.rows = tagger, rows
        self.names = [name for name, _ in tagger.named_parameters()]
        self.nodes = occurrences(rows, tagger.features.n_node_features)
        if tagger.features.n_edge_features:
            self.edges = occurrences(rows, tagger.features.n_edge_features, "edges")

    def __call__(self, weights: Sequence[Tensor], which: Sequence[int] | None = None) -> Tensor:
        """Summed over the sentences `which`, or all."""
        named = dict(zip(self.names, weights, strict=True))
        unary = self.nodes @ named["scorer.node"]
        L = unary.shape[1]
        edge = torch.zeros(len(unary), L, L, dtype=torch.float64)
        if "scorer.edge" in named:
            edge = edge + (self.edges @ named["scorer.edge"]).view(-1, L, L)
        if "scorer.transition" in named:
            edge = edge + named["scorer.transition"]
        corpus = self.rows.corpus
        gold = torch.from_numpy(self.rows.arrays.tokens.array[:, 0].astype("int64"))
        spans = [(int(corpus.starts[s]), int(corpus.starts[s + 1])) for s in which or range(len(corpus))]
        return torch.stack([self._one(unary[a:b], edge[a:b], gold[a:b]) for a, b in spans]).sum()

    def _one(self, unary: Tensor, edge: Tensor, gold: Tensor) -> Tensor:
        tagger = self.tagger
        alpha = unary[0].where(tagger.constraints.start, -torch.inf)
        score = unary[0, gold[0]]
        for t in range(1, len(gold)):
            allowed = edge[t].where(tagger.constraints.transition, -torch.inf)
            alpha = (alpha[:, None] + allowed).logsumexp(0) + unary[t]
            score = score + edge[t, gold[t - 1], gold[t]] + unary[t, gold[t]]
        return alpha.where(tagger.constraints.end, -torch.inf).logsumexp(0) - score


def whole(tagger: Tagger, rows: EncodedCorpus, weights: Sequence[Tensor], which: Sequence[int] | None = None):
    """What a criterion compares in one batch of all sentences, or of `which`, in float64."""
    copy = Tagger(tagger.features, SparseLinear(sparse_grad=False), tagger.criterion, tagger.search)
    copy.scorer.transitions = tagger.scorer.transitions
    copy.allocate(tagger.labels)
    names = [name for name, _ in copy.named_parameters()]
    copy.double()
    batch = rows[list(range(len(rows))) if which is None else list(which)]
    named = dict(zip(names, weights, strict=True))
    lattice = torch.func.functional_call(copy, named, (batch,))
    with torch.no_grad():
        candidates = copy.search(lattice)
    return copy.candidate_scorer.score(batch, ComparedSequences(lattice, batch.gold, None), candidates)


# -- an optimizer that goes wrong ----------------------------------------------------------------------------


class Explodes(FullBatch):
    """Gradient descent whose fourth point is no number."""

    def __init__(self, params, lr: float) -> None:
        super().__init__(params, {"lr": lr})

    def _advance(self, objective, point, gradient):
        far = torch.inf if self.param_groups[0]["evaluations"] == 3 else 1.0
        self._set_point(point - self.param_groups[0]["lr"] * far * gradient)


class ExplodesInBatches(torch.optim.SGD, TrainingProtocol):
    """Gradient descent whose step number `at` leads to no number."""

    divergence_hint = "take another optimizer"

    def __init__(self, params, lr: float, at: int) -> None:
        super().__init__(params, lr)
        self.param_groups[0].update(at=at, taken=0)

    def step(self, closure=None):
        returned = super().step(closure)
        self.param_groups[0]["taken"] += 1
        if self.param_groups[0]["taken"] == self.param_groups[0]["at"]:
            with torch.no_grad():
                for p in self.param_groups[0]["params"]:
                    p.fill_(torch.nan)
        return returned
