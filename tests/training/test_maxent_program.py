"""The maximum-entropy tagger as users run it: what it learns, what its candidates and probabilities are."""

import math

import pytest
import torch

from structperc.analysis.explanation import explain
from structperc.chain import KBest, kbest
from structperc.cli.main import main
from structperc.criteria import MEMMLoss
from structperc.datamodules.sources import Synthetic
from structperc.nonlocal_features import PhraseConsistency
from structperc.reranking.jackknife import list_candidates
from structperc.taggers.tagger import Tagger
from tests.tiny import EDGE, Loops, Sentences, make_tagger, sentences, weights_of

CONFIG = "pkg:studies/embedded#maxent"
SIZES = {"train": 20, "dev": 4, "test": 4}


class LocalLoops(Loops):
    """-log p(gold) of sentences, one softmax per token."""

    def _one(self, unary, edge, gold):
        tagger, total = self.tagger, 0.0
        for t, label in enumerate(gold):
            legal = tagger.constraints.start if t == 0 else tagger.constraints.transition[gold[t - 1]]
            legal = legal & tagger.constraints.end if t == len(gold) - 1 else legal
            scores = unary[t] if t == 0 else unary[t] + edge[t, gold[t - 1]]
            total = total - scores.where(legal, -torch.inf).log_softmax(0)[label]
        return total


@pytest.mark.parametrize(
    ("scheme", "edge", "sparse_grad"), [("IOB2", (), True), ("IOBES", EDGE, True), ("IOB2", EDGE, False)]
)
def test_losses_and_gradients(scheme, edge, sparse_grad):
    data = Sentences(sentences(9), scheme=scheme, labels="IOB2")
    tagger = make_tagger(data, MEMMLoss(), edge=edge, sparse_grad=sparse_grad)
    rows = tagger.encode(data.corpus("train"))
    losses = tagger.criterion(tagger.score_batch(rows[list(range(9))]))
    losses.sum().backward()
    weights = weights_of(tagger)
    expected = LocalLoops(tagger, rows)(weights)
    torch.testing.assert_close(losses.sum().double(), expected, rtol=1e-5, atol=0)
    gradients = torch.autograd.grad(expected, weights)
    for parameter, gradient in zip(tagger.parameters(), gradients, strict=True):
        torch.testing.assert_close(parameter.grad.to_dense().double(), gradient, rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished run of the configuration, with features of words alone, on a few documents."""
    root = tmp_path_factory.mktemp("maxent") / "runs"
    sizes = [f"--data.{name}={size}" for name, size in SIZES.items()]
    quiet = ["--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false"]
    options = [*sizes, *quiet, "--trainer.accelerator=cpu", f"--trainer.default_root_dir={root}"]
    features = "--model.features.init_args.node=[bias, {of: [w, s2], at: [-1, 0]}]"
    assert main(["fit", "-c", CONFIG, features, "--data.batch_size=50", *options]) == 0
    return root / "1" / "model"


def test_training_ends_at_the_minimum(trained):
    model, data = Tagger.load(trained), Synthetic(**SIZES)
    weights = weights_of(model)
    loss = LocalLoops(model, model.encode(data.corpus("train")))(weights)
    (loss + sum(w.square().sum() for w in weights) / 2).backward()
    at_zero = [torch.zeros_like(w).requires_grad_() for w in weights]
    LocalLoops(model, model.encode(data.corpus("train")))(at_zero).backward()
    norm, start = (math.hypot(*(float(w.grad.norm()) for w in ws)) for ws in (weights, at_zero))
    assert norm < 1e-3 * start
    assert any(w.any() for w in weights)


@pytest.mark.parametrize("text", [["in", "Paris", "."], ["x"], []])
def test_probabilities_of_candidates(trained, text):
    model = Tagger.load(trained)
    (found,) = model.kbest([text], len(model.labels) ** len(text))
    assert sum(math.exp(one.log_probability) for one in found) == pytest.approx(1, abs=1e-5)
    for one in found:
        assert one.score == pytest.approx(one.log_probability, abs=1e-5)
        assert one.score <= 1e-5


def test_marginals_are_sums_over_candidates(trained):
    model, text = Tagger.load(trained), ["Mr.", "Lind", "left"]
    (found,), (table,) = model.kbest([text], len(model.labels) ** 3), model.marginals([text])
    expected = torch.zeros(3, len(model.labels))
    for one in found:
        expected[torch.arange(3), torch.from_numpy(model.labels.encode(one.labels))] += math.exp(one.score)
    torch.testing.assert_close(table, expected, rtol=0, atol=1e-5)


def test_lists_of_log_probabilities(trained):
    model, corpus = Tagger.load(trained), Synthetic(**SIZES).corpus("test")
    lists = list_candidates(model, corpus, 20)
    shares = lists.scores.double().exp().where(lists.valid, 0)
    assert (shares.sum(1) <= 1 + 1e-4).all()
    assert (shares.sum(1) > 0.3).all()
    gold = torch.from_numpy(model.labels.encode(corpus.columns["label"]))
    held = lists.contains(gold)
    assert held.any()
    assert (lists.gold_scores[held] >= lists.scores[held].min(1).values - 1e-4).all()
    assert (lists.gold_scores <= 1e-4).all()


def test_explained_scores_beside_nonlocal_features():
    data, options = Synthetic(unit="document", train=3, dev=0, test=0), {"decoder": KBest(10)}
    tagger = make_tagger(data, MEMMLoss(), edge=EDGE, nonlocal_features=[PhraseConsistency()], **options).eval()
    corpus = data.corpus("train")
    explanation = explain(tagger, corpus, 0, 10)
    local = kbest(tagger(tagger.encode(corpus)[[0]]), 10).scores[0]
    for i, one in enumerate(explanation.candidates):
        assert one.local == pytest.approx(float(local[one.local_rank - 1]), abs=1e-4)
        expected = one.local + explanation.shared_score + sum(term.products[i] for term in explanation.terms)
        assert one.total == pytest.approx(expected)
    assert not tagger.probabilistic
    assert tagger.kbest(corpus, 2)[0][0].log_probability is None
