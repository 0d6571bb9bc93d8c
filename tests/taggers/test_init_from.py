"""Training that starts from a saved model: its features, labels and weights, and error_message of what does not fit."""

import pytest
import torch
from datasets import Dataset

from structperc.chain import KBest
from structperc.criteria import CRFLoss, MarginLoss, MCEFLoss
from structperc.data import InMemory
from structperc.data.corpus import factorize
from structperc.encoders import FeatureEmbedding, FrozenVectors, Window, WordEmbedding
from structperc.errors import InputError
from structperc.features import DocumentAttribute, FeatureExtractor
from structperc.nonlocal_features import MajorityPhrase
from structperc.optim.base import TrainingProtocol
from structperc.scorers import Neural, SparseLinear, VectorLinear
from structperc.taggers.initialization import initialize_from
from structperc.taggers.tagger import Tagger
from tests.tiny import EDGE, NODE, Sentences, fit, make_tagger, sentences

DATA = Sentences(sentences(11))
LABELS = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]


class Still(torch.optim.SGD, TrainingProtocol):
    """Steps of length zero."""

    full_batch = True

    def __init__(self, params):
        super().__init__(params, 0.0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A tagger with random weights, and the folder that it is saved in."""
    tagger = make_tagger(Sentences(sentences(11)), CRFLoss(), k=1)
    folder = tmp_path_factory.mktemp("saved") / "model"
    tagger.save(folder)
    return tagger, folder


def blank(criterion=None, node=NODE, edge=(), transitions=True, **options):
    features = FeatureExtractor(node, edge, cutoff=1, progress=False)
    return Tagger(features, SparseLinear(transitions), criterion or MCEFLoss(), KBest(2), **options)


def test_parts_of_the_saved_model(saved):
    given, folder = saved
    tagger = blank()
    initialize_from(tagger, str(folder), DATA)
    assert tagger.features.index.names("node") == given.features.index.names("node")
    assert list(tagger.labels.names) == list(given.labels.names) == LABELS
    for own, other in zip(tagger.named_parameters(), given.named_parameters(), strict=True):
        assert own[0] == other[0]
        assert torch.equal(own[1], other[1])
        assert own[1].requires_grad
    assert type(tagger.criterion) is MCEFLoss
    assert tagger.search.k == 2


@pytest.mark.parametrize("bits", [None, 12])
def test_other_feature_ids(bits, saved, tmp_path):
    given = Tagger(
        FeatureExtractor(NODE, cutoff=1, progress=False, hash_bits=bits), SparseLinear(), MCEFLoss(), KBest(2)
    )
    other = Tagger(FeatureExtractor(NODE, cutoff=1, progress=False, hash_bits=8), SparseLinear(), MCEFLoss(), KBest(2))
    given.build_vocabulary(Sentences(sentences(5)))
    given.save(tmp_path / "model")
    with pytest.raises(InputError, match=rf"features.hash_bits: {bits or 'null'}$"):
        initialize_from(other, str(tmp_path / "model"), DATA)


def test_labels_of_the_saved_model(saved):
    """These three sentences have neither all of its words nor all of its labels."""
    given, folder = saved
    few = Sentences([[("Anna", "B-PER"), ("met", "O")], [("Bo", "B-PER")], [("saw", "O")]])
    tagger = blank(CRFLoss(), init_from=str(folder), optimizer=Still)
    fit(tagger, few, 1)
    assert tagger.features.n_node_features == given.features.n_node_features
    assert list(tagger.labels.names) == LABELS
    assert all(torch.equal(a, b) for a, b in zip(tagger.parameters(), given.parameters(), strict=True))
    assert tagger.unit == "sentence"


def named_weights(tagger):
    """Each weight that is not zero, by the names of features and labels."""
    names, L = tagger.labels.names, len(tagger.labels)
    tables = [("transition", list(names), names, tagger.scorer.transition)]
    tables.append(("node", tagger.features.index.names("node"), names, tagger.scorer.node))
    if tagger.scorer.edge is not None:
        pairs = [f"{names[i // L]} {names[i % L]}" for i in range(L * L)]
        tables.append(("edge", tagger.features.index.names("edge"), pairs, tagger.scorer.edge))
    return {
        (kind, row, column): value
        for kind, rows, columns, table in tables
        for row, own in zip(rows, table.tolist(), strict=True)
        for column, value in zip(columns, own, strict=True)
        if value
    }


@pytest.mark.parametrize("bits", [None, 16])
@pytest.mark.parametrize("edge", [(), EDGE])
def test_new_features_and_labels(bits, edge, tmp_path):
    """Weights are kept by name, others are zero, and label sequences of the saved model keep their scores."""
    old = Sentences(sentences(5))
    given = Tagger(FeatureExtractor(NODE, edge, cutoff=1, hash_bits=bits), SparseLinear(), CRFLoss(), KBest(2))
    given.build_vocabulary(old)
    torch.manual_seed(0)
    for p in given.parameters():
        torch.nn.init.normal_(p)
    given.save(tmp_path / "model")
    new = [*sentences(9, seed=1), [("Acme", "B-COMP"), ("Bo", "I-COMP"), ("grew", "O")]]
    tagger = Tagger(FeatureExtractor(NODE, edge, cutoff=1, hash_bits=bits), SparseLinear(), CRFLoss(), KBest(2))
    initialize_from(tagger, str(tmp_path / "model"), Sentences(new))
    assert named_weights(tagger) == named_weights(given)
    fresh = FeatureExtractor(NODE, edge, cutoff=1, hash_bits=bits)
    fresh.fit(Sentences(new).corpus("train"))
    for kind in ("node", "edge") if edge else ("node",):
        both = {*fresh.index.names(kind), *given.features.index.names(kind)}
        assert set(tagger.features.index.names(kind)) == both
    assert tagger.labels.names == (*LABELS, "B-COMP", "I-COMP")
    (before,), (after,) = (one.batches(old.corpus("train")) for one in (given, tagger))
    first, second = given.scorer(before), tagger.scorer(after)
    torch.testing.assert_close(second.unary[:, :, :5], first.unary)
    torch.testing.assert_close(second.edge[:, :, :5, :5], first.edge)


def test_weights_after_those_of_features(tmp_path):
    """Features listed in the data, and the components of vectors, which come last."""

    def make():
        vectors = FrozenVectors(Window([WordEmbedding(width=2)], window_size=1), width=None)
        features = FeatureExtractor(["w[0]"], cutoff=1, weighted_column="f")
        return Tagger(features, VectorLinear(vectors), CRFLoss(), KBest(1), torch.optim.SGD)

    old, new = (
        InMemory(
            {"train": Dataset.from_dict({"tokens": [[w]], "f": [[f"x\t{w}"]], "labels": [["O"]]})},
            {"word": "tokens", "f": "f", "label": "labels"},
        )
        for w in ("b", "a")
    )
    given, tagger = make(), make()
    given.build_vocabulary(old)
    torch.nn.init.normal_(given.scorer.node)
    given.save(tmp_path / "model")
    initialize_from(tagger, str(tmp_path / "model"), new)
    assert tagger.features.index.names("node") == ["w[0]=b", "w[0]=a", "x", "b", "a"]
    assert torch.equal(tagger.scorer.node[[0, 2, 3, *range(5, 11)]], given.scorer.node)
    assert not tagger.scorer.node[[1, 4]].any()


def test_new_labels_of_an_encoder_and_of_nonlocal_features(tmp_path):
    def make():
        scorer = Neural(Window([WordEmbedding(width=2), FeatureEmbedding(width=1)], window_size=1))
        return Tagger(
            FeatureExtractor(["w[0]"], cutoff=1),
            scorer,
            MarginLoss(C=1.0),
            KBest(2),
            nonlocal_features=[MajorityPhrase()],
        )

    given, tagger = make(), make()
    given.build_vocabulary(Sentences([[("Bo", "B-PER"), ("left", "O")]]))
    torch.nn.init.normal_(given.nonlocal_features[0].weight)
    given.save(tmp_path / "model")
    initialize_from(tagger, str(tmp_path / "model"), Sentences([[("Anna", "B-COMP"), ("left", "O")]]))
    assert tagger.labels.names == ("O", "B-PER", "I-PER", "B-COMP", "I-COMP")
    assert torch.equal(tagger.scorer.head.weight[:3], given.scorer.head.weight)
    assert not tagger.scorer.head.weight[3:].any()
    own, known = (
        dict(zip(one.nonlocal_features[0].names(one.labels.type_names), one.nonlocal_features[0].weight, strict=True))
        for one in (given, tagger)
    )
    assert {name: value for name, value in known.items() if value} == own
    rows = [tagger.features.index.names("node").index(name) for name in given.features.index.names("node")]
    tables = [[p for name, p in one.named_parameters() if name.endswith("table")][-1] for one in (given, tagger)]
    assert torch.equal(tables[1][rows], tables[0])


def test_documents_from_a_model_of_sentences(tmp_path):
    given = make_tagger(Sentences(sentences(11)), CRFLoss(), k=1)
    given.features.within = "sentence"
    given.save(tmp_path / "model")
    tagger = blank()
    tagger.unit = "document"
    initialize_from(tagger, str(tmp_path / "model"), DATA)
    assert tagger.features.within == "sentence"
    assert torch.equal(tagger.scorer.node, given.scorer.node)


class Length(DocumentAttribute):
    """The number of tokens, as an attribute of one's own."""

    def transform(self, corpus, lookup):
        return factorize([str(corpus.tokens)] * corpus.tokens)


def test_own_attributes(tmp_path):
    data = Sentences(sentences(11))
    given = make_tagger(data, CRFLoss(), k=1)
    given.features = FeatureExtractor([*NODE, "long[0]"], cutoff=1, documents={"long": Length()}, progress=False)
    given.features.fit(data.corpus("train"))
    given.allocate(given.labels)
    given.save(tmp_path / "model")
    tagger = blank()
    tagger.features = FeatureExtractor([*NODE, "long[0]"], cutoff=1, documents={"long": Length()}, progress=False)
    initialize_from(tagger, str(tmp_path / "model"), DATA)
    assert type(tagger.features.documents["long"]) is Length


def test_additional_weights_are_zero(saved):
    tagger = blank(MarginLoss(C=1.0), nonlocal_features=[MajorityPhrase()])
    initialize_from(tagger, str(saved[1]), DATA)
    own = dict(tagger.named_parameters())
    rest = own.keys() - dict(saved[0].named_parameters()).keys()
    assert rest
    assert not any(own[name].any() for name in rest)
    assert torch.equal(tagger.scorer.node, saved[0].scorer.node)


def test_a_model_without_transitions(tmp_path):
    given = make_tagger(Sentences(sentences(11)), CRFLoss(), k=1)
    local = blank(CRFLoss(), transitions=False)
    local.features = given.features
    local.allocate(given.labels)
    local.save(tmp_path / "local")
    tagger = blank()
    initialize_from(tagger, str(tmp_path / "local"), DATA)
    assert not tagger.scorer.transition.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"node": [{"of": ["w"], "at": [0]}]}, "node templates"),
        ({"edge": ["bias"]}, "edge templates"),
        ({"transitions": False}, "scorer.transition"),
    ],
)
def test_mismatched_models(saved, options, message):
    with pytest.raises(InputError, match=f"^model.init_from: {saved[1]} .*{message}"):
        initialize_from(blank(**options), str(saved[1]), DATA)


def test_documents_after_sentences_without_templates(tmp_path):
    def neural():
        return Tagger(None, Neural(Window([WordEmbedding(2)], 2)), CRFLoss(), KBest(1), torch.optim.SGD)

    given, tagger = neural(), neural()
    given.build_vocabulary(DATA)
    given.save(tmp_path / "model")
    tagger.unit = "document"
    initialize_from(tagger, str(tmp_path / "model"), DATA)
    assert all(torch.equal(a, b) for a, b in zip(tagger.parameters(), given.parameters(), strict=True))


def test_a_model_of_another_unit(saved):
    tagger = blank()
    tagger.unit = "document"
    with pytest.raises(InputError, match=r"^model.init_from: .*data.unit: sentence$"):
        initialize_from(tagger, str(saved[1]), DATA)


def test_a_model_of_another_scheme(saved):
    with pytest.raises(InputError, match=r"^model.init_from: .*IOB2 .*data.scheme"):
        initialize_from(blank(), str(saved[1]), Sentences(sentences(11), scheme="IOBES"))


def test_a_folder_without_a_model(tmp_path):
    with pytest.raises(InputError, match=f"^model.init_from: {tmp_path}: "):
        initialize_from(blank(), str(tmp_path), DATA)


def test_fitted_tagger(saved):
    """As when it is trained on: its weights are what it has."""
    data = Sentences(sentences(5))
    tagger = make_tagger(data, CRFLoss(), Still, init_from=str(saved[1]), seed=7)
    before = [p.clone() for p in tagger.parameters()]
    fit(tagger, data, 1)
    assert all(torch.equal(a, b) for a, b in zip(tagger.parameters(), before, strict=True))
