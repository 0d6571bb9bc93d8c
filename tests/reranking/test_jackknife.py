"""Folds by document, lists by models that have not seen what they list, and a cache that survives interruptions."""

import logging
from functools import partial
from shutil import copytree

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from structperc.chain import KBest, kbest, path_score
from structperc.criteria import MarginLoss, MEMMLoss, Prior
from structperc.data.labels import LabelSet
from structperc.datamodules.sources import Synthetic
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.optim import LBFGS, Perceptron
from structperc.reranking import jackknife as module
from structperc.reranking.bayes_point import BayesPoint
from structperc.reranking.candidate_lists import TENSORS, CandidateLists
from structperc.reranking.jackknife import JackKnife, TrainingPart, fold_numbers
from structperc.scorers import SparseLinear
from structperc.taggers.callbacks import EvaluationWeights
from structperc.taggers.tagger import Tagger
from structperc.training.run_callbacks import StopWhenConverged
from tests.rerankers import QUIET
from tests.tiny import fit

FOLDS, N = 2, 4


def make_first(**options):
    """A first model of words alone, quick to train."""
    features = FeatureExtractor([{"of": ["w"], "at": [-1, 0]}, "bias"], ["bias"], cutoff=1, progress=False)
    options = {"criterion": MarginLoss(C=5), "optimizer": Perceptron, **options}
    return Tagger(features, SparseLinear(transitions=False), search=KBest(2), **options)


def make_data(**options):
    return Synthetic(**{"unit": "document", "train": 5, "dev": 2, "test": 2, "batch_size": 2, **options})


def make_plan(tmp_path, **options):
    return JackKnife(**{"folds": FOLDS, "epochs": 2, "cache": str(tmp_path / "cache"), **options})


def assert_same_lists(a, b):
    for name in TENSORS:
        assert torch.equal(getattr(a, name), getattr(b, name)), name


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """First models and lists as they are made without a cache, the folder of the cache that they leave, and the model
    that they are copies of.
    """
    folder, first = tmp_path_factory.mktemp("whole"), make_first()
    return make_plan(folder)(first, make_data(), N, **QUIET), folder / "cache", first


@pytest.fixture
def cached(whole, tmp_path):
    """A plan whose cache has the lists of `whole`."""
    copytree(whole[1], tmp_path / "cache")
    return make_plan(tmp_path)


def files(plan):
    (folder,) = (path for path in module.expand_path(plan.cache).iterdir())
    return {path.name: path for path in folder.iterdir()}


# -- folds ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("documents", "folds", "seed"), [(5, 5, 0), (23, 5, 1)])
def test_folds_partition_the_documents_evenly(documents, folds, seed):
    of = fold_numbers(np.arange(documents) * 3, folds, seed)
    sizes = np.bincount(of, minlength=folds)
    assert sizes.sum() == documents
    assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(of, fold_numbers(np.arange(documents) * 3, folds, seed))


def test_subset():
    corpus = make_data().corpus("train")
    keep = np.random.default_rng(0).random(len(corpus)) < 0.4
    part = corpus.subset(keep)
    texts = [corpus.columns["word"][a:b] for a, b in zip(corpus.starts[:-1], corpus.starts[1:], strict=True)]
    kept = [text for text, k in zip(texts, keep, strict=True) if k]
    assert [part.columns["word"][a:b] for a, b in zip(part.starts[:-1], part.starts[1:], strict=True)] == kept
    assert part.documents.tolist() == corpus.documents[keep].tolist()
    whole = corpus.sentences_of(corpus.columns["word"])
    document_of = [corpus.starts.searchsorted(a, "right") - 1 for a in corpus.sentences[:-1]]
    assert part.sentences_of(part.columns["word"]) == [s for s, d in zip(whole, document_of, strict=True) if keep[d]]
    assert all(len(values) == part.tokens for values in part.columns.values())


# -- lists ----------------------------------------------------------------------------------------------------


def by_hand(first, seen, labels, data):
    """A first model after its training with a plain trainer, and that trainer."""
    first.features.fit(seen)
    first.allocate(labels)
    return first, fit(first, TrainingPart.from_corpus(seen, data), 2)


def assert_listed(listed, tagger, batch, n):
    """The list of one sequence is its n best; candidates of equal scores may stand in any order."""
    lattice = tagger(batch)
    best = kbest(lattice, n)
    torch.testing.assert_close(listed.candidates.scores, best.scores)
    torch.testing.assert_close(path_score(lattice, listed.candidates.labels), best.scores)
    torch.testing.assert_close(listed.gold_scores, path_score(lattice, batch.gold))
    assert len({tuple(path) for path in listed.candidates.labels[0].tolist()}) == n
    assert listed.candidates.valid.all()


def test_lists_are_the_k_best_of_the_fold_models(whole, tmp_path):
    (models, *_), plan, data = whole, make_plan(tmp_path), make_data()
    corpus = data.corpus("train")
    assert models.lists.lengths.tolist() == corpus.lengths.tolist()
    fold_of = fold_numbers(corpus.documents, FOLDS, plan.seed)
    for fold in range(FOLDS):
        seen = corpus.subset(fold_of != fold)
        tagger, trainer = by_hand(make_first(), seen, models.tagger.labels, data)
        with trainer.optimizers[0].evaluation_weights(), torch.no_grad():
            for row in np.flatnonzero(fold_of == fold):
                listed = models.lists.batch(torch.tensor([row]))
                assert_listed(listed, tagger, tagger.encode(corpus)[[row]], N)


def test_first_models_list_unseen_documents(tmp_path, monkeypatch):
    """A word that only one document has is no feature of the model that lists this document."""
    data = make_data()
    corpus = data.corpus("train")
    words = list(corpus.columns["word"])
    for row, start in enumerate(corpus.starts[:-1]):
        words[start] = f"only{row}"
    data = TrainingPart.from_corpus(corpus.replace_column("word", words), data)
    listed = []
    list_candidates = module.list_candidates
    monkeypatch.setattr(
        module, "list_candidates", lambda t, held, n: (listed.append((t, held)), list_candidates(t, held, n))[1]
    )
    models = make_plan(tmp_path)(make_first(), data, N, **QUIET)
    rows = []
    for tagger, held in listed:
        known = {name for name in tagger.features.index.names("node") if name.startswith("w[0]=only")}
        own = {f"w[0]={word}" for word in held.columns["word"] if word.startswith("only")}
        assert own
        assert len(own) + len(known) == len(corpus)
        assert not own & known
        rows += own
    assert len(rows) == len(set(rows)) == len(corpus)
    final = set(models.tagger.features.index.names("node"))
    assert {f"w[0]=only{row}" for row in range(len(corpus))} <= final


def test_final_first_model(whole):
    (models, *_), data = whole, make_data()
    tagger, trainer = by_hand(make_first(), data.corpus("train"), models.tagger.labels, data)
    assert torch.equal(models.tagger.scorer.node, tagger.scorer.node)
    assert torch.equal(models.tagger.scorer.edge, tagger.scorer.edge)
    trainer.optimizers[0].use_training_weights()
    assert not torch.equal(models.tagger.scorer.node, tagger.scorer.node)


def test_prior_and_batches_of_first_models(tmp_path):
    data = make_data(shuffle=False, train=3)
    norms = []
    for C in (0.01, 100):
        options = {"criterion": MEMMLoss(), "prior": Prior(C), "optimizer": LBFGS}
        models = make_plan(tmp_path, epochs=4)(make_first(**options), data, N, **QUIET)
        norms.append(float(models.tagger.scorer.node.norm()))
        assert models.lists.scores[models.lists.valid].max() <= 0  # log-probabilities
    assert 0 < norms[0] < 0.5 * norms[1]
    assert not TrainingPart.from_corpus(data.corpus("train"), data).shuffle


def test_labels_missing_from_a_fold(tmp_path):
    data = make_data(train=3)
    corpus = data.corpus("train")
    labels = list(corpus.columns["label"])
    labels[0] = "B-RARE"
    data = TrainingPart.from_corpus(corpus.replace_column("label", labels), data)
    models = make_plan(tmp_path, epochs=1)(make_first(), data, N, **QUIET)
    assert "B-RARE" in models.tagger.labels.names
    assert models.lists.gold_scores.isfinite().all()
    assert int(models.lists.labels.max()) < len(models.tagger.labels)


def test_callbacks_are_copied_for_each_training(tmp_path):
    seen = []

    class Watch(pl.Callback):
        def __init__(self):
            self.epochs = 0

        def on_train_epoch_end(self, trainer, pl_module):
            assert any(isinstance(callback, EvaluationWeights) for callback in trainer.callbacks)
            self.epochs += 1
            seen.append(self.epochs)

    watch = Watch()
    plan = make_plan(tmp_path, callbacks=[watch, StopWhenConverged(patience=1)])
    plan(make_first(), make_data(train=3), N, **QUIET)
    assert seen == [1, 2] * (FOLDS + 1)
    assert watch.epochs == 0


def test_trainings_start_from_their_bayes_point(whole, cached, tmp_path):
    plain = whole[0]
    started = make_plan(tmp_path, callbacks=[BayesPoint(passes=1)])(make_first(), make_data(), N, **QUIET)
    assert not torch.equal(plain.tagger.scorer.node, started.tagger.scorer.node)
    assert len(list((tmp_path / "cache").iterdir())) == 2


# -- the cache ------------------------------------------------------------------------------------------------


def test_lists_are_taken_from_the_cache(whole, cached, trainings, caplog):
    made = whole[0]
    with caplog.at_level(logging.INFO, "pytorch_lightning.structperc"):
        taken = cached(make_first(), make_data(), N, **QUIET)
    assert not trainings
    assert caplog.text.count("loaded from") == FOLDS + 1
    assert_same_lists(taken.lists, made.lists)
    assert torch.equal(taken.tagger.scorer.node, made.tagger.scorer.node)
    assert taken.tagger.vocabulary() == made.tagger.vocabulary()
    assert taken.seconds == made.seconds
    assert min(made.seconds.values()) > 0


CHANGES = {
    "n": (partial(make_plan), {}, {}, N + 1),
    "folds": (partial(make_plan, folds=3), {}, {}, N),
    "criterion": (make_plan, {"criterion": MarginLoss(C=6)}, {}, N),
    "optimizer": (make_plan, {"optimizer": partial(Perceptron, average=False)}, {}, N),
    "prior": (make_plan, {"prior": Prior(C=1)}, {}, N),
    "order": (make_plan, {}, {"seed": 9}, N),
    "one order": (make_plan, {}, {"shuffle": False}, N),
    "text": (make_plan, {}, {"corpus_seed": 1}, N),
    "scheme": (make_plan, {}, {"scheme": "IOBES", "labels": "IOB2"}, N),
    "callbacks": (partial(make_plan, callbacks=[StopWhenConverged(patience=2)]), {}, {}, N),
}


def test_every_change_has_a_folder_of_its_own(tmp_path):
    names = {make_plan(tmp_path).fingerprint(make_first(), make_data(), N)}
    for plan, first, data, n in CHANGES.values():
        names.add(plan(tmp_path).fingerprint(make_first(**first), make_data(**data), n))
    assert len(names) == len(CHANGES) + 1


def test_fingerprint_without_other_splits(tmp_path):
    plan, first, data = make_plan(tmp_path), make_first(), make_data()
    name = plan.fingerprint(first, data, N)
    assert plan.fingerprint(make_first(), make_data(dev=1), N) == name
    first.features.fit(data.corpus("train"))
    first.allocate(LabelSet.from_corpus(data.corpus("train").columns["label"], "IOB2"))
    assert plan.fingerprint(first, data, N) == name
    assert make_plan(tmp_path / "elsewhere").fingerprint(first, data, N) == name


@pytest.mark.parametrize("damaged", ["fold-1.safetensors", "first/model.json"])
def test_damaged_files_are_computed_again(whole, cached, trainings, caplog, damaged):
    folder = files(cached)["first"].parent
    (folder / damaged).write_bytes((folder / damaged).read_bytes()[:-1] + b"]")
    again = cached(make_first(), make_data(), N, **QUIET)
    assert len(trainings) == 1
    assert str(folder) in caplog.text
    assert_same_lists(again.lists, whole[0].lists)
    trainings.clear()
    cached(make_first(), make_data(), N, **QUIET)
    assert not trainings


def test_lists_of_other_sequences(cached, trainings, caplog):
    kept = files(cached)
    lists, about = CandidateLists.load(kept["fold-1.safetensors"])
    lists.take(torch.arange(len(lists)).flip(0)).save(kept["fold-1.safetensors"], about)
    cached(make_first(), make_data(), N, **QUIET)
    assert len(trainings) == 1
    assert "fold-1.safetensors: the lists belong to" in caplog.text


# -- bad input ------------------------------------------------------------------------------------------------


def test_folds_and_epochs_out_of_range(tmp_path, trainings):
    for options in ({"folds": 1}, {"epochs": 0}):
        with pytest.raises(InputError, match=f"jackknife.{next(iter(options))} "):
            JackKnife(**options)
    with pytest.raises(InputError, match=r"folds .*8.* 5 documents"):
        make_plan(tmp_path, folds=8)(make_first(), make_data(), N, **QUIET)
    assert not trainings
    assert not list(tmp_path.iterdir())


def test_callbacks_with_private_options(tmp_path):
    class Opaque(pl.Callback):
        def __init__(self, option):
            self._option = option

    with pytest.raises(InputError, match=r"Opaque .* 'option'"):
        make_plan(tmp_path, callbacks=[Opaque(1)])(make_first(), make_data(), N, **QUIET)
