"""Neural taggers: every kind of criterion, saved models, optimizers, lists."""

import copy

import pytest
import torch
from torch import nn

from structperc.chain import KBest, viterbi
from structperc.criteria import CRFLoss, LocalAndNonlocal, MarginLoss, MCEFLoss, TokenCrossEntropyLoss
from structperc.data.corpus import Corpus
from structperc.encoders import BiLSTM, CharCNN, WordEmbedding
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import PhraseConsistency
from structperc.scorers import Neural, SparseLinear, Sum
from structperc.taggers.tagger import Tagger
from tests.tiny import Sentences, sentences

MADE = sentences(12, seed=3)


def bilstm(dropout=0.0):
    return BiLSTM([WordEmbedding(6, cutoff=1), CharCNN(5, characters=4)], hidden=8, dropout=dropout)


def data(**options):
    return Sentences(MADE, **options)


def neural_tagger(criterion, *, scorer=None, k=2, seed=0, scheme="IOB2", **options):
    """A tagger with random weights, fitted to the sentences."""
    torch.manual_seed(seed)
    tagger = Tagger(None, scorer or Neural(bilstm()), criterion, KBest(k), torch.optim.Adam, **options)
    source = data(scheme=scheme)
    tagger.build_vocabulary(source)
    for p in tagger.parameters():
        nn.init.normal_(p, std=0.3)
    return tagger.eval()


def batch(tagger, rows=None):
    corpus = data().corpus("train")
    return tagger.encode(corpus)[list(range(len(corpus))) if rows is None else rows]


CRITERIA = [CRFLoss(), TokenCrossEntropyLoss(), MarginLoss(1.0), MCEFLoss()]


def objective(criterion, scored):
    """What steps lower; the losses of MCE-F are made for their gradient."""
    if isinstance(criterion, MCEFLoss):
        return float(criterion.objective(criterion.counts(scored).double().sum(0)))
    return float(criterion(scored).sum())


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda criterion: type(criterion).__name__)
def test_gradient_steps_lower_the_loss(criterion):
    tagger = neural_tagger(copy.deepcopy(criterion))
    optimizer, given = torch.optim.SGD(tagger.parameters(), lr=1e-4), batch(tagger)
    losses = []
    for _ in range(2):
        scored = tagger.score_batch(given)
        losses.append(objective(tagger.criterion, scored))
        optimizer.zero_grad()
        tagger.criterion(scored).sum().backward()
        optimizer.step()
    squares = sum(float(p.grad.square().sum()) for p in tagger.parameters() if p.grad is not None)
    assert squares > 0
    assert losses[1] < losses[0]


def test_decoding_is_independent_of_the_batch():
    tagger = neural_tagger(CRFLoss())
    _, whole = viterbi(tagger(batch(tagger)))
    for row in range(len(MADE)):
        _, alone = viterbi(tagger(batch(tagger, [row])))
        assert torch.equal(alone[0], whole[row, : alone.shape[1]])


@pytest.mark.parametrize("sparse", [False, True])
def test_saved_models_label_as_before(tmp_path, sparse):
    scorer = Sum([SparseLinear(sparse_grad=False), Neural(bilstm(0.5), transitions=False)]) if sparse else None
    features = FeatureExtractor(["bias"], progress=False) if sparse else None
    tagger = Tagger(features, scorer or Neural(bilstm(0.5)), CRFLoss(), KBest(1), torch.optim.Adam)
    tagger.build_vocabulary(data())
    for p in tagger.parameters():
        nn.init.normal_(p)
    tagger.eval().save(tmp_path / "model")
    again = Tagger.load(tmp_path / "model")
    texts = [["Anna", "Zora", "met"], ["Rome"], ["unbekannt", "in", "Paris", "saw"]]
    assert again.tag(texts) == tagger.tag(texts)
    given = batch(tagger)
    torch.testing.assert_close(again(given).unary, tagger(given).unary, rtol=0, atol=0)
    torch.testing.assert_close(again.marginals(texts)[0], tagger.marginals(texts)[0], rtol=0, atol=0)


def test_init_from_a_neural_model(tmp_path):
    saved = neural_tagger(CRFLoss())
    saved.save(tmp_path / "model")
    tagger = Tagger(None, Neural(bilstm()), MCEFLoss(), KBest(2), torch.optim.Adam, init_from=str(tmp_path / "model"))
    tagger.unit = "sentence"
    tagger.build_vocabulary(data())
    given = batch(saved)
    torch.testing.assert_close(tagger.eval()(given).unary, saved(given).unary, rtol=0, atol=0)


def test_nonlocal_features_of_neural_candidates():
    tagger = neural_tagger(LocalAndNonlocal(1.0), k=4, nonlocal_features=[PhraseConsistency()], decoder=KBest(60))
    with torch.no_grad():
        tagger.nonlocal_features[0].weight.fill_(30)
    documents = [0] * 6 + [1] * 6
    corpus = Corpus.from_sentences([{"word": [w for w, _ in s]} for s in MADE], documents, "document")
    given = tagger.encode(corpus)[[0, 1]]
    lattice = tagger(given)
    found = tagger.decoder(lattice)
    totals = found.scores + tagger.candidate_scorer.nonlocal_scores(given, found.labels, found.valid)
    best = found.labels[torch.arange(len(totals)), totals.argmax(1)]
    assert torch.equal(tagger.decode(given), best)
    assert totals.argmax(1).any()


def test_softmax_head():
    tagger = neural_tagger(TokenCrossEntropyLoss(), scorer=Neural(bilstm(), transitions=False), k=1)
    given = batch(tagger)
    scores = tagger.scorer(given).unary.clone()
    scores[:, 0, [i for i, name in enumerate(tagger.labels.names) if name.startswith("I-")]] = -torch.inf
    real = torch.arange(scores.shape[1]) < given.lengths[:, None]
    assert torch.equal(tagger.decode(given), scores.argmax(2).where(real, 0))
