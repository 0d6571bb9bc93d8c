"""Full-batch training as users run it: it converges, resumes, serves its best weights and says what is wrong."""

import json

import pytest
import torch

from structperc.criteria import MCEFLoss
from structperc.datamodules.sources import Synthetic
from structperc.models.checkpoint_files import load_weights
from structperc.taggers.tagger import Tagger
from tests.checkpoints import assert_same, assert_same_training, checkpoint, logged
from tests.tiny import Loops, weights_of, whole

CRITERIA, OPTIM = "structperc.criteria.", "structperc.optim."
SMALL = ["--data.train=5", "--data.dev=2", "--data.test=0", "--data.unit=sentence", "--data.batch_size=8"]
FULL = [*SMALL, "--data.shuffle=false", "--model.scorer.init_args.sparse_grad=false"]
LOWEST = ["--checkpoint.monitor=null"]
MAP = [f"--model.criterion={CRITERIA}CRFLoss", "--model.prior.C=1"]
MCE_F = [f"--model.criterion={CRITERIA}MCEFLoss", "--model.search.k=2", "--model.prior.C=1000"]
LBFGS = [f"--model.optimizer={OPTIM}LBFGS"]
QUICKPROP = [f"--model.optimizer={OPTIM}QuickProp", "--model.optimizer.lr=10"]
SEQUENTIAL = [
    f"--model.optimizer={OPTIM}SequentialOptimizers",
    f"--model.optimizer.first={OPTIM}GPD",
    "--model.optimizer.first.lr=100",
    "--model.optimizer.first.decay_steps=10",
    "--model.optimizer.first_epochs=2",
    f"--model.optimizer.second={OPTIM}QuickProp",
    "--model.optimizer.second.lr=10",
]


def best_weights(saved):
    """{name: weights} of lowest objective in a checkpoint."""
    states = saved["optimizer_states"][0]["state"].values()
    return {name: state["best"] for name, state in zip(("scorer.node", "scorer.transition"), states, strict=True)}


def objective(folder, C):
    """Of a saved model on the training data, by loops (or in one batch), in float64."""
    model, data = Tagger.load(folder), Synthetic(train=5, dev=0, test=0, unit="sentence")
    rows, weights = model.encode(data.corpus("train")), weights_of(model)
    penalty = sum(float(w.square().sum()) for w in weights) / (2 * C)
    if not isinstance(model.criterion, MCEFLoss):
        return float(Loops(model, rows)(weights)) + penalty
    return float(model.criterion.objective(model.criterion.counts(whole(model, rows, weights)).sum(0))) + penalty


def weights_in(model):
    """{name: weights} of a saved model."""
    return dict(Tagger.load(model).named_parameters())


def assert_weights(model, expected):
    """Those of a saved model against {name: weights}."""
    saved = weights_in(model)
    assert saved.keys() == {name for name in expected if name.startswith("scorer.")}
    for name, weights in saved.items():
        assert torch.equal(weights, expected[name])


@pytest.fixture(scope="module")
def map_model(make_runs):
    """The folder of a MAP model of ten evaluations."""
    runs = make_runs("map")
    assert runs("fit", *FULL, *MAP, *LBFGS, *LOWEST, "--trainer.max_epochs=10") == 0
    return runs.root / "1" / "model"


def test_lbfgs_converges(runs, caplog):
    with caplog.at_level("INFO", logger="pytorch_lightning.structperc"):
        options = ["--trainer.max_epochs=100", "--model.optimizer.tolerance=1e-2"]
        assert runs("fit", *FULL, *MAP, *LBFGS, *LOWEST, *options) == 0
    run = runs.root / "1"
    epochs = json.loads((run / "results.json").read_text())["epochs"]
    values = logged(run, "train/objective")
    assert epochs == len(values) < 100
    assert f"epoch {epochs}: converged: in 10 iterations" in caplog.text
    assert values[-1] < values[0] / 10
    assert objective(run / "model", 1) == pytest.approx(min(values), rel=1e-5)


def test_quickprop_keeps_the_lowest_objective(runs):
    """It goes up, too: the weights that it ends with are others."""
    assert runs("fit", *FULL, *MCE_F, *SEQUENTIAL, *LOWEST, "--trainer.max_epochs=11") == 0
    run = runs.root / "1"
    values = logged(run, "train/objective")
    assert values[-1] > min(values[2:])
    assert objective(run / "model", 1000) == pytest.approx(min(values[2:]), rel=1e-4)
    last = checkpoint(run)
    raw = last["optimizer_states"][0]["state"][0]["training_weights"]
    assert not torch.equal(Tagger.load(run / "model").scorer.node, raw)
    assert_weights(run / "model", last["state_dict"])
    assert_weights(run / "model", best_weights(last))

    scores = logged(run, "dev/score")  # the second phase starts again; without a lower objective the score stays
    worse = [i for i in range(3, 11) if values[i] > min(values[2:i])]
    assert worse
    assert all(scores[i] == scores[i - 1] for i in worse)
    assert len(set(scores)) > 1


def test_epoch_by_development_score(runs):
    assert runs("fit", *FULL, *MAP, *LBFGS, "--trainer.max_epochs=8", "--checkpoint.mode=min") == 0
    run = runs.root / "1"
    scores = logged(run, "dev/score")
    assert len(scores) == 8
    assert min(scores) < max(scores)
    best = checkpoint(run, "best")
    assert best["epoch"] == scores.index(min(scores))
    assert json.loads((run / "results.json").read_text())["dev"]["score"] == pytest.approx(min(scores))
    assert_weights(run / "model", best_weights(best))


def test_resumed_after_any_evaluation(runs):
    """Four epochs, or two and two; the first phase ends after the second."""
    options = [*FULL, *MCE_F, *SEQUENTIAL]
    first, second = [*options, "--trainer.max_epochs=2"], [*options, "--trainer.max_epochs=4"]
    assert runs("fit", *second) == 0
    assert runs("fit", *first) == 0
    assert runs("fit", *second, "--ckpt_path=last") == 0
    whole_run, resumed = runs.root / "1", runs.root / "2"
    assert not (runs.root / "3").exists()
    assert_same_training(whole_run, resumed)
    assert_weights(whole_run / "model", weights_in(resumed / "model"))


def test_finished_run(runs, caplog):
    options = [*FULL, *MAP, *LBFGS, *LOWEST, "--model.optimizer.tolerance=0.5", "--model.optimizer.period=2"]
    assert runs("fit", *options, "--trainer.max_epochs=50") == 0
    run = runs.root / "1"
    epochs = json.loads((run / "results.json").read_text())["epochs"]
    before = weights_in(run / "model")
    assert epochs < 50
    with caplog.at_level("INFO", logger="pytorch_lightning.structperc"):
        assert runs("fit", *options, "--trainer.max_epochs=60", "--ckpt_path=last") == 0
    assert f"epoch {epochs + 1}: converged" in caplog.text
    assert_weights(run / "model", before)


def test_last_with_rare_checkpoints(runs):
    """A run goes on from there as if it had never ended."""
    options = [*FULL, *MAP, *LBFGS, "--checkpoint.monitor=dev/score"]
    assert runs("fit", *options, "--trainer.max_epochs=6") == 0
    rare = [*options, "--checkpoint.every_n_epochs=3"]
    assert runs("fit", *rare, "--trainer.max_epochs=5") == 0
    steady, run = checkpoint(runs.root / "1"), runs.root / "2"
    assert checkpoint(run, "best")["epoch"] == 2
    assert 6 * checkpoint(run)["global_step"] == 5 * steady["global_step"]
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["best.ckpt", "last.ckpt"]
    assert runs("fit", *rare, "--trainer.max_epochs=6", "--ckpt_path=last") == 0
    for part in ("global_step", "state_dict", "optimizer_states"):
        assert_same(checkpoint(run)[part], steady[part])


def test_rare_checkpoints(runs):
    """The run ends in its fourth epoch, by an error; what is left is the third."""
    options = ["--checkpoint.every_n_epochs=3", "--model.optimizer=tests.tiny.Explodes", "--model.optimizer.lr=0.01"]
    assert runs("fit", *FULL, *MAP, *LOWEST, *options, "--trainer.max_epochs=9") == 2
    assert checkpoint(runs.root / "1")["epoch"] == 2


def test_init_from_begins_at_the_objective(runs, map_model):
    options = [f"--model.init_from={map_model}", "--trainer.max_epochs=1"]
    assert runs("fit", *FULL, *MCE_F, *QUICKPROP, *LOWEST, *options) == 0
    run = runs.root / "1"
    (value,) = logged(run, "train/objective")
    assert objective(run / "model", 1000) == pytest.approx(value, rel=1e-5)
    assert value < 0.2  # at weights of zero it is above 1
    assert_weights(run / "model", weights_in(map_model))


def test_a_run_from_a_saved_model_resumes(runs, map_model):
    options = [*FULL, *MCE_F, *QUICKPROP, *LOWEST, f"--model.init_from={map_model}"]
    assert runs("fit", *options, "--trainer.max_epochs=4") == 0
    assert runs("fit", *options, "--trainer.max_epochs=2") == 0
    assert runs("fit", *options, "--trainer.max_epochs=4", "--ckpt_path=last") == 0
    assert_same_training(runs.root / "1", runs.root / "2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([*MCE_F, "--model.search.k=1"], "model.search.k is 1, but MCEFLoss"),
        ([*MCE_F, "--data.scheme=none", "--data.labels=none"], "MCEFLoss counts segments"),
        (["--model.init_from=no/such/model"], "--model.init_from: no/such/model: "),
        ([*MAP, *LBFGS, "--trainer.accumulate_grad_batches=2"], "trainer.accumulate_grad_batches: "),
    ],
)
def test_options_out_of_range(complaint, runs, options, message):
    assert complaint(*FULL, *options).startswith(message)
    assert not list(runs.root.rglob("*.ckpt"))
    assert not list(runs.root.rglob("model.json"))


def test_divergence_of_full_batch_training(complaint, runs, caplog):
    message = complaint(*FULL, *MCE_F, *QUICKPROP, "--model.optimizer.lr=1e38", "--trainer.max_epochs=5")
    assert message.startswith("epoch 2: QuickProp, evaluation 2: ")
    assert message.endswith("smaller lr")
    model = runs.root / "1" / "model"
    assert f"model with the last good weights: {model}" in caplog.messages
    assert not any(p.any() for p in Tagger.load(model).parameters())  # those of the first evaluation


def test_best_weights_after_the_last_checkpoint(complaint, runs):
    """The third evaluation is the lowest, the fourth no number; the third epoch's checkpoint holds the fourth point."""
    options = ["--model.optimizer=tests.tiny.Explodes", "--model.optimizer.lr=0.001", "--trainer.max_epochs=9"]
    message = complaint(*FULL, *MAP, *LOWEST, *options)
    assert message.startswith("epoch 4: Explodes, evaluation 4: ")
    assert message.endswith("smaller C of the prior")
    run = runs.root / "1"
    values = logged(run, "train/objective")
    assert len(values) == 3
    assert objective(run / "model", 1) == pytest.approx(min(values), rel=1e-5)
    assert min(values) == values[-1] < values[0]


def test_divergence_of_mini_batches(complaint, runs, caplog):
    steps = len(Synthetic(train=5, dev=0, test=0, unit="sentence").corpus("train")) // 8 + 1
    options = ["--model.optimizer=tests.tiny.ExplodesInBatches", "--model.optimizer.lr=0.01", "--trainer.max_epochs=9"]
    message = complaint(*FULL, *MAP, *options, f"--model.optimizer.at={2 * steps + 1}")
    assert message.startswith("epoch 3: the objective is nan")
    run = runs.root / "1"
    last = checkpoint(run)
    assert last["epoch"] == 1
    assert f"model with the last good weights: {run / 'model'}" in caplog.messages
    assert_weights(run / "model", last["state_dict"])


def test_divergence_with_averaged_weights(complaint, runs):
    options = [f"--model.optimizer={OPTIM}GPD", "--model.optimizer.decay_steps=1e9", "--model.optimizer.average=true"]
    given = [*FULL, *MAP, *options, "--model.optimizer.lr=0.01"]
    assert runs("fit", *given, "--trainer.max_epochs=2") == 0
    path = runs.root / "1" / "checkpoints" / "last.ckpt"
    saved = torch.load(path, weights_only=True)
    saved["optimizer_states"][0]["param_groups"][0]["lr"] = 1e38
    torch.save(saved, path)
    complaint(*FULL, *MAP, *options, "--trainer.max_epochs=4", f"--ckpt_path={path}")
    tagger = Tagger.load(runs.root / "1" / "model")
    other = Tagger.load(runs.root / "1" / "model")
    load_weights(other, path)
    assert all(torch.equal(a, b) for a, b in zip(tagger.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("size", [8, 1000])
def test_divergence_in_the_first_epoch(complaint, runs, caplog, size):
    """In one batch per epoch the first epoch's loss is fine, but not the weights that it ends with."""
    options = [f"--model.optimizer={OPTIM}GPD", "--model.optimizer.lr=1e38", "--model.optimizer.decay_steps=10"]
    message = complaint(*FULL, *MAP, *options, f"--data.batch_size={size}", "--trainer.max_epochs=3")
    assert message.startswith("epoch 1: ")
    assert message.endswith("smaller lr")
    assert any("no model was saved" in one for one in caplog.messages)
    assert not list(runs.root.rglob("model.json"))
    assert not list(runs.root.rglob("*.ckpt"))


def test_other_errors_leave_no_model(runs, monkeypatch, capsys):
    def fail(*_):
        raise OSError("out of paper")

    monkeypatch.setattr(Tagger, "on_train_epoch_end", fail)
    assert runs("fit", *FULL, *MAP, *LBFGS, "--trainer.max_epochs=2") == 2
    assert "out of paper" in capsys.readouterr().err
    assert not list(runs.root.rglob("model.json"))
