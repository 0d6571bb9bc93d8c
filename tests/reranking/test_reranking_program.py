"""The program `rerank`: runs of all kinds of re-rankers, resumed and interrupted ones, commands on what they leave."""

import csv
import json

import pytest
import pytorch_lightning as pl
import torch
from safetensors.torch import load_file

from structperc.chain import KBest
from structperc.criteria import MarginLoss
from structperc.data.conll import write_conll
from structperc.datamodules.sources import Synthetic
from structperc.errors import InputError
from structperc.metrics.torchmetrics_classes import Evaluation
from structperc.nonlocal_features import PhraseConsistency
from structperc.reranking import Boosting, FirstScore
from structperc.reranking.global_reranker import GlobalReranker
from structperc.reranking.reranker import Reranker
from structperc.taggers.tagger import Tagger
from structperc.training.curves import read_curve
from structperc.training.report import evaluate
from structperc.training.reranking import TABLE, check_trainer, rerank
from tests.checkpoints import assert_same, logged
from tests.rerankers import QUIET, make_first, make_reranker

STUDY = "pkg:studies/embedded#"
STAGE = "structperc.nonlocal_features"
UNTYPED = f"{{class_path: {STAGE}.LexiconShapes, init_args: {{typed: false}}}}"
ABSENT = f"{{class_path: {STAGE}.LexiconShapes, init_args: {{lexicon: {{text: no.txt}}}}}}"
FEATURES = f"--model.nonlocal_features=[{STAGE}.WholeEntity, {STAGE}.StartBigrams, {UNTYPED}, {STAGE}.QuotedEntity]"
SIZES, EPOCHS = {"train": 8, "dev": 5, "test": 5}, 3
LISTS = ["--model.jackknife.epochs=3", "--model.search.k=6"]
WORDS = [*LISTS, "--model.first.features.node=[bias, {of: [w], at: [-1, 0]}]", "--model.first.features.edge=[bias]"]
OPTIONS = {
    "reranking2": ["--model.jackknife.epochs=1"],
    "boosting": [*WORDS, FEATURES, "--model.ranker.rounds=3", "--trainer.check_val_every_n_epoch=1"],
    "voted": [*WORDS, FEATURES],
    "bilstm_reranking": [*LISTS, "--data.batch_size=1", "--model.first.scorer.encoder.hidden=6", "--model.decoder.k=6"],
}
LINEAR, BOOSTING, VOTED, NEURAL = OPTIONS


class Runs:
    """`rerank` on a tiny embedded corpus; runs and candidate lists lie under `root`."""

    def __init__(self, root, candidates=None):
        self.root, self.candidates = root, candidates or root / "candidates"

    def __call__(self, name, *options, command=()):
        self.root.mkdir(exist_ok=True)
        given = [
            *command,
            *("-c", STUDY + name, f"--trainer.max_epochs={EPOCHS}"),
            *(f"--data.{split}={size}" for split, size in SIZES.items()),
            *("--model.jackknife.folds=2", f"--model.jackknife.cache={self.candidates}"),
            f"--trainer.default_root_dir={self.root / name}",
            *("--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false"),
            *("--trainer.accelerator=cpu", *OPTIONS[name], *options),
        ]
        rerank(given)

    def run(self, name):
        return self.root / name / "1"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One finished run of each kind."""
    made = Runs(tmp_path_factory.mktemp("reranking"))
    for name in OPTIONS:
        made(name)
    return made


def data_of(name):
    return Synthetic(**SIZES, unit="sentence" if name in (BOOSTING, VOTED) else "document")


def results_of(run):
    return json.loads((run / "results.json").read_text())


def labels_of(corpus, tagger):
    return [label for sentence in tagger.label(corpus) for label in sentence]


def last_column(text):
    return [line.split()[-1] for line in text.splitlines() if line and not line.startswith(("-DOCSTART-", "#columns="))]


# -- what a run leaves ------------------------------------------------------------------------------------------


def test_kinds_share_lists(runs):
    assert len(list(runs.candidates.iterdir())) == 3  # a folder for each kind of first models


@pytest.mark.parametrize("name", OPTIONS)
def test_results_are_those_of_the_best_epoch(runs, name):
    run, data = runs.run(name), data_of(name)
    results, model, scores = results_of(run), Tagger.load(run / "model"), logged(run, "dev/score")
    assert {"folds", "first model"} < results["seconds_by_part"].keys()
    assert results["seconds"] == pytest.approx(sum(results["seconds_by_part"].values()))
    best = torch.load(run / "checkpoints" / "best.ckpt", weights_only=True)
    assert len(scores) == EPOCHS
    assert best["epoch"] == scores.index(max(scores))
    assert results["dev"]["score"] == pytest.approx(max(scores))
    for split in ("dev", "test"):
        evaluation, corpus = Evaluation(model.labels), data.corpus(split)
        for batch in model.batches(corpus, data.eval_batch_size):  # which of equal candidates are listed depends on it
            evaluation.update(model.decode(batch), batch.gold, batch.lengths, batch.sentences)
        assert evaluation.compute() == pytest.approx(results[split])
        assert last_column((run / "predictions" / f"{split}.conll").read_text()) == labels_of(corpus, model)
    assert {file.name for file in (run / "model").iterdir()} == {"model.json", "model.safetensors", "README.md"}
    assert type(model) is (Reranker if name in (LINEAR, NEURAL) else GlobalReranker)
    if type(model) is GlobalReranker:
        history = "losses" if name == "boosting" else "mistakes"
        assert torch.equal(getattr(model.ranker, history), best["state_dict"][f"ranker.{history}"])


def test_logged_objective(runs):
    with open(runs.run("boosting") / TABLE, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["number"]) for row in rows] == list(range(1, 3 * EPOCHS + 1))
    losses = [float(row["loss"]) for row in rows[2::3]]
    assert logged(runs.run("boosting"), "train/objective") == pytest.approx(losses)
    saved = torch.load(runs.run("voted") / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    assert saved["ranker.mistakes"].tolist() == logged(runs.run("voted"), "train/objective")


def test_saved_averages_of_the_best_checkpoint(runs):
    best = torch.load(runs.run(LINEAR) / "checkpoints" / "best.ckpt", weights_only=True)
    saved = load_file(runs.run(LINEAR) / "model" / "model.safetensors")
    (state,) = best["optimizer_states"]
    (group,) = state["param_groups"]
    names = [part for part in best["state_dict"] if not part.startswith("first.")]
    assert len(names) == len(group["params"])
    for key, part in zip(group["params"], names, strict=True):
        kept = state["state"][key]
        raw = kept["training_weights"]
        average = (raw.double() - kept["sums"] / group["steps"]).float() if "sums" in kept else raw
        assert torch.equal(saved[part], average), part
    for part in best["state_dict"]:
        assert torch.equal(saved[part], best["state_dict"][part])


def test_without_development_data(runs, tmp_path):
    made = Runs(tmp_path, runs.candidates)
    made("boosting", "--trainer.max_epochs=2", "--data.dev=0")
    model = Tagger.load(made.run("boosting") / "model")
    assert len(model.ranker.losses) == 6
    whole = torch.load(runs.run("boosting") / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    assert torch.equal(model.ranker.losses, whole["ranker.losses"][:6])


# -- resumed and interrupted runs -------------------------------------------------------------------------------


def assert_same_runs(a, b):
    """The same last states and the same models, bit for bit."""
    last = [torch.load(run / "checkpoints" / "last.ckpt", weights_only=True) for run in (a, b)]
    assert last[0]["epoch"] == last[1]["epoch"] == EPOCHS - 1
    for part in ("global_step", "state_dict", "optimizer_states"):
        assert_same(*(one[part] for one in last))
    assert_same(*(load_file(run / "model" / "model.safetensors") for run in (a, b)))
    assert (a / "model" / "model.json").read_bytes() == (b / "model" / "model.json").read_bytes()


def test_resumed_run_ends_in_the_same_bits(runs, tmp_path):
    whole, resumed = Runs(tmp_path / "whole", runs.candidates), Runs(tmp_path / "resumed", runs.candidates)
    each = "--checkpoint.monitor=null"  # every epoch is kept, not only a better one
    whole(LINEAR, each)
    resumed(LINEAR, "--trainer.max_epochs=1", each)
    resumed(LINEAR, each, "--ckpt_path=last")
    assert_same_runs(whole.run(LINEAR), resumed.run(LINEAR))


def test_interrupted_run_ends_in_the_same_bits(runs, tmp_path, monkeypatch):
    made, name = Runs(tmp_path, runs.candidates), "boosting"
    epoch, done = Boosting.epoch, []

    def stopped(self):
        if len(done) == 2:
            raise MemoryError
        done.append(1)
        epoch(self)

    monkeypatch.setattr(Boosting, "epoch", stopped)
    with pytest.raises(MemoryError):
        made(name)
    monkeypatch.undo()
    a, b = runs.run(name), made.run(name)
    assert not (b / "model").exists()
    made(name, "--ckpt_path=last")
    assert_same_runs(a, b)
    assert read_curve(a, "dev/score") == read_curve(b, "dev/score")
    assert len(logged(b, "dev/score")) < len(logged(a, "dev/score"))
    assert (a / TABLE).read_bytes() == (b / TABLE).read_bytes()


def test_saved_configuration_uses_the_same_lists(runs, trainings, tmp_path):
    config = runs.run(LINEAR) / "logs" / "version_0" / "config.yaml"
    rerank(["-c", str(config), f"--trainer.default_root_dir={tmp_path}"])
    assert results_of(tmp_path / "1")["dev"] == results_of(runs.run(LINEAR))["dev"]
    assert not trainings


@pytest.mark.parametrize(
    ("name", "option", "fact"),
    [(LINEAR, "--model.jackknife.seed=2", "candidate lists"), ("boosting", "--model.min_sequences=1", "strings")],
)
def test_no_resuming_with_other_lists(runs, name, option, fact):
    with pytest.raises(InputError, match=fact):
        runs(name, "--trainer.max_epochs=5", "--ckpt_path=last", option)


# -- commands ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "command", "split"), [(LINEAR, "validate", "dev"), ("voted", "test", "test")])
def test_checkpoints_are_scored_as_the_model(runs, capsys, name, command, split):
    runs(name, "--ckpt_path=best", command=[command])
    found = capsys.readouterr().out.split("FB1:")[1].split()[0]
    assert found == f"{100 * results_of(runs.run(name))[split]['score']:.2f}"


def test_checkpoints_predict_as_the_model(runs):
    runs(NEURAL, "--ckpt_path=best", "--data.predict=test", command=["predict"])
    predicted = (runs.run(NEURAL) / "predictions" / "test.conll").read_text()
    assert last_column(predicted) == labels_of(data_of(NEURAL).corpus("test"), Tagger.load(runs.run(NEURAL) / "model"))


@pytest.fixture
def file(tmp_path):
    """The test split of the data of features of strings, as columns."""
    write_conll(tmp_path / "test.conll", data_of("voted").corpus("test"), ["word", "label"])
    return str(tmp_path / "test.conll")


def test_commands_take_the_model(runs, run, file):
    model, data, path = runs.run("voted") / "model", data_of("voted"), file
    tagger, corpus = Tagger.load(model), data.corpus("test")
    assert last_column(run("tag", model, path, "--columns", "word", "_")) == labels_of(corpus, tagger)
    lines = run("tag", model, path, "--columns", "word", "_", "-k", "2").splitlines()
    scores = [float(line.split()[3]) for line in lines if line.startswith("# ")]
    assert scores == pytest.approx([one.score for found in tagger.kbest(corpus, 2) for one in found], rel=1e-5)
    table = run("evaluate", model, path, "--candidates", "1", "6").splitlines()
    data.encode(tagger.first.encode, "test")
    assert f"{100 * evaluate(tagger.first, data, 'test').compute()['score']:.2f}" in table[1]
    score = f"{100 * results_of(runs.run('voted'))['test']['score']:.2f}"
    assert score in table[2]
    assert score in run("evaluate", model, path, "--errors").splitlines()[1]
    text = run("explain", model, "--top", "4")
    assert "LexiconShapes(typed=False)" in text
    assert "#" not in text


def test_explain_the_model(runs, run, fails, file):
    assert "total score" in run("explain", runs.run("boosting") / "model", file, "--document", "3")
    assert "predict: average" in fails("explain", runs.run("voted") / "model", file)


# -- mistakes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "option", "fact"),
    [
        (LINEAR, "--data.unit=sentence", "data.unit: "),
        (LINEAR, "--model.jackknife.epoch=1", "epoch"),
        ("voted", "--model.ranker=structperc.reranking.FirstScore", "FirstScore"),
        ("voted", f"--model.nonlocal_features=[{ABSENT}]", "no.txt"),
        ("voted", "--model.jackknife.gradient_clip_val=-1", "jackknife.gradient_clip_val "),
        ("voted", "--trainer.gradient_clip_val=1", "model.jackknife.gradient_clip_val"),
    ],
)
def test_mistakes_are_one_line(tmp_path, name, option, fact, refused):
    assert fact in refused(Runs(tmp_path), name, option)


def test_options_of_the_trainer_about_gradients(tmp_path):
    made = make_reranker(tmp_path)
    plain = Reranker(make_first(), FirstScore(), MarginLoss(C=1), KBest(3), [PhraseConsistency()])
    for option in ("accumulate_grad_batches", "gradient_clip_val"):
        trainer = pl.Trainer(logger=False, enable_checkpointing=False, **QUIET, **{option: 2})
        check_trainer(trainer, plain)
        with pytest.raises(InputError, match=f"trainer.{option}: "):
            check_trainer(trainer, made)
    check_trainer(pl.Trainer(logger=False, enable_checkpointing=False, **QUIET), made)
