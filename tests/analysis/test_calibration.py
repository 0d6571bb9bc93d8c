"""structperc reliability: confidences of whole models against the sum over all labellings, and the command."""

import csv
from functools import partial

import pytest
import torch

from structperc.analysis.abstention import abstention
from structperc.analysis.calibration import reliability
from structperc.chain import KBest
from structperc.criteria import CRFLoss, PerceptronLoss
from structperc.data.conll import write_conll
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.synthetic import synthetic_corpus
from structperc.data.tag_schemes import spans
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import PhraseConsistency
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger
from tests.oracle import probabilities

SHORT = [
    (["Anna", "sleeps"], ["B-P", "O"]),
    (["Rome", "waits", "for", "Anna"], ["B-L", "O", "O", "B-P"]),
    (["New", "Rome"], ["B-L", "I-L"]),
    (["Rome"], ["B-P"]),
]


def made(corpus, criterion, scheme="IOB2", more=(), scale=1.0):
    """A tagger with random weights."""
    features = FeatureExtractor(["w[0]"], cutoff=1)
    features.fit(corpus)
    tagger = Tagger(features, SparseLinear(sparse_grad=False), criterion, KBest(1), nonlocal_features=more)
    tagger.allocate(LabelSet.from_corpus(corpus.columns["label"], scheme))
    torch.manual_seed(4)
    for parameter in tagger.scorer.parameters():
        torch.nn.init.normal_(parameter, std=scale)
    return tagger.eval()


@pytest.fixture(scope="module")
def short():
    return Corpus.from_sentences([{"word": words, "label": labels} for words, labels in SHORT])


def by_hand(tagger, corpus):
    """[(confidence, right)] of all predicted tokens, of all predicted segments; each sequence enumerated."""
    tokens, segments = [], []
    for batch in tagger.batches(corpus, batch_size=1):
        with torch.no_grad():
            lattice = tagger(batch)
        whole = [(p, tagger.labels.decode(y)) for p, y in probabilities(lattice, 0)]
        (_, best), start = whole[0], corpus.starts[int(batch.rows)]
        gold = corpus.columns["label"][start : start + len(best)]
        for t, label in enumerate(best):
            tokens.append((sum(p for p, y in whole if y[t] == label), label == gold[t]))
        for span in spans(best):
            segments.append((sum(p for p, y in whole if span in spans(y)), span in spans(gold)))
    return tokens, segments


def check(result, pairs, bins):
    for m, one in enumerate(result.bins):
        inside = [(c, r) for c, r in pairs if m / bins < c <= (m + 1) / bins]
        assert (one.n, one.correct) == (len(inside), sum(r for _, r in inside))
        assert one.total == pytest.approx(sum(c for c, _ in inside), abs=1e-5)
    assert result.brier == pytest.approx(sum((c - r) ** 2 for c, r in pairs) / len(pairs), abs=1e-6)


@pytest.mark.parametrize(("criterion", "bins"), [(CRFLoss(), 7), (PerceptronLoss(), 1)], ids=["CRF", "perceptron"])
def test_every_confidence_by_enumeration(short, criterion, bins):
    """Of models that were not trained by likelihood, too."""
    tagger = made(short, criterion)
    tokens, segments = by_hand(tagger, short)
    assert len(segments) > 1
    result = reliability(tagger, short, bins, "mine")
    assert result.name == "mine"
    check(result.tokens, tokens, bins)
    check(result.segments, segments, bins)


def test_labels_without_segments():
    corpus = Corpus.from_sentences([{"word": ["a", "b"], "label": ["DT", "NN"]}])
    result = reliability(made(corpus, CRFLoss(), "none"), corpus)
    assert result.segments is None
    assert result.tokens.all.n == 2
    assert [name for name, _ in result.levels] == ["tokens"]


def test_documents_are_cut_at_their_sentences(short):
    """A document's segments do not cross sentences; the model knows only that it must not."""
    whole = Corpus(short.columns, short.sentences[[0, -1]], short.sentences, short.documents[:1])
    tagger = made(short, CRFLoss())
    a, b = reliability(tagger, whole), reliability(tagger, short)
    assert a.tokens.all.n == b.tokens.all.n == 9
    assert a.segments is not None


def test_nonlocal_features_are_refused(short):
    tagger = made(short, PerceptronLoss(), more=[PhraseConsistency()])
    with pytest.raises(InputError, match="non-local features"):
        reliability(tagger, short)


def test_corpus_without_gold(short):
    bare = Corpus({"word": short.columns["word"]}, short.starts, short.sentences, short.documents)
    with pytest.raises(InputError, match="gold"):
        reliability(made(short, CRFLoss()), bare)


@pytest.fixture(scope="module")
def dev():
    corpus = Corpus.from_dataset(synthetic_corpus(3, 9), "sentence")
    columns = {role: corpus.columns[role] for role in ("word", "label")}
    return Corpus(columns, corpus.starts, corpus.sentences, corpus.documents, "dev")


@pytest.fixture(scope="module")
def folder(dev, tmp_path_factory):
    """Models ml/1 and mce/1, and dev.txt."""
    folder = tmp_path_factory.mktemp("reliability")
    made(dev, CRFLoss()).save(folder / "ml" / "1" / "model")
    made(dev, PerceptronLoss(), scale=5.0).save(folder / "mce" / "1" / "model")
    write_conll(folder / "dev.txt", dev)
    return folder


@pytest.fixture
def run(run):
    return partial(run, "evaluate", "--reliability=10")


def test_table_of_several_models(run, folder, dev):
    models = [folder / name / "1" / "model" for name in ("ml", "mce")]
    lines = [line.split() for line in run(*models, folder / "dev.txt", "--reliability", 4).splitlines()]
    assert lines[0] == ["model", "of", "n", "accuracy", "confidence", "ECE", "Brier"]
    found = {tuple(line[:2]): list(map(float, line[2:])) for line in lines[1:5]}
    for model, name in zip(models, ("ml/1", "mce/1"), strict=True):
        for level, result in reliability(Tagger.load(model), dev, 4).levels:
            shares = [result.all.accuracy, result.all.confidence, result.ece, result.brier]
            assert found[name, level] == [result.all.n, *(pytest.approx(100 * s, abs=0.0051) for s in shares)]
    assert sum(line[:1] == ["confidence"] for line in lines) == 4
    assert sum(".." in line for line in lines) == 16


def test_csv_and_plot(run, folder, dev, tmp_path):
    model = folder / "ml" / "1" / "model"
    run(model, folder / "dev.txt", "--csv", tmp_path / "r.csv", "--plot", tmp_path / "r.png")
    with open(tmp_path / "r.csv", newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    wanted = [(level, one) for level, result in reliability(Tagger.load(model), dev).levels for one in result.bins]
    assert len(rows) == len(wanted) == 20
    for row, (level, one) in zip(rows, wanted, strict=True):
        assert (row["model"], row["of"], int(row["n"])) == ("ml/1", level, one.n)
        shares = [one.low, one.high, one.confidence, one.accuracy]
        assert [float(row[name]) for name in ("low", "high", "confidence", "accuracy")] == pytest.approx(shares)
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


def test_abstention_of_a_model(short):
    """Segments dropped by hand: those of the tagger, against the gold ones."""
    tagger = made(short, CRFLoss())
    probabilities, right = zip(*by_hand(tagger, short)[1], strict=True)
    gold = sum(len(spans(labels)) for _, labels in SHORT)
    curve = abstention(tagger, short, points=len(right))
    assert [(one.n, one.correct, one.gold) for one in curve] == [
        (len(kept), sum(kept), gold)
        for one in curve
        if (kept := [good for p, good in zip(probabilities, right, strict=True) if p >= one.probability - 1e-6])
    ]
