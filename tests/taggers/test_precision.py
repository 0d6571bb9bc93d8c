"""Half precision ends where the lattice begins: under autocast, with scores in bfloat16, the rest is float32."""

import pytest
import pytorch_lightning as pl
import torch
from torch import nn

from structperc.chain import KBest, entropy, kbest, log_partition, marginals, max_marginals, path_score, viterbi
from structperc.chain.lattices import map_scores
from structperc.chain.marginals import edge_marginals
from structperc.chain.restrictions import constrain
from structperc.criteria import CRFLoss, LocalAndNonlocal, MarginLoss, MCEFLoss, MCELoss, SoftMaxMeasure
from structperc.data.labels import LabelSet
from structperc.features import FeatureExtractor
from structperc.nn.candidate_scorer import ComparedSequences
from structperc.optim import QuickProp
from structperc.scorers import Scorer, SparseLinear
from structperc.structures import Lattice
from structperc.taggers.tagger import Tagger
from tests.tiny import EDGE, NODE, Sentences, make_tagger, sentences

CRITERIA = {
    "margin": lambda: MarginLoss(1000.0),
    "local and non-local": lambda: LocalAndNonlocal(1000.0),
    "likelihood": CRFLoss,
    "soft mce": lambda: MCELoss(SoftMaxMeasure(psi=2.0)),
    "mce-f": MCEFLoss,
}


SMALL = ["--data.train=6", "--data.dev=1", "--data.test=1", "--trainer.max_epochs=1", "--trainer.accelerator=cpu"]


class Half(Scorer):
    """Linear layers over sums of sparse features: what they give is half precision under autocast."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.width = width
        self.vectors = SparseLinear(transitions=False, sparse_grad=False)

    def allocate(self, n_node: int, n_edge: int, n_labels: int) -> None:
        self.vectors.allocate(n_node, 0, self.width)
        self.unary, self.edge = nn.Linear(self.width, n_labels), nn.Linear(self.width, n_labels**2)

    def forward(self, batch):
        vectors = self.vectors(batch).unary
        B, T, _ = vectors.shape
        edge = self.edge(vectors)
        return Lattice(self.unary(vectors), edge.view(B, T, *[self.unary.out_features] * 2), batch.lengths)


def autocast():
    return torch.autocast("cpu", torch.bfloat16)


def tagger_of(criterion, n=9):
    data = Sentences(sentences(n), batch_size=4)
    features = FeatureExtractor(NODE, (), cutoff=1, progress=False)
    features.fit(data.corpus("train"))
    tagger = Tagger(features, Half(), criterion, KBest(3))
    tagger.allocate(data.label_set())
    torch.manual_seed(4)
    for p in tagger.parameters():
        nn.init.normal_(p, std=0.5)
    data.encode(tagger.encode, "fit")
    return tagger, data


def in_double(tagger, batch):
    """Lattice and loss of the same scores, in float64 from the lattice on and without autocast."""
    with autocast():
        half = tagger.scorer(batch)
    assert half.unary.dtype == half.edge.dtype == torch.bfloat16
    lattice = map_scores(torch.Tensor.double, half)
    lattice = constrain(
        lattice,
        tagger.constraints.start,
        tagger.constraints.transition,
        tagger.constraints.end,
        batch.first,
        batch.last,
    )
    lattice = tagger.criterion.transform_lattice(lattice)
    candidates = tagger.search(tagger.criterion.augment(lattice, batch.gold))
    return lattice, tagger.criterion(
        tagger.candidate_scorer.score(batch, ComparedSequences(lattice, batch.gold, None), candidates)
    ).sum()


@pytest.mark.parametrize("name", CRITERIA)
def test_losses_and_gradients_in_half_precision(name):
    tagger, data = tagger_of(CRITERIA[name]())
    tagger.eval()  # or MCE-F would go on from what it counted before
    batch = data.encoded("train")[list(range(9))]
    parameters = list(tagger.parameters())
    with autocast():
        lattice = tagger(batch)
        loss = tagger.training_step(batch)
    expected_lattice, expected = in_double(tagger, batch)
    assert (lattice.unary.dtype, lattice.edge.dtype, loss.dtype) == (torch.float32,) * 3
    torch.testing.assert_close(lattice.unary.double(), expected_lattice.unary, rtol=1e-5, atol=1e-4)
    assert float(loss) == pytest.approx(float(expected), rel=1e-5, abs=1e-5)
    gradients, wanted = torch.autograd.grad(loss, parameters), torch.autograd.grad(expected, parameters)
    assert any(gradient.any() for gradient in gradients)
    for gradient, right in zip(gradients, wanted, strict=True):
        assert gradient.dtype == torch.float32
        torch.testing.assert_close(gradient, right, rtol=2e-2, atol=2e-2 * float(right.abs().max()))


@pytest.mark.parametrize("name", ["margin", "mce-f"])
def test_training_in_mixed_precision(name):
    tagger, data = tagger_of(CRITERIA[name]())
    tagger.optimizer = lambda p: torch.optim.Adam(p, lr=1e-3)
    before = [p.detach().clone() for p in tagger.parameters()]
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    limits = {"max_epochs": 1, "accelerator": "cpu", "precision": "bf16-mixed", "enable_model_summary": False}
    pl.Trainer(**limits, **quiet).fit(tagger, datamodule=data)
    after = list(tagger.parameters())
    assert all(p.dtype == torch.float32 and p.isfinite().all() for p in after)
    assert any(not a.equal(b) for a, b in zip(before, after, strict=True))


class Totals(pl.Callback):
    """Counts of the corpus by the criterion's own pass, and again under the autocast of a training step."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if batch_idx == 0:
            with autocast(), torch.no_grad():
                scored = pl_module.score_batch(pl_module.whole)
            self.again = pl_module.criterion.counts(scored).double().sum(0)
            self.found = pl_module.criterion.totals


def test_totals_in_half_precision():
    tagger, data = tagger_of(MCEFLoss())
    tagger.optimizer, tagger.whole = lambda p: QuickProp(p, lr=1e-3), data.encoded("train")[list(range(9))]
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    limits = {"max_epochs": 1, "accelerator": "cpu", "precision": "bf16-mixed", "enable_model_summary": False}
    totals = Totals()
    pl.Trainer(callbacks=[totals], **limits, **quiet).fit(tagger, datamodule=data)
    torch.testing.assert_close(totals.found, totals.again, rtol=1e-5, atol=1e-5)


def test_sparse_perceptron_in_half_precision(runs, make_runs):
    """Its scores are whole numbers beyond 256, which bfloat16 has not."""
    other = make_runs("full")
    assert runs("fit", "--trainer.max_epochs=2", "--trainer.precision=bf16-mixed") == 0
    assert other("fit", "--trainer.max_epochs=2") == 0
    mixed, full = (folder / "1" / "model" / "model.safetensors" for folder in (runs.root, other.root))
    assert mixed.read_bytes() == full.read_bytes()


def test_fused_optimizers_cannot_clip(fails, tmp_path):
    quiet = ["--trainer.enable_model_summary=false", "--trainer.enable_progress_bar=false"]
    options = [*SMALL, *quiet, "--trainer.precision=bf16-mixed", f"--trainer.default_root_dir={tmp_path}"]
    assert "fused: false" in fails("fit", "-c", "pkg:studies/embedded#bilstm_crf", *options)


# -- the dynamic programs themselves -------------------------------------------------------------------------


def long_lattice(dtype, T=512, L=5):
    torch.manual_seed(2)
    unary, edge = 4 * torch.randn(3, T, L), torch.randn(3, T, L, L)
    return Lattice(unary.to(dtype), edge.to(dtype), torch.tensor([T, 1, T // 3]))


def test_log_partition_of_half_precision():
    half, full = long_lattice(torch.bfloat16), long_lattice(torch.float64)
    with autocast():
        found = log_partition(half)
    rounded = log_partition(Lattice(half.unary.double(), half.edge.double(), half.lengths))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), rounded, rtol=1e-6, atol=1e-4)
    # rounding moves a score by 2**-9 of itself at most, and log Z no more than the highest scores of all tokens
    most = 2**-9 * (full.unary.abs().amax(2).sum(1) + full.edge.abs().amax((2, 3)).sum(1))
    assert ((found - log_partition(full)).abs() <= most).all()


@pytest.mark.parametrize("stationary", [False, True], ids=["edges", "matrix"])
@pytest.mark.parametrize("search", [viterbi, lambda x: kbest(x, 7), marginals, edge_marginals, entropy, max_marginals])
def test_searches_under_autocast(search, stationary):
    half = long_lattice(torch.bfloat16, T=40)
    half = half._replace(edge=half.edge[:1, :1]) if stationary else half
    outside = search(Lattice(half.unary.float(), half.edge.float(), half.lengths))
    with autocast():
        inside = search(half)
    as_tuple = lambda found: found if isinstance(found, tuple) else (found,)  # noqa: E731
    for one, other in zip(as_tuple(inside), as_tuple(outside), strict=True):
        assert one.dtype == other.dtype != torch.bfloat16
        assert one.equal(other)


def test_path_scores_in_full_precision():
    half = long_lattice(torch.bfloat16)
    labels = torch.randint(0, 5, (3, 512))
    full = path_score(Lattice(half.unary.double(), half.edge.double(), half.lengths), labels)
    with autocast():
        torch.testing.assert_close(path_score(half, labels).double(), full, rtol=1e-6, atol=1e-3)


def test_constraints_make_half_precision_full():
    half = long_lattice(torch.bfloat16, T=6)
    labels = LabelSet(("O", "B-P", "I-P", "B-L", "I-L"))
    for lattice in (half, half._replace(edge=half.edge[:1, :1])):
        made = constrain(lattice, labels.start, labels.transition, labels.end)
        assert made.unary.dtype == made.edge.dtype == torch.float32
        assert made.edge.shape == lattice.edge.shape
    double = constrain(long_lattice(torch.float64, T=6), labels.start, labels.transition, labels.end)
    assert double.unary.dtype == torch.float64


def test_lattice_of_half_precision_weights():
    """Whole models in half precision, as trainer.precision bf16-true makes them."""
    data = Sentences(sentences(5), batch_size=4)
    tagger = make_tagger(data, CRFLoss(), edge=EDGE)
    data.encode(tagger.encode, "fit")
    batch = data.encoded("train")[[0, 1, 2]]
    full = tagger(batch)
    half = tagger.to(torch.bfloat16)(batch)
    assert half.unary.dtype == half.edge.dtype == torch.float32
    torch.testing.assert_close(half.unary, full.unary, rtol=2e-2, atol=5e-2)
