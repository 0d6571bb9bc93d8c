"""What a trainer logs is what it loads, tests, predicts and saves, for each training method."""

from functools import partial

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import (
    EarlyStopping,
    LearningRateMonitor,
    ModelCheckpoint,
    ModelSummary,
    StochasticWeightAveraging,
    Timer,
)

import structperc
import structperc.optim
from structperc import FeatureExtractor, Tagger
from structperc.chain import KBest
from structperc.criteria import CRFLoss, HingeLoss, MarginLoss, MEMMLoss
from structperc.errors import InputError
from structperc.guided import ContextFeatures
from structperc.nonlocal_features import PhraseConsistency
from structperc.optim import GPD, LBFGS, Averaging, Perceptron, SequentialOptimizers
from structperc.reranking import Boosting, FirstScore, Reranker
from structperc.scorers import SparseLinear
from structperc.taggers import GuidedTagger
from tests.checkpoints import assert_same
from tests.rerankers import Text, make_first, make_reranker

QUIET = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False, "logger": False}
OPTIMIZERS = {  # one for each training method, and those that hold others
    "Adam": torch.optim.Adam,
    "Perceptron": Perceptron,
    "LBFGS": LBFGS,
    "Averaging": partial(Averaging, optimizer=partial(torch.optim.SGD, lr=0.1)),
    "SequentialOptimizers": partial(
        SequentialOptimizers, first=partial(GPD, lr=0.05, decay_steps=20), first_epochs=1, second=LBFGS
    ),
}
KINDS = [*OPTIMIZERS, "guided", "reranker", "boosting"]
FEATURES = [{"of": ["w"], "at": [-1, 0, 1]}, "bias"]


def made(name, tmp_path):
    """A tagger before training, by the name of its optimizer, or of its kind."""
    torch.manual_seed(1)
    features = FeatureExtractor(FEATURES, cutoff=1, progress=False)
    if name == "guided":
        return GuidedTagger(features, ContextFeatures(["t[-1]", "t[1]"]), beam=2)
    if name == "reranker":
        parts = {"first": make_first(), "scorer": FirstScore(unit=4.0), "criterion": MarginLoss(C=5)}
        plan = structperc.reranking.JackKnife(folds=2, epochs=2, cache=str(tmp_path / "lists"))
        return Reranker(**parts, search=KBest(4), nonlocal_features=[PhraseConsistency()], jackknife=plan)
    if name == "boosting":
        return make_reranker(tmp_path / "lists", Boosting(rounds=4))
    criterion = HingeLoss(cost=1.0) if name.startswith("Perceptron") else CRFLoss()
    return Tagger(features, SparseLinear(sparse_grad=False), criterion, optimizer=OPTIMIZERS[name], search=KBest(2))


def prepared(name, tmp_path):
    tagger, data = made(name, tmp_path), Text(unit="document" if name == "reranker" else "sentence")
    if hasattr(tagger, "train_first"):
        tagger.train_first(data, accelerator="cpu", enable_progress_bar=False)
    return tagger, data


class Record(pl.Callback):
    """Scores of development data, and parameters while they are computed, at the start and at the end of training."""

    def __init__(self):
        self.scores, self.weights, self.start = [], [], None

    def on_train_start(self, trainer, pl_module):
        self.start = weights_of(pl_module)

    def on_validation_epoch_end(self, trainer, pl_module):
        self.weights.append(weights_of(pl_module))

    def on_validation_end(self, trainer, pl_module):
        if not trainer.sanity_checking:
            self.scores.append(float(trainer.callback_metrics["dev/score"]))


def weights_of(module):
    return {name: p.detach().clone() for name, p in module.named_parameters()}


def trainer_of(folder, epochs, *callbacks, **options):
    best = ModelCheckpoint(folder, "{epoch}", monitor="dev/score", mode="max", save_last=True, save_top_k=-1)
    return pl.Trainer(max_epochs=epochs, callbacks=[best, *callbacks], num_sanity_val_steps=0, **QUIET, **options)


def score(trainer, *args, **options):
    (found,) = trainer.validate(*args, verbose=False, **options)
    return found["dev/score"]


@pytest.mark.parametrize("name", ["Adam", "Perceptron", "LBFGS", "guided", "boosting"])
def test_logged_scores_and_weights(name, tmp_path):
    tagger, data = prepared(name, tmp_path)
    record, fresh = Record(), pl.Trainer(enable_checkpointing=False, **QUIET)
    trainer = trainer_of(tmp_path, 2, record)
    trainer.fit(tagger, data)
    logged, weights = list(record.scores), list(record.weights)
    assert len(logged) == len(weights) == 2
    files = [str(tmp_path / f"epoch={epoch}.ckpt") for epoch in range(2)]
    best = files.index(trainer.checkpoint_callback.best_model_path)
    assert logged[best] == max(logged) == trainer.checkpoint_callback.best_model_score

    for path, epoch in ((None, 1), ("best", best), ("last", 1), (files[0], 0)):
        if path is not None:
            assert score(trainer, tagger, data, ckpt_path=path) == logged[epoch]
        assert score(trainer, tagger, data) == logged[epoch]
        tested = trainer.test(tagger, data, ckpt_path=path, verbose=False)
        assert_same(weights_of(tagger), weights[epoch])
        tagger.save(tmp_path / "model")
        saved = type(tagger).load(tmp_path / "model")
        assert_same(weights_of(saved), weights[epoch])
        assert fresh.test(saved, data, verbose=False) == tested
        predicted = trainer.predict(tagger, data, ckpt_path=path)
        assert predicted == fresh.predict(saved, data)
        flat = [label for batch in predicted for labels in batch for label in labels]
        assert flat == [label for labels in saved.label(data.corpus("dev")) for label in labels]

    for load in (type(tagger).load_from_checkpoint, type(tagger).load, structperc.load):
        loaded = load(files[0])
        assert_same(weights_of(loaded), weights[0])
    assert score(fresh, loaded, data) == logged[0]


@pytest.mark.parametrize("name", KINDS)
def test_second_fit(name, tmp_path):
    """Without a checkpoint it starts from the evaluation weights, with one it continues bit for bit."""
    whole, data = prepared(name, tmp_path)
    trainer_of(tmp_path / "whole", 2).fit(whole, data)
    tagger, data = prepared(name, tmp_path)
    trainer = trainer_of(tmp_path / "one", 1)
    trainer.fit(tagger, data)
    evaluated, record = weights_of(tagger), Record()
    trainer_of(tmp_path / "again", 1, record).fit(tagger, data)
    assert_same(record.start, evaluated)

    trainer.fit_loop.max_epochs = 2
    trainer.fit(tagger, data, ckpt_path=str(tmp_path / "one" / "last.ckpt"))
    assert_same(weights_of(tagger), weights_of(whole))
    other, data = prepared(name, tmp_path)
    trainer_of(tmp_path / "other", 2).fit(other, data, ckpt_path=str(tmp_path / "one" / "epoch=0.ckpt"))
    assert_same(weights_of(other), weights_of(whole))


def test_optimizer_of_two_trainings(tmp_path):
    """An optimizer object that is used again continues with its training weights and sums."""
    whole, twice, optimizers = made("Perceptron", tmp_path), made("Perceptron", tmp_path), []
    order = {"batch_size": 4, "shuffle": False}
    trainer_of(tmp_path / "whole", 2).fit(whole, Text(**order))

    def one(params):
        optimizers[:] = optimizers or [structperc.optim.Perceptron(params)]
        return optimizers[0]

    twice.optimizer = one
    for _ in range(2):
        trainer_of(tmp_path / "twice", 1).fit(twice, Text(**order))
    assert_same(weights_of(twice), weights_of(whole))


def test_weights_only_and_within_an_epoch(tmp_path):
    """Each checkpoint has evaluation weights; only one with states of optimizers can be resumed."""
    tagger, data = made("Perceptron", tmp_path), Text(batch_size=4)
    every = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=3, save_top_k=-1, save_weights_only=True)
    trainer = pl.Trainer(max_epochs=2, callbacks=[every], **QUIET)
    trainer.fit(tagger, data)
    alone = made("Perceptron", tmp_path)
    limited = pl.Trainer(max_steps=3, enable_checkpointing=False, **QUIET)
    limited.fit(alone, Text(batch_size=4))
    path = tmp_path / "step=3.ckpt"
    assert_same(weights_of(Tagger.load_from_checkpoint(path)), weights_of(alone))
    with pytest.raises(InputError, match="save_weights_only"):
        trainer.fit(tagger, data, ckpt_path=str(path))
    saved = torch.load(path, weights_only=True)
    assert not {"hyper_parameters", "hparams_name"} & saved.keys()
    del saved["model"]
    torch.save(saved, tmp_path / "old.ckpt")
    for call in (Tagger.load, partial(trainer.test, tagger, data), partial(trainer.fit, tagger, data)):
        options = {} if call == Tagger.load else {"ckpt_path": str(tmp_path / "old.ckpt")}
        arguments = [tmp_path / "old.ckpt"] if call == Tagger.load else []
        with pytest.raises(InputError, match="earlier version"):
            call(*arguments, **options)


@pytest.mark.parametrize("where", ["on_train_batch_end", "on_validation_epoch_end"])
def test_interrupted_training(where, tmp_path):
    """The evaluation weights stay; a checkpoint that is saved then continues from the training weights."""
    tagger, data = made("Perceptron", tmp_path), Text(batch_size=4)

    class Fails(pl.Callback):
        def __init__(self):
            setattr(self, where, self.fail)

        def fail(self, trainer, *_):
            if trainer.global_step >= 6:
                self.raw = [p.clone() for p in trainer.optimizers[0].state_dict()["state"][0].values()]
                raise RuntimeError("stop")

    trainer = trainer_of(tmp_path, 4, Fails())
    with pytest.raises(RuntimeError, match="stop"):
        trainer.fit(tagger, data)
    (optimizer,) = trainer.optimizers
    after = weights_of(tagger)
    optimizer.use_training_weights()
    assert not torch.equal(after["scorer.node"], tagger.scorer.node)
    with optimizer.evaluation_weights():
        assert_same(weights_of(tagger), after)
    optimizer.use_evaluation_weights()
    trainer.save_checkpoint(tmp_path / "now.ckpt")
    assert_same(weights_of(Tagger.load(tmp_path / "now.ckpt")), after)


def test_options_of_loaded_checkpoints(tmp_path):
    tagger, data = made("Perceptron", tmp_path), Text()
    trainer = trainer_of(tmp_path, 1)
    trainer.fit(tagger, data)
    path, optimizer = tmp_path / "last.ckpt", partial(torch.optim.Adam, lr=0.1)
    loaded = Tagger.load_from_checkpoint(path, map_location="cpu", weights_only=True, optimizer=optimizer)
    assert loaded.optimizer is optimizer
    pl.Trainer(max_epochs=1, enable_checkpointing=False, **QUIET).fit(loaded, data)
    for options in ({"criterion": CRFLoss()}, {"unknown": 1}, {"strict": False}, {"hparams_file": "hparams.yaml"}):
        with pytest.raises(InputError, match="load_from_checkpoint"):
            Tagger.load_from_checkpoint(path, **options)
    with pytest.raises(InputError, match="GuidedTagger"):
        GuidedTagger.load_from_checkpoint(path)


def test_callbacks_of_lightning(tmp_path):
    tagger, data = made("Averaging", tmp_path), Text()
    callbacks = [EarlyStopping("dev/score", mode="max", patience=1), ModelSummary(), Timer("00:00:05:00")]
    options = {**QUIET, "logger": pl.loggers.CSVLogger(tmp_path)}
    del options["enable_model_summary"]
    best = ModelCheckpoint(tmp_path, "{epoch}", monitor="dev/score", mode="max", save_top_k=2)
    trainer = pl.Trainer(max_epochs=30, callbacks=[*callbacks, best, LearningRateMonitor()], **options)
    trainer.fit(tagger, data)
    assert trainer.current_epoch < 30
    assert len(best.best_k_models) == 2
    for path, value in best.best_k_models.items():
        assert score(trainer, tagger, data, ckpt_path=path) == value
    names = (tmp_path / "lightning_logs" / "version_0" / "metrics.csv").read_text().partition("\n")[0]
    assert "lr-Averaging" in names
    options = (tmp_path / "lightning_logs" / "version_0" / "hparams.yaml").read_text()
    assert "criterion: structperc.criteria.CRFLoss" in options
    assert "optimizer.optimizers.0.lr: 0.1" in options
    with pytest.raises(InputError, match="Averaging"):
        pl.Trainer(max_epochs=1, callbacks=[StochasticWeightAveraging(0.1)], **QUIET).fit(made("Adam", tmp_path), data)


@pytest.mark.parametrize(("precision", "dtype"), [("bf16-true", torch.bfloat16)])
def test_weights_of_other_precision(precision, dtype, tmp_path):
    """A checkpoint has them as they are, a saved model in float32."""
    tagger, data = made("Perceptron", tmp_path), Text()
    trainer = trainer_of(tmp_path, 2, precision=precision)
    trainer.fit(tagger, data)
    tagger.save(tmp_path / "model")
    loaded, saved = Tagger.load(tmp_path / "last.ckpt"), Tagger.load(tmp_path / "model")
    assert loaded.scorer.node.dtype == dtype
    assert_same(weights_of(loaded), weights_of(tagger))
    assert saved.scorer.node.dtype == torch.float32
    assert_same(weights_of(saved), {name: p.float() for name, p in weights_of(tagger).items()})


def test_loaders_in_place_of_data(tmp_path):
    trainer = pl.Trainer(max_epochs=1, enable_checkpointing=False, **QUIET)
    with pytest.raises(InputError, match="datamodule"):
        trainer.fit(made("Perceptron", tmp_path), torch.utils.data.DataLoader([1, 2]))


class Seen(pl.Callback):
    """Rows of the mini-batches of each epoch."""

    def __init__(self):
        self.epochs = []

    def on_train_epoch_start(self, trainer, pl_module):
        self.epochs.append([])

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self.epochs[-1].append(batch.rows.tolist())


@pytest.mark.parametrize("name", ["Perceptron", "guided"])
def test_limited_trainings(name, tmp_path):
    """Options of trainers limit mini-batches; those that are overfitted are the same in each epoch."""
    found = {}
    for options in ({}, {"limit_train_batches": 0.5}, {"fast_dev_run": 2}):
        tagger, seen = made(name, tmp_path), Seen()
        limits = {"max_epochs": 2, "enable_checkpointing": False, "callbacks": [seen], **QUIET, **options}
        pl.Trainer(**limits).fit(tagger, Text(batch_size=3))
        found[next(iter(options), "")] = [len(epoch) for epoch in seen.epochs]
    assert found == {"": [6, 6], "limit_train_batches": [3, 3], "fast_dev_run": [2]}
    tagger, seen = made(name, tmp_path), Seen()
    limits = {"max_epochs": 2, "enable_checkpointing": False, "callbacks": [seen], **QUIET}
    pl.Trainer(overfit_batches=0.5, **limits).fit(tagger, Text(batch_size=3, eval_batch_size=3))
    assert len(seen.epochs[0]) == 3
    assert seen.epochs[0] == seen.epochs[1]


@pytest.mark.parametrize("criterion", [CRFLoss, MEMMLoss])
def test_validations_within_full_batches(criterion, tmp_path):
    """They leave the gradients that a step sums over the corpus as they are."""
    found = []
    for options in ({}, {"val_check_interval": 1}):
        torch.manual_seed(1)
        features = FeatureExtractor(FEATURES, cutoff=1, progress=False)
        tagger = Tagger(features, SparseLinear(sparse_grad=False), criterion(), KBest(1), LBFGS)
        pl.Trainer(max_epochs=4, enable_checkpointing=False, **QUIET, **options).fit(tagger, Text(batch_size=3))
        found.append(weights_of(tagger))
    assert_same(*found)


@pytest.mark.parametrize("name", ["LBFGS", "SequentialOptimizers"])
@pytest.mark.parametrize("option", [{"max_steps": 3}])
def test_options_that_full_batches_refuse(name, option, tmp_path):
    trainer = pl.Trainer(**{"max_epochs": 2, "enable_checkpointing": False, **QUIET, **option})
    with pytest.raises(InputError, match=rf"trainer\.{next(iter(option))}: LBFGS"):
        trainer.fit(made(name, tmp_path), Text())
