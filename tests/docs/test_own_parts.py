"""The parts of one's own that docs/how_to/add_a_part.md and own_models.md show do what they say."""

import pytest
import torch
from torch import nn

from structperc import Corpus, FeatureExtractor, LabelSet, Lattice, Tagger, load
from structperc.chain import path_score
from structperc.criteria import CRFLoss
from structperc.datamodules.encoded import EncodedCorpus
from structperc.encoders import WordEmbedding
from structperc.errors import InputError
from structperc.nonlocal_features import CandidateSegments
from structperc.structures import Candidates, Scored
from tests import oracle
from tests.docs.written import QUICKSTART, blocks
from tests.tiny import without_names

PAGE, MODELS = "how_to/add_a_part", "how_to/own_models"


@pytest.mark.parametrize("gamma", [0.0, 2.0])
def test_formula_of_own_criterion(gamma, ran):
    lattice = Lattice(torch.randn(4, 4, 3).double(), torch.randn(4, 4, 3, 3).double(), torch.tensor([4, 1, 2, 3]))
    criterion, gold = ran(PAGE)["FocalLikelihood"](gamma), torch.randint(3, (4, 4))
    unary = lattice.unary.requires_grad_()
    own, none = path_score(lattice, gold), torch.zeros(4, 0).double()
    candidates = Candidates(torch.zeros(4, 0, 4).long(), none, none.bool())
    scored = Scored(lattice, gold, candidates, own, none, torch.zeros_like(own), none)
    losses = criterion(scored)
    for row, loss in enumerate(losses.tolist()):
        p = (own[row].detach() - oracle.log_partition(lattice, row)).exp()
        assert loss == pytest.approx(float(-((1 - p) ** gamma) * p.log()))
    if gamma == 0:
        torch.testing.assert_close(losses, CRFLoss()(scored))
    (gradient,) = torch.autograd.grad(losses.sum(), unary)
    assert gradient.any()
    assert (gradient.sum(2).abs() < 1e-9).all()  # a constant added to all labels of a token changes nothing


def test_own_encoder_ignores_the_batch(ran):
    encoder = ran(MODELS)["Convolution"]([WordEmbedding(5, cutoff=1)], width=7, window=3).eval()
    words = [["Anna", "met", "Bo"], ["Bo"], ["met", "Anna", "met", "Anna"]]
    corpus = Corpus.from_sentences([{"word": sentence} for sentence in words])
    encoder.build_vocabulary(corpus)
    features = FeatureExtractor(progress=False)
    features.fit(corpus)
    encoded = EncodedCorpus(corpus, features, LabelSet(("O",), "none"), encoder.encode_inputs(corpus))
    whole = encoder(encoded[[0, 1, 2]])
    assert whole.shape == (3, 4, 7)
    assert encoder.width == 7
    for row, sentence in enumerate(words):
        torch.testing.assert_close(whole[row, : len(sentence)], encoder(encoded[[row]])[0])
        assert not whole[row, len(sentence) :].any()
    assert whole[0].any()


def test_own_nonlocal_feature_counts_long_names(ran):
    labels, features = LabelSet(("O", "B-PER", "I-PER"), "IOB2"), FeatureExtractor(progress=False)
    corpus = Corpus.from_sentences([{"word": ["Anna", "Lind", "met", "Bo"]}])
    features.fit(corpus)
    feature = ran(PAGE)["LongNames"](2)
    feature.allocate(labels)
    paths = torch.tensor([[[1, 2, 0, 1], [1, 1, 0, 0]]])
    batch = EncodedCorpus(corpus, features, labels, [])[[0]]
    segments = CandidateSegments(batch, paths, torch.ones(1, 2, dtype=torch.bool), labels)
    assert feature.names(labels.type_names) == ["long(PER)"]
    assert feature.counts(segments).tolist() == [[1], [0]]


def test_own_optimizer_makes_steps_of_one_length(ran):
    kind = ran(MODELS)["Normalised"]
    weights = [nn.Parameter(torch.zeros(2, 2)) for _ in range(2)]
    dense, sparse = (kind([w], lr=2.0) for w in weights)
    for gradient in ([[3.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, -5.0], [0.0, 0.0]]):
        weights[0].grad = torch.tensor(gradient)
        weights[1].grad = weights[0].grad.to_sparse()
        dense.step()
        sparse.step()
    last, average = [[-1.2, 2.0], [0.0, -1.6]], [[-1.2, 2 / 3], [0.0, -1.6]]
    for w, optimizer in zip(weights, (dense, sparse), strict=True):
        torch.testing.assert_close(w.detach(), torch.tensor(last))
        with optimizer.evaluation_weights():
            torch.testing.assert_close(w.detach(), torch.tensor(average))


def test_own_source_is_read_like_any_other(ran):
    sentences = {"word": [["Anna", "met", "Bo"], ["Bo"]], "label": [["B-PER", "O", "I-PER"], ["I-PER"]]}
    data = ran(PAGE)["Lists"]({"train": sentences}, labels="IOB1")
    assert data.corpus("train").columns["label"] == ["B-PER", "O", "B-PER", "B-PER"]
    assert not data.has("dev")
    documents = {**sentences, "document": [7, 7]}
    joined = ran(PAGE)["Lists"]({"train": documents}, unit="document")
    assert joined.corpus("train").lengths.tolist() == [4]


def test_own_parts_learn_and_are_saved(here, structperc_says):
    (overlay,) = blocks(MODELS, "yaml")
    (here / "own.yaml").write_text(overlay, encoding="utf-8")
    small = ["--data.train=20", "--data.dev=8", "--data.test=0", "--trainer.max_epochs=8"]
    structperc_says("fit", "-c", str(QUICKSTART), "-c", "own.yaml", *small)
    metrics = (here / "runs/own/1/logs/version_0/metrics.csv").read_text(encoding="utf-8").splitlines()
    column = metrics[0].split(",").index("train/objective")
    objectives = [float(value) for line in metrics[1:] if (value := line.split(",")[column])]
    assert len(objectives) == 8
    assert objectives[-1] < objectives[0] / 2
    tagger = Tagger.load("runs/own/1/model", trusted=["own"])
    assert type(tagger.scorer.encoder).__module__ == "own"
    assert len(tagger.tag([["Mr.", "Lindal", "left", "."]])[0]) == 4


def test_own_attributes(here, structperc_says):
    (overlay,) = blocks(PAGE, "yaml")
    (here / "attributes.yaml").write_text(overlay, encoding="utf-8")
    small = ["--data.train=20", "--data.dev=4", "--data.test=0", "--trainer.max_epochs=1"]
    structperc_says("fit", "-c", str(QUICKSTART), "-c", "attributes.yaml", *small)
    tagger = load("runs/attributes/1/model", trusted=["own"])
    names = set(tagger.features.index.names("node"))
    assert {"vowels[0]=a", "times[0]=1", "times[0]=2"} <= names
    assert "times[0]=3" not in names
    with pytest.raises(InputError, match="--trust own"):
        load("runs/attributes/1/model")


def test_inference_without_own_criterion(here, structperc_says):
    """Its module is not trusted here, and what it says of probabilities is in the saved model."""
    options = ["--model.criterion=own.FocalLikelihood", "--model.scorer.init_args.sparse_grad=false"]
    adam = ["--model.optimizer=torch.optim.Adam", "--model.optimizer.init_args.lr=0.05"]
    small = ["--data.train=20", "--data.dev=4", "--data.test=0", "--trainer.max_epochs=1"]
    words = "--model.features.init_args.node=[{of: [w], at: [0]}]"
    structperc_says(
        "fit", "-c", str(QUICKSTART), *options, *adam, *small, words, "--trainer.default_root_dir=runs/focal"
    )
    said = structperc_says("tag", "runs/focal/1/model", "new.txt", "--probabilities")
    rows = [line.split() for line in without_names(said).splitlines() if line]
    assert [row[0] for row in rows] == ["Anna", "met", "Bo"]
    assert all(0 < float(row[1]) <= 1 for row in rows)
    assert "own" not in type(load("runs/focal/1/model")).__module__
