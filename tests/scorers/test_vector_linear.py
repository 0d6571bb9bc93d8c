"""Linear scores of frozen vectors as features: values, learning, saved taggers."""

from functools import partial

import pytest
import pytorch_lightning as pl
import torch

import structperc
from structperc import FeatureExtractor
from structperc.chain import KBest
from structperc.criteria import HingeLoss
from structperc.datamodules import Synthetic
from structperc.encoders import FrozenVectors, Window, WordEmbedding
from structperc.errors import InputError
from structperc.models.saving import prune
from structperc.optim import PassiveAggressive
from structperc.ragged import Ragged
from structperc.scorers import SparseLinear, VectorLinear
from structperc.taggers import Tagger, sequential_learning
from structperc.taggers.learning import GradientTraining
from structperc.taggers.sequential_learning import FeatureAddingLearner


def vectors(width: int | None = None) -> FrozenVectors:
    torch.manual_seed(1)
    return FrozenVectors(Window([WordEmbedding(width=4, word_dropout=0.0)], window_size=1), width=width)


def trained(batch_size: int) -> Tagger:
    optimizer = partial(PassiveAggressive, variant="PA-I", C=0.1)
    scorer = VectorLinear(vectors(), length=2.0)
    tagger = Tagger(FeatureExtractor(["w[0]"]), scorer, HingeLoss(cost=1.0), KBest(1), optimizer)
    data = Synthetic(train=12, dev=0, test=0, unit="sentence", batch_size=batch_size, shuffle=False)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    pl.Trainer(max_epochs=2, enable_model_summary=False, **quiet).fit(tagger, datamodule=data)
    return tagger


@pytest.fixture(scope="module")
def tagger() -> Tagger:
    return trained(batch_size=100)


def test_scores_are_those_of_features_and_vectors(tagger):
    data = Synthetic(train=12, dev=0, test=0, unit="sentence")
    batch = next(tagger.batches(data.corpus("train")))
    unary = tagger.scorer(batch).unary
    F = tagger.features.n_node_features
    plain = SparseLinear()
    plain.node, plain.edge, plain.transition = torch.nn.Parameter(tagger.scorer.node[:F]), None, None
    own = torch.nn.functional.normalize(tagger.scorer.vectors(batch.inputs[0])) * 2.0 @ tagger.scorer.node[F:]
    places = torch.arange(unary.shape[1]) < batch.lengths[:, None]
    torch.testing.assert_close(unary[places], plain(batch).unary[places] + own)


def test_learning_one_sequence_at_a_time(tagger, monkeypatch):
    assert isinstance(tagger.training_method.learner, FeatureAddingLearner)
    monkeypatch.setattr(sequential_learning, "COMPONENTS", 200)
    in_parts = trained(batch_size=100)
    monkeypatch.setattr("structperc.taggers.tagger.sequence_learner", lambda *parts: None)
    by_gradients = trained(batch_size=1)
    assert isinstance(by_gradients.training_method, GradientTraining)
    for one in (in_parts, by_gradients):
        torch.testing.assert_close(one.scorer.node, tagger.scorer.node)


def test_saved_taggers(tagger, tmp_path):
    tagger.save(tmp_path / "model")
    sentences = [["Shares", "of", "Penus", "Corp.", "fell"]]
    assert structperc.load(tmp_path / "model").tag(sentences) == tagger.tag(sentences)
    with pytest.raises(InputError, match="VectorLinear cannot be pruned"):
        prune(tagger)


def test_values_of_listed_features_stay(tagger):
    nodes = Ragged.from_counts(torch.tensor([1, 0], dtype=torch.int32), torch.tensor([1, 1]))
    nodes = nodes._replace(offsets=nodes.offsets.int(), weights=torch.tensor([0.5, 2.0]))
    batch = next(tagger.batches(Synthetic(train=12, dev=0, test=0, unit="sentence").corpus("train")))
    inputs = (batch.inputs[0].slice(0, 2),)
    found = tagger.scorer.add_features(batch._replace(nodes=nodes, inputs=inputs)).nodes
    assert found.counts.tolist() == [13, 13]
    assert found.weights[[0, 13]].tolist() == [0.5, 2.0]
    assert found.ids[[0, 13]].tolist() == [1, 0]


@pytest.mark.parametrize("wrong", [{"vectors": vectors(width=3)}, {"vectors": vectors(), "length": 0.0}])
def test_invalid_options(wrong):
    with pytest.raises(InputError, match="VectorLinear: "):
        VectorLinear(**wrong)
