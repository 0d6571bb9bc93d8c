"""Weights, averages and states that are saved."""

import copy

import pytest
import torch

from structperc.errors import InputError
from structperc.guided import ContextFeatures, GuidedModel
from structperc.scorers import SparseLinear
from tests.guided.tagged import batch_of, model_of, sentences


def test_a_checkpoint_resumes_to_the_same_bits():
    made = sentences(21, 12, 3)
    first, second = batch_of(made[:6]), batch_of(made[6:])
    through, resumed = (model_of(["shen2007_c"], 3) for _ in range(2))
    through.learn(first)
    resumed.load_state_dict(copy.deepcopy(through.state_dict()))
    resumed.updates.load_state_dict(copy.deepcopy(through.updates.state_dict()))
    through.learn(second)
    resumed.learn(second)
    states = through.state_dict(), resumed.state_dict()
    assert states[0].keys() == {"static.node", "context.table"}
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert through.steps == resumed.steps
    for p, q in zip(through.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(through.sums(p), resumed.sums(q))


def test_labels_and_features_out_of_range():
    """Before anything is read or moved."""
    batch, model = batch_of(sentences(1, 2, 2)), model_of([], 2)
    with pytest.raises(InputError, match=r"label .*0\.\.1"):
        model.learn(batch._replace(gold=batch.gold + 1))
    strange = batch._replace(nodes=batch.nodes._replace(ids=batch.nodes.ids + 9))
    for use in (model.learn, model.decode):
        with pytest.raises(InputError, match=r"feature .*0\.\.11"):
            use(strange)
    assert not any(p.any() for p in model.parameters())


def test_options_are_checked():
    with pytest.raises(InputError, match=r"beam .*0"):
        model_of([], 2, beam=0)
    with pytest.raises(InputError, match=r"order .*easiest, left-to-right.*'right-to-left'"):
        model_of([], 2, order="right-to-left")
    with pytest.raises(InputError, match=r"static\.transitions: false"):
        GuidedModel(SparseLinear(), ContextFeatures([]))


def test_row_of_padding_is_zero():
    model = model_of(["shen2007_c"], 3, size=1)
    model.learn(batch_of(sentences(2, 6, 3)))
    assert not model.context.table[0].any()
    assert model.context.table[-1].any()


def test_weighted_features_are_refused():
    batch, model = batch_of(sentences(1, 2, 2)), model_of([], 2)
    weighted = batch._replace(nodes=batch.nodes._replace(weights=torch.full(batch.nodes.ids.shape, 0.5)))
    for use in (model.learn, model.decode):
        with pytest.raises(InputError, match="feature weights"):
            use(weighted)
