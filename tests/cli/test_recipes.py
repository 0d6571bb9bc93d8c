"""structperc init --learner: recommended configurations, and what follows with the models of each learner."""

import json
from pathlib import Path

import pytest

from structperc.cli.recipes import LEARNERS
from structperc.experiments.experiment import dry_run
from structperc.training.overlays import read_configuration
from tests.cli.conftest import COLUMNS, TREEBANK
from tests.encoders.tiny_models import save_bert

CHUNKS = "He PRP B-NP\nleft VBD B-VP\nin IN B-PP\nMay NNP B-NP\n\n" * 12
CLUSTERS = "0101\tAnna\t3\n0110\tRome\t2\n"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder") / "bert"
    save_bert(folder, num_hidden_layers=4)
    return str(folder)


@pytest.fixture
def recipe(tmp_path, monkeypatch, run):
    """The configuration of a text, merged with its overlays."""
    monkeypatch.chdir(tmp_path)

    def recipe(text, *options):
        Path("train.txt").write_text(text, encoding="utf-8")
        Path("own.yaml").write_text(run("init", "train.txt", *options), encoding="utf-8")
        return read_configuration("own.yaml")

    return recipe


# -- configurations -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "recommended"), [(COLUMNS, "entities_words"), (CHUNKS, "chunks"), (TREEBANK, "parts_of_speech")]
)
def test_recommended_configurations(recipe, text, recommended):
    expected = read_configuration(f"pkg:best/{recommended}")
    found = recipe(text, "--learner", "pa")
    assert {**found, "data": None, "seed_everything": 1} == {**expected, "data": None, "seed_everything": 1}


@pytest.mark.parametrize(
    ("learner", "recommended"), [("frozen", "pretrained_entities#frozen"), ("fine-tuned", "fine_tuning_entities#crf")]
)
def test_recommended_configurations_with_encoders(recipe, encoder, learner, recommended):
    text = json.dumps(read_configuration(f"pkg:studies/{recommended}"))
    expected = json.loads(text.replace("${STRUCTPERC_ENCODER:-google-bert/bert-base-cased}", encoder))
    found = recipe(COLUMNS, "--learner", learner, "--encoder", encoder)
    assert {**found, "data": None, "seed_everything": 1} == {**expected, "data": None, "seed_everything": 1}


def test_columns_of_parts_of_speech_have_the_name_that_templates_read(recipe):
    assert recipe(CHUNKS)["data"]["init_args"]["columns"] == ["word", "pos", "label"]


@pytest.mark.parametrize("learner", ["crf", "frozen"])
def test_clusters_and_gazetteers(recipe, tmp_path, encoder, learner):
    (tmp_path / "clusters.tsv").write_text(CLUSTERS)
    (tmp_path / "names.txt").write_text("Anna\nBo\n")
    options = ["--encoder", encoder] if learner == "frozen" else []
    recipe(COLUMNS, "--learner", learner, "--clusters", "clusters.tsv", "--gazetteers", "names.txt", *options)
    features = dry_run(["-c", "own.yaml", "--trainer.accelerator=cpu"]).model.features
    assert features.clusters
    assert features.gazetteers


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--learner", "frozen"], "--encoder"),
        (["--learner", "fine-tuned", "--encoder", "./nowhere"], "nowhere"),
        (["--learner", "pa", "--encoder", "."], "--learner pa"),
        (["--learner", "svm"], "svm"),
        (["--gazetteers", "nowhere.txt"], "nowhere.txt"),
        (["--learner", "fine-tuned", "--encoder", ".", "--clusters", "train.txt"], "--learner fine-tuned"),
    ],
)
def test_mistakes(tmp_path, monkeypatch, fails, options, named):
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(COLUMNS)
    assert named in fails("init", "train.txt", *options)


# -- the commands that follow ---------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=LEARNERS)
def learned(request, begun, encoder):
    """The name of a learner, and what init and fit made with it."""
    options = ["--encoder", encoder] if LEARNERS[request.param].encoder else []
    return request.param, begun("train.txt", COLUMNS, "--learner", request.param, *options)


@pytest.fixture
def pool(file):
    return file("Anna\nleft\n\nBo\nwaits\n\nRome\nsleeps\n", "pool.txt")


def test_choice_of_texts(learned, pool, run, caplog):
    learner, made = learned
    chosen = [json.loads(line) for line in run("select", made.run, pool, "-n", "2").splitlines()]
    assert len(chosen) == 2
    assert ("--learner crf" in caplog.text) == (learner in ("pa", "perceptron"))


def test_probabilities_after_a_temperature(learned, pool, run, fails):
    learner, made = learned
    if learner in ("pa", "perceptron"):
        assert "--learner crf" in fails("tag", made.run, pool, "--probabilities")
    else:
        assert "p_segment" in run("tag", made.run, pool, "--probabilities")
    run("calibrate", made.run, made.folder / "train.txt", "--temperature", "--recall", "0.5")
    assert "p_segment" in run("tag", made.run, pool, "--probabilities", "--bias", "recall")
