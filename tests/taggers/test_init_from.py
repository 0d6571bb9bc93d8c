"""Training that starts from a saved model: its features, labels and weights, and refusal of what does not fit."""

import pytest
import torch

from structperc.chain import KBest
from structperc.criteria import CRFLoss, MarginLoss, MCEFLoss
from structperc.data.corpus import factorize
from structperc.errors import InputError
from structperc.features import DocumentAttribute, FeatureExtractor
from structperc.nonlocal_features import MajorityPhrase
from structperc.optim import TrainingProtocol
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger, initialize_from
from tests.tiny import NODE, Sentences, fit, make_tagger, sentences

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
    assert tagger.features.feature_names("node") == given.features.feature_names("node")
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
    few = Sentences([[("Anna", "B-PER"), ("slept", "O")], [("Bo", "B-PER")], [("rain", "O")]])
    tagger = blank(CRFLoss(), init_from=str(folder), optimizer=Still)
    fit(tagger, few, 1)
    assert tagger.features.n_node_features == given.features.n_node_features
    assert list(tagger.labels.names) == LABELS
    assert all(torch.equal(a, b) for a, b in zip(tagger.parameters(), given.parameters(), strict=True))
    assert tagger.unit == "sentence"


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


def test_labels_unknown_to_the_model(saved):
    with pytest.raises(InputError, match=r"sentences, sentence 1, token 2.*B-ORG"):
        fit(blank(CRFLoss(), init_from=str(saved[1])), Sentences([[("in", "O"), ("ACME", "B-ORG")]]), 1)


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
