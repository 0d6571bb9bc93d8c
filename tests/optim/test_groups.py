"""ParameterGroups: which parameter has which rate and decay, with transformers of several families."""

from functools import partial

import pytest
import torch
from transformers import AutoModel, BertConfig, DebertaConfig, DistilBertConfig
from transformers.models.xlm.configuration_xlm import XLMConfig

from structperc.encoders import Transformer
from structperc.errors import InputError
from structperc.optim import GPD, Averaging, ParameterGroups, PassiveAggressive, WarmupDecay
from structperc.scorers import Neural, SparseLinear, Sum
from tests.encoders.test_transformer_training import data
from tests.encoders.tiny_models import SIZES, save_bert

SMALL = {"vocab_size": 50, "max_position_embeddings": 16}
FAMILIES = {  # configuration, and the first parts of names of the embeddings and of layer number i
    "bert": (BertConfig(**SMALL, **SIZES), "embeddings", "encoder.layer.{}."),
    "deberta": (
        DebertaConfig(relative_attention=True, pos_att_type=["c2p", "p2c"], **SMALL, **SIZES),
        "e",  # embeddings and encoder.rel_embeddings
        "encoder.layer.{}.",
    ),
    "distilbert": (
        DistilBertConfig(dim=16, n_layers=2, n_heads=2, hidden_dim=32, **SMALL),
        "embeddings",
        "transformer.layer.{}.",
    ),
}


def options_by_name(module, groups):
    """(learning rate, weight decay) of each parameter, None if a group does not set it."""
    by_parameter = {p: (g.get("lr"), g.get("weight_decay")) for g in groups for p in g["params"]}
    return {name: by_parameter[p] for name, p in module.named_parameters()}


@pytest.mark.parametrize("family", FAMILIES)
def test_layer_decay(family):
    config, embeddings, layer = FAMILIES[family]
    model = torch.nn.ModuleDict({"network": AutoModel.from_config(config), "head": torch.nn.Linear(16, 3)})
    groups = ParameterGroups({"network": 1.0, "head": 5.0}, layer_decay=0.5)(model)
    rates = {name: rate for name, (rate, _) in options_by_name(model, groups).items()}
    assert {rate for name, rate in rates.items() if name.startswith("head")} == {5.0}
    for number, expected in enumerate((0.5, 1.0)):
        assert {rates[n] for n in rates if n.startswith(f"network.{layer.format(number)}")} == {expected}
    below = [n for n in rates if n.startswith(f"network.{embeddings}") and "embeddings" in n]
    assert below
    assert {rates[n] for n in below} == {0.25}


def test_layers_in_parallel_lists():
    network = AutoModel.from_config(XLMConfig(emb_dim=16, n_layers=2, n_heads=2, vocab_size=50))
    rates = options_by_name(network, ParameterGroups({"": 1.0}, layer_decay=0.5)(network))
    assert rates["ffns.0.lin1.weight"][0] == rates["attentions.0.q_lin.weight"][0] == 0.5
    assert rates["embeddings.weight"][0] == 0.25


def test_longest_entry_and_weights_without_decay(tmp_path):
    encoder = Transformer(str(save_bert(tmp_path / "bert")))
    scorer = Sum([SparseLinear(), Neural(encoder)])
    scorer.build_vocabulary(data().corpus("train"))
    scorer.allocate(4, 0, 3)
    groups = ParameterGroups(
        {"": 0.1, "scorers.1.encoder": 0.2, "scorers.1.encoder.network.embeddings": 0.3},
        {"scorers.1": 0.01, "scorers.1.transition": 0.05},
    )(scorer)
    found = options_by_name(scorer, groups)
    network = "scorers.1.encoder.network."
    assert found["scorers.0.node"] == (0.1, None)
    assert found["scorers.0.transition"] == (0.1, 0.0)
    assert found["scorers.1.transition"] == (0.1, 0.05)
    assert found["scorers.1.head.weight"] == (0.1, 0.01)
    assert found["scorers.1.head.bias"] == (0.1, 0.0)
    assert found[network + "encoder.layer.0.output.dense.weight"] == (0.2, 0.01)
    assert found[network + "embeddings.word_embeddings.weight"] == (0.3, 0.01)
    assert found[network + "embeddings.LayerNorm.weight"] == (0.3, 0.0)
    assert len({p for g in groups for p in g["params"]}) == len(list(scorer.parameters()))
    names, order = ParameterGroups().names(scorer), [p for g in ParameterGroups()(scorer) for p in g["params"]]
    assert all(scorer.get_parameter(name) is p for name, p in zip(names, order, strict=True))


@pytest.mark.parametrize(
    "optimizer", [torch.optim.AdamW, partial(Averaging, optimizer=torch.optim.AdamW), partial(GPD, lr=1, decay_steps=9)]
)
def test_schedule_keeps_ratios(optimizer):
    model = torch.nn.Linear(2, 2)
    made = ParameterGroups({"weight": 0.3, "bias": 0.1}).optimizer(optimizer, model)
    assert [group["lr"] for group in made.param_groups] == [0.3, 0.1]
    schedule = WarmupDecay(made, warmup=0.5)
    schedule.plan(8)
    model(torch.ones(1, 2)).sum().backward()
    for step in range(8):
        assert [group["lr"] for group in made.param_groups] == pytest.approx(
            [0.3 * schedule.factor(step), 0.1 * schedule.factor(step)]
        )
        made.step()
        schedule.step()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda m: ParameterGroups({"a": -1.0}), "rates"),
        (lambda m: ParameterGroups(decay={"a": -1.0}), "decay"),
        (lambda m: ParameterGroups(layer_decay=0.0), "layer_decay"),
        (lambda m: ParameterGroups({"scorer": 1.0})(m), "weight, bias"),
        (lambda m: ParameterGroups({"": 1.0}, layer_decay=0.9)(m), "layer_decay"),
        (lambda m: ParameterGroups({"": 1.0}).optimizer(PassiveAggressive, m), "PassiveAggressive .*lr"),
    ],
)
def test_invalid_options(make, named):
    with pytest.raises(InputError, match=named):
        make(torch.nn.Linear(2, 2))
