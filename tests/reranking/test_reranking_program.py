"""The program with global features: runs, resumed and interrupted ones, commands on what they leave."""

import csv
import json
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch
from safetensors.torch import load_file

from structperc.chain import KBest
from structperc.cli.main import main
from structperc.criteria import MarginLoss
from structperc.data.conll import write_conll
from structperc.datamodules.sources import Synthetic
from structperc.errors import InputError
from structperc.metrics import SegmentF1
from structperc.nonlocal_features import PhraseConsistency
from structperc.reranking import Boosting, FirstScore, VotedPerceptron
from structperc.reranking.global_reranker import GlobalReranker
from structperc.reranking.reranker import Reranker
from structperc.taggers.tagger import Tagger
from structperc.training.boosting_rounds import TABLE, dev_scores
from structperc.training.program import Program
from structperc.training.reranking import check_trainer, rerank
from tests.nested import assert_same
from tests.ranked import QUIET, Naive, decisions, make_first, make_reranker, total_scores
from tests.tiny import without_names

CONFIGS = Path(__file__).parents[2] / "configs" / "embedded"
STAGE = "structperc.nonlocal_features"
UNTYPED = f"{{class_path: {STAGE}.LexiconShapes, init_args: {{typed: false}}}}"
ABSENT = f"{{class_path: {STAGE}.LexiconShapes, init_args: {{lexicon: {{text: no.txt}}}}}}"
FEATURES = f"[{STAGE}.WholeEntity, {STAGE}.StartBigrams, {UNTYPED}, {STAGE}.QuotedEntity]"
KINDS = ["boosting", "voted"]

each_kind = pytest.mark.parametrize("name", KINDS)


class Runs:
    """`rerank` on a tiny embedded corpus; runs and candidate lists lie under `root`."""

    def __init__(self, root, candidates=None):
        self.root, self.candidates = root, candidates or root / "candidates"

    def __call__(self, name, *options, command=()):
        given = [
            *command,
            *("-c", str(CONFIGS / f"{name}.yaml"), "--data.train=8", "--data.dev=4", "--data.test=4"),
            *("--model.first.features.node=[bias, {of: [w], at: [-1, 0]}]", "--model.first.features.edge=[bias]"),
            *("--model.jackknife.folds=2", "--model.jackknife.epochs=4", f"--model.jackknife.cache={self.candidates}"),
            *("--model.search.k=6", f"--model.nonlocal_features={FEATURES}"),
            *(["--model.ranker.rounds=3", "--trainer.check_val_every_n_epoch=1"] if name == "boosting" else []),
            f"--trainer.default_root_dir={self.root / name}",
            *("--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false"),
            *("--trainer.accelerator=cpu", *options),
        ]
        rerank(given)

    def run(self, name, number=1):
        return self.root / name / str(number)


def embedded():
    return Synthetic(train=8, dev=4, test=4)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One finished run of four epochs of each kind."""
    made = Runs(tmp_path_factory.mktemp("reranking"))
    for name in KINDS:
        made(name, "--trainer.max_epochs=4")
    return made


def metrics(run, version=0):
    with open(run / "logs" / f"version_{version}" / "metrics.csv", newline="") as file:
        return list(csv.DictReader(file))


@each_kind
def test_a_run_leaves_the_model_of_the_best_epoch(runs, name):
    run, data = runs.run(name), embedded()
    results = json.loads((run / "results.json").read_text())
    assert results["seconds_by_part"].keys() == {"folds", "first model", "features", "second model"}
    logged = [float(line["dev/score"]) for line in metrics(run) if line["dev/score"]]
    assert len(logged) == 4
    best = torch.load(run / "checkpoints" / "best.ckpt", weights_only=True)
    assert best["epoch"] == logged.index(max(logged))
    model = Tagger.load(run / "model")
    assert type(model) is GlobalReranker
    for split in ("dev", "test"):
        metric = SegmentF1(model.labels)
        for batch in model.batches(data.corpus(split), data.eval_batch_size):
            metric.update(model.decode(batch), batch.gold, batch.lengths, batch.sentences)
        assert metric.compute().f1 == pytest.approx(results[split]["score"])
    assert results["dev"]["score"] == pytest.approx(max(logged))
    history = "losses" if name == "boosting" else "mistakes"
    assert torch.equal(getattr(model.ranker, history), best["state_dict"][f"ranker.{history}"])
    assert {file.name for file in (run / "model").iterdir()} == {"model.json", "model.safetensors", "README.md"}


@each_kind
def test_a_saved_model_decides_as_its_strings_say(runs, name):
    model, data = Tagger.load(runs.run(name) / "model"), embedded()
    by_hand, corpus = Naive(model, data.corpus("train").columns["word"]), data.corpus("test")
    decided = decisions(model, corpus, model.decoder.k)
    assert model.decoder.k == 6
    for row in range(len(corpus)):
        listed = by_hand.listed(corpus, row, 6)
        wanted = total_scores(model, listed)
        assert decided[row] == listed[wanted.index(max(wanted))][0]


def test_logged_objective(runs):
    with open(runs.run("boosting") / TABLE, newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["number"]) for row in rows] == list(range(1, 13))
    logged = [float(line["train/objective"]) for line in metrics(runs.run("boosting")) if line["train/objective"]]
    assert logged == pytest.approx([float(row["loss"]) for row in rows[2::3]])
    voted = [float(line["train/objective"]) for line in metrics(runs.run("voted")) if line["train/objective"]]
    saved = torch.load(runs.run("voted") / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    assert saved["ranker.mistakes"].tolist() == voted


@each_kind
def test_interrupted_run_ends_in_the_same_bits(runs, tmp_path, name, monkeypatch):
    made = Runs(tmp_path, runs.candidates)
    kind = {"boosting": Boosting, "voted": VotedPerceptron}[name]
    epoch, done = kind.epoch, []

    def stopped(self):
        if len(done) == 2:
            raise MemoryError
        done.append(1)
        epoch(self)

    monkeypatch.setattr(kind, "epoch", stopped)
    with pytest.raises(MemoryError):
        made(name, "--trainer.max_epochs=4")
    monkeypatch.undo()
    assert not (made.run(name) / "model").exists()
    made(name, "--trainer.max_epochs=4", "--ckpt_path=last")
    a, b = runs.run(name), made.run(name)
    last = [torch.load(run / "checkpoints" / "last.ckpt", weights_only=True) for run in (a, b)]
    assert [(one["epoch"], one["global_step"]) for one in last] == [(3, 4), (3, 4)]
    assert_same(*(one["state_dict"] for one in last))
    assert_same(*(load_file(run / "model" / "model.safetensors") for run in (a, b)))
    assert (a / "model" / "model.json").read_bytes() == (b / "model" / "model.json").read_bytes()
    assert dev_scores(a) == dev_scores(b)
    assert len(metrics(b)) < len(metrics(a))
    if name == "boosting":
        assert (a / TABLE).read_bytes() == (b / TABLE).read_bytes()


def test_without_development_data(runs, tmp_path):
    made = Runs(tmp_path, runs.candidates)
    made("boosting", "--trainer.max_epochs=2", "--data.dev=0")
    model = Tagger.load(made.run("boosting") / "model")
    assert len(model.ranker.losses) == 6
    whole = torch.load(runs.run("boosting") / "checkpoints" / "last.ckpt", weights_only=True)["state_dict"]
    assert torch.equal(model.ranker.losses, whole["ranker.losses"][:6])


def test_no_resuming_with_other_strings(runs):
    with pytest.raises(InputError) as error:
        runs("boosting", "--trainer.max_epochs=5", "--ckpt_path=last", "--model.min_sequences=1")
    assert "strings" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "command", "split"), [("boosting", "validate", "dev"), ("voted", "test", "test")])
def test_checkpoints_are_scored_as_the_model(runs, capsys, name, command, split):
    results = json.loads((runs.run(name) / "results.json").read_text())
    runs(name, "--ckpt_path=best", command=[command])
    assert f"FB1:  {100 * results[split]['score']:.2f}" in capsys.readouterr().out


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The test split as columns."""
    path, corpus = tmp_path_factory.mktemp("text") / "test.conll", embedded().corpus("test")
    write_conll(path, corpus, ["word", "label"])
    return str(path)


@each_kind
def test_commands_take_the_model(runs, capsys, name, file):
    model = str(runs.run(name) / "model")
    tagger, corpus = Tagger.load(model), embedded().corpus("test")
    assert main(["tag", model, file, "--columns", "word", "_"]) == 0
    lines = without_names(capsys.readouterr().out).splitlines()
    rows = [line.split() for line in lines if line and "DOCSTART" not in line]
    assert [row[-1] for row in rows] == [label for one in tagger.label(corpus) for label in one]
    assert main(["tag", model, file, "--columns", "word", "_", "-k", "2"]) == 0
    scores = [float(line.split()[3]) for line in capsys.readouterr().out.splitlines() if line.startswith("# ")]
    assert scores == pytest.approx([one.score for found in tagger.candidates(corpus, 2) for one in found], rel=1e-5)
    assert main(["candidates", model, file, "--n", "1", "6"]) == 0
    results = json.loads((runs.run(name) / "results.json").read_text())
    assert f"{100 * results['test']['score']:.2f}" in capsys.readouterr().out.splitlines()[2]
    assert main(["weights", model, "--top", "4"]) == 0
    text = capsys.readouterr().out
    assert "LexiconShapes(typed=False): largest weights" in text
    assert "FirstScore: largest weights" in text
    assert "#" not in text


def test_explain_takes_the_model(runs, capsys, file):
    assert main(["explain", str(runs.run("boosting") / "model"), file, "--document", "3"]) == 0
    assert "total score" in capsys.readouterr().out
    assert main(["explain", str(runs.run("voted") / "model"), file]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "predict: average" in err


def test_runs_are_compared(runs, capsys):
    assert main(["compare", *(str(runs.run(name)) for name in KINDS), "--split", "dev"]) == 0
    assert "McNemar" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            "--model.nonlocal_features=[structperc.nonlocal_features.PhraseConsistency]",
            "PhraseConsistency is not a GlobalFeature",
        ),
        ("--model.ranker=structperc.reranking.FirstScore", "FirstScore is not a Ranker"),
        ("--model.correct=nonsense", "'closest', 'gold'"),
        (f"--model.nonlocal_features=[{ABSENT}]", "no.txt"),
        ("--trainer.gradient_clip_val=1", "trainer.gradient_clip_val: "),
    ],
)
def test_mistakes_are_one_line(tmp_path, option, message, refused):
    assert message in refused(Runs(tmp_path), "voted", option)


@pytest.mark.parametrize(("name", "kind"), [("boosting", GlobalReranker), ("reranking1", Reranker)])
def test_both_kinds_of_rerankers_are_built(monkeypatch, tmp_path, name, kind):
    built = []
    monkeypatch.setattr(Program, "run", lambda self: self.build(tmp_path) or built.append(self.model))
    root = f"--trainer.default_root_dir={tmp_path}"
    rerank(["-c", str(CONFIGS / f"{name}.yaml"), root, "--trainer.accelerator=cpu"])
    assert [type(model) for model in built] == [kind]


def test_options_of_the_trainer_about_gradients(tmp_path):
    made = make_reranker(tmp_path)
    plain = Reranker(make_first(), FirstScore(), MarginLoss(C=1), KBest(3), [PhraseConsistency()])
    for option in ("accumulate_grad_batches", "gradient_clip_val"):
        trainer = pl.Trainer(logger=False, enable_checkpointing=False, **QUIET, **{option: 2})
        check_trainer(trainer, plain)
        with pytest.raises(InputError, match=f"trainer.{option}: "):
            check_trainer(trainer, made)
    check_trainer(pl.Trainer(logger=False, enable_checkpointing=False, **QUIET), made)
