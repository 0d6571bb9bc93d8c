"""Search, optimizer and rates of a tagger of features, scorer and criterion, which learns with every criterion."""

import inspect

import pytest
import pytorch_lightning as pl
import torch

import structperc.criteria
from structperc.criteria import (
    CRFLoss,
    Criterion,
    DistillationLoss,
    HingeLoss,
    MarginLoss,
    MCELoss,
    NBestRiskLoss,
    PairwiseLoss,
    PerceptronLoss,
)
from structperc.datamodules import Synthetic
from structperc.encoders import BiLSTM, FrozenVectors, Transformer, WordEmbedding
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import MajorityPhrase
from structperc.optim import LazyAdamW, ParameterGroups, PassiveAggressive, Perceptron
from structperc.scorers import Neural, SparseLinear, Sum, VectorLinear
from structperc.taggers import Tagger, Teacher

OPTIONS = {"MarginLoss": {"C": 1.0}, "LocalAndNonlocal": {"C": 1.0}}  # required ones
CRITERIA = [
    one
    for name in structperc.criteria.__all__
    if inspect.isclass(one := getattr(structperc.criteria, name))
    and issubclass(one, Criterion)
    and not inspect.isabstract(one)
]


class Objectives(pl.Callback):
    def __init__(self):
        self.values = []

    def on_train_epoch_end(self, trainer, pl_module):
        self.values.append(pl_module.objective())


def train(criterion, data, **options):
    """-> the tagger after two epochs, and their objectives."""
    tagger = Tagger(FeatureExtractor(["w[-1]", "w[0]", "w[1]"]), SparseLinear(), criterion, **options)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    objectives = Objectives()
    trainer = pl.Trainer(max_epochs=2, accelerator="cpu", callbacks=[objectives], enable_model_summary=False, **quiet)
    trainer.fit(tagger, datamodule=data)
    return tagger, objectives.values


@pytest.fixture(scope="module")
def data():
    made = Synthetic(train=2, dev=0, test=0, batch_size=2)
    assert len(made.corpus("train")) == 20
    return made


@pytest.mark.parametrize("cls", CRITERIA, ids=lambda cls: cls.__name__)
def test_objective_of_each_criterion_falls(cls, data, tmp_path):
    options = {}
    if cls is DistillationLoss:
        train(CRFLoss(), data)[0].save(tmp_path)
        options = {"teacher": Teacher(str(tmp_path))}
    _, (first, second) = train(cls(**OPTIONS.get(cls.__name__, {})), data, **options)
    assert second < first


class SmallGapLoss(PairwiseLoss):
    @staticmethod
    def should_update(gap, threshold):
        return gap < threshold


def tagger_of(criterion, scorer=None, **options):
    return Tagger(FeatureExtractor(["w[0]"]), scorer or SparseLinear(), criterion, **options)


def encoder_of(**options):
    return Transformer("folder", **options)  # loaded when training begins


@pytest.mark.parametrize(
    ("criterion", "nonlocal_features", "k"),
    [
        (CRFLoss(), [], 1),
        (PerceptronLoss(), [], 1),
        (MarginLoss(C=1.0), [], 2),
        (MCELoss(), [], 2),
        (NBestRiskLoss(), [], 20),
        (MarginLoss(C=1.0), [MajorityPhrase()], 20),
    ],
)
def test_candidates_of_the_search(criterion, nonlocal_features, k):
    assert tagger_of(criterion, nonlocal_features=nonlocal_features).search.k == k


@pytest.mark.parametrize(
    ("criterion", "scorer", "kind"),
    [
        (SmallGapLoss(), SparseLinear(), Perceptron),
        (HingeLoss(), VectorLinear(FrozenVectors(encoder_of(), width=None)), PassiveAggressive),
        (CRFLoss(), SparseLinear(), LazyAdamW),
        (HingeLoss(), Neural(BiLSTM([WordEmbedding()])), LazyAdamW),
        (HingeLoss(), Sum([SparseLinear(), Neural(BiLSTM([WordEmbedding()]), False)]), LazyAdamW),
    ],
)
def test_optimizer(criterion, scorer, kind):
    optimizer = tagger_of(criterion, scorer).optimizer([torch.nn.Parameter(torch.zeros(1))])
    assert type(optimizer) is kind


@pytest.mark.parametrize(
    ("scorer", "names"),
    [
        (Neural(encoder_of()), ["scorer.encoder"]),
        (Sum([SparseLinear(), Neural(encoder_of(), False)]), ["scorer.scorers.1.encoder"]),
        (Neural(encoder_of(frozen=True)), []),
        (Neural(BiLSTM([FrozenVectors(encoder_of())])), []),
    ],
)
def test_rates_of_pretrained_encoders(scorer, names):
    groups = tagger_of(CRFLoss(), scorer).parameter_groups
    assert ([] if groups is None else list(groups.rates)) == names


def test_given_optimizers_and_rates_are_kept():
    assert tagger_of(CRFLoss(), Neural(encoder_of()), optimizer=torch.optim.AdamW).parameter_groups is None
    own = ParameterGroups({"scorer": 1e-5})
    assert tagger_of(CRFLoss(), Neural(encoder_of()), parameter_groups=own).parameter_groups is own
