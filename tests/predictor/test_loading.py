"""`structperc.load`: which models are light, what is imported for them, and what is said of folders that are none."""

import json
import logging
import shutil
import subprocess
import sys
from copy import deepcopy
from importlib import import_module

import pytest
import torch
from safetensors.torch import load_file, save_file

import structperc
from structperc.chain import KBest
from structperc.compiled_forms import CriterionForm
from structperc.criteria import CRFLoss, HingeLoss, MarginLoss, MCELoss, MEMMLoss, PerceptronLoss
from structperc.errors import InputError
from structperc.features import CaseElsewhere, Clusters, FeatureExtractor, Gazetteer
from structperc.models import ChainModel, Model
from structperc.nonlocal_features import MajorityPhrase
from structperc.online.learner import OnlineLearner
from structperc.predictor.sparse import SparsePredictor
from structperc.scorers import Scorer, SegmentFeatures, SegmentLinear, SparseLinear
from structperc.scorers.base import LinearForm
from structperc.scorers.sparse_linear import sum_features
from structperc.structures import Lattice, real_tokens
from structperc.taggers import Tagger
from structperc.taggers.sequential_learning import sequence_learner
from tests.errors import error_message
from tests.tiny import Sentences, make_tagger, sentences

LIGHT = """
import sys
def heavy():
    return sorted({"torch", "pytorch_lightning", "datasets", "pyarrow", "matplotlib"} & set(sys.modules))

import structperc
model, segments, text, columns, probable = sys.argv[1:]
for folder in (model, segments):
    tagger = structperc.load(folder)
    print(tagger.tag([["Anna", "saw", "Rome"]]), [span.type for span in tagger.annotate("Anna saw Rome.")], heavy())

from structperc.cli.main import main
for form in ("columns", "jsonl", "html", "brat"):
    assert main(["tag", model, text, "--input", "text", "--format", form]) == 0
    print(form, heavy())
assert main(["tag", model, columns]) == 0
print(heavy())
assert main(["tag", probable, columns, "--probabilities"]) == 0
from starlette.testclient import TestClient
from structperc.serving import application
with TestClient(application(structperc.load(probable))) as client:
    print(sorted(client.post("/tag", json={"sentences": [["Rome"]]}).json()), heavy())
"""

COMMANDS = """
import sys
from structperc.cli.main import main
model, labelled = sys.argv[1:]
for name, *arguments in (
    ("evaluate", model, labelled, "--errors"),
    ("explain", model),
    ("select", model, labelled, "--columns", "word", "_"),
    ("evaluate", model, labelled, "--reliability"),
    ("calibrate", model, labelled, "--temperature"),
    ("evaluate", labelled, labelled, "--gold", labelled),
):
    assert main([name, *arguments]) == 0, name
    print("imports of", name, sorted({"pytorch_lightning", "datasets"} & set(sys.modules)))
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A perceptron with all that features may have."""
    data = Sentences(sentences(8))
    features = FeatureExtractor(
        ["w[0]", "gl[0]", "c2[0]", "case[0]"],
        ["w[0]"],
        cutoff=1,
        gazetteers={"gl": Gazetteer(["Rome"])},
        clusters=Clusters({"Rome": "01"}),
        documents={"case": CaseElsewhere()},
        progress=False,
    )
    features.fit(data.corpus("train"))
    tagger = Tagger(features, SparseLinear(), PerceptronLoss(), KBest(1))
    tagger.allocate(data.label_set())
    torch.manual_seed(0)
    for parameter in tagger.parameters():
        torch.nn.init.normal_(parameter)
    folder = tmp_path_factory.mktemp("saved") / "model"
    tagger.save(folder)
    return folder


@pytest.fixture(scope="module")
def with_segments(tmp_path_factory, saved):
    """A perceptron with all that features of segments may have."""
    data, base = Sentences(sentences(8)), tmp_path_factory.mktemp("segments")
    (base / "places.txt").write_text("Rome\n")
    (base / "clusters.tsv").write_text("01\tRome\t1\n")
    files = {"gazetteers": {"gl": str(base / "places.txt")}, "clusters": str(base / "clusters.tsv")}
    segments = SegmentFeatures(["w[all]", "gl[phrase]", "c2[first]"], max_length=4, cutoff=1, **files)
    scorer = SegmentLinear(SparseLinear(), segments)
    tagger = Tagger(FeatureExtractor(["w[0]"], cutoff=1, progress=False), scorer, PerceptronLoss(), KBest(1))
    tagger.build_vocabulary(data)
    torch.manual_seed(0)
    for parameter in tagger.parameters():
        torch.nn.init.normal_(parameter)
    tagger.save(base / "model")
    return base / "model"


@pytest.fixture
def model(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "model")


def child(program, *arguments):
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_imports_of_light_models(saved, with_segments, tmp_path):
    """In Python; in commands, whatever the form of input and output, also with probabilities; in a service."""
    wanted = []
    for folder in (saved, with_segments):
        whole = Tagger.load(folder)
        found = whole.tag([["Anna", "saw", "Rome"]]), [span.type for span in whole.annotate("Anna saw Rome.")]
        wanted.append(f"{found[0]} {found[1]} []")
    text, columns, probable = tmp_path / "text.txt", tmp_path / "columns.txt", tmp_path / "probable"
    text.write_text("Anna saw Rome.\n")
    columns.write_text("Anna x\nsaw y\n\nRome x\n")
    make_tagger(Sentences(sentences(8)), CRFLoss()).save(probable)
    lines = child(LIGHT, saved, with_segments, text, columns, probable).splitlines()
    assert lines[:2] == wanted
    *lines, names, _, first, second, _, third, service = lines[2:]
    assert {f"{form} []" for form in ("columns", "jsonl", "html", "brat")} <= set(lines)
    assert [line.split()[:2] for line in lines[-5:-3]] == [["Anna", "x"], ["saw", "y"]]
    assert lines[-1] == "[]"
    assert [len(line.split()) for line in (names, first, second, third)] == [5, 5, 5, 5]
    assert service == "['labels', 'probabilities'] []"


def test_commands_that_read_models_import_no_trainer(tmp_path):
    make_tagger(Sentences(sentences(8)), CRFLoss()).save(tmp_path / "model")
    (tmp_path / "labelled.txt").write_text("Anna B-PER\nsaw O\n\nRome B-LOC\n")
    printed = child(COMMANDS, tmp_path / "model", tmp_path / "labelled.txt")
    names = "evaluate", "explain", "select", "evaluate", "calibrate", "evaluate"
    assert [line for line in printed.splitlines() if "imports of" in line] == [f"imports of {x} []" for x in names]


# -- which models are light -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "criterion", [PerceptronLoss(), MarginLoss(2.0), HingeLoss(unit="sentence"), CRFLoss(), MCELoss()], ids=type
)
def test_models_of_local_sums_are_light(criterion, tmp_path):
    make_tagger(Sentences(sentences(8)), criterion).save(tmp_path / "model")
    assert type(structperc.load(tmp_path / "model")) is SparsePredictor


@pytest.mark.parametrize(
    "options",
    [
        {"criterion": MEMMLoss()},
        {"criterion": PerceptronLoss(), "nonlocal_features": [MajorityPhrase()]},
    ],
    ids=["local likelihood", "non-local"],
)
def test_other_models_are_whole(options, tmp_path):
    make_tagger(Sentences(sentences(8)), options.pop("criterion"), **options).save(tmp_path / "model")
    assert type(structperc.load(tmp_path / "model")) is ChainModel


# -- parts of users -------------------------------------------------------------------------------------------


class Unpaired(Scorer):
    """Scores of features of tokens alone, as sums of its weights."""

    def allocate(self, n_node, n_edge, n_labels):
        self.table = torch.nn.Parameter(torch.zeros(n_node, n_labels))

    def compiled(self):
        return LinearForm(self.table)

    def forward(self, batch):
        (B, T), L = batch.sentences.shape, self.table.shape[1]
        real = real_tokens(batch.lengths, T).flatten()
        unary = sum_features(self.table, batch.nodes, False, real).view(B, T, L)
        return Lattice(unary, unary.new_zeros(1, 1, L, L), batch.lengths)


class Doubled(SparseLinear):
    """Scores that are no sums of the weights."""

    def forward(self, batch):
        lattice = super().forward(batch)
        return lattice._replace(unary=2 * lattice.unary)


class Stated(Doubled):
    def compiled(self):
        return LinearForm(self.node)


class Again(Stated):
    """Changes what `Stated` says of itself."""

    def forward(self, batch):
        return super().forward(batch)


class Unchanged(CRFLoss):
    def transform_lattice(self, lattice):
        return lattice

    def compiled(self):
        return CriterionForm("Unchanged", True, False)


class Shifted(KBest):
    def scores(self, lattice):
        return lattice._replace(unary=lattice.unary.roll(1, 2))


def tagger_with(scorer, criterion, decoder=None):
    """A tagger with random weights, for sentences of `tests.tiny`."""
    data, features = Sentences(sentences(8)), FeatureExtractor(["w[0]", "w[-1]"], cutoff=1, progress=False)
    features.fit(data.corpus("train"))
    tagger = Tagger(features, scorer, criterion, KBest(2), decoder=decoder)
    tagger.allocate(data.label_set())
    torch.manual_seed(0)
    for parameter in tagger.parameters():
        torch.nn.init.normal_(parameter)
    return tagger.eval()


@pytest.mark.parametrize(("scorer", "criterion"), [(Unpaired, CRFLoss), (SparseLinear, Unchanged)])
def test_parts_of_users_with_a_form_run_no_code(scorer, criterion, tmp_path):
    tagger = tagger_with(scorer(), criterion())
    tagger.save(tmp_path / "model")
    light, text = structperc.load(tmp_path / "model"), [["Anna", "saw", "Rome"], ["Bo"]]
    assert type(light) is SparsePredictor
    corpus = light.read(text)
    found, expected = light.predict(corpus, confident=True), tagger.predict(corpus, confident=True)
    assert found.labels == expected.labels
    torch.testing.assert_close(torch.tensor(found.tokens), torch.tensor(expected.tokens), rtol=1e-5, atol=1e-6)


def test_scorers_of_users_with_a_form_learn_sequence_by_sequence():
    tagger = tagger_with(Unpaired(), PerceptronLoss())
    assert isinstance(sequence_learner(tagger, tagger.new_optimizer()), OnlineLearner)
    other = tagger_with(Doubled(), PerceptronLoss())
    assert sequence_learner(other, other.new_optimizer()) is None


@pytest.mark.parametrize(
    ("scorer", "decoder"), [(Doubled, None), (Again, None), (SparseLinear, Shifted)], ids=["scorer", "again", "decoder"]
)
def test_subclasses_that_change_results_have_no_form(scorer, decoder, tmp_path):
    tagger = tagger_with(scorer(), CRFLoss(), decoder and decoder(1))
    tagger.save(tmp_path / "model")
    with pytest.raises(InputError, match="--trust"):
        structperc.load(tmp_path / "model")
    whole, text = structperc.load(tmp_path / "model", trusted=[__name__]), [["Anna", "saw", "Rome"], ["Bo"]]
    assert type(whole) is ChainModel
    assert whole.tag(text) == tagger.tag(text)


def test_weights_that_other_modules_compute_have_no_form():
    scorer = tagger_with(SparseLinear(), CRFLoss()).scorer
    assert scorer.compiled() is not None
    torch.nn.utils.parametrizations.weight_norm(scorer, "node")
    assert scorer.compiled() is None


# -- what cannot be loaded ------------------------------------------------------------------------------------


def rewrite(model, change):
    """Change the configuration; its checksum tells."""
    config = json.loads((model / "model.json").read_text())
    change(config)
    (model / "model.json").write_text(json.dumps(config))


def retensor(model, change, add_checksums):
    """Change the weights, and perhaps the checksums: as somebody would who means it."""
    tensors = load_file(model / "model.safetensors")
    change(tensors)
    save_file(tensors, model / "model.safetensors")
    if add_checksums:
        from structperc.models.model_format import CHECKSUMS
        from structperc.models.model_format import add_checksums as sealed

        config = json.loads((model / "model.json").read_text())
        del config[CHECKSUMS], config["format"]
        (model / "model.json").write_text(json.dumps(sealed(config, model)))


NODE = "scorer.node"
DAMAGE = {
    "no configuration": lambda m: (m / "model.json").unlink(),
    "no weights": lambda m: (m / "model.safetensors").unlink(),
    "no JSON": lambda m: (m / "model.json").write_text("{"),
    "a list": lambda m: (m / "model.json").write_text("[]"),
    "cut short": lambda m: (m / "model.safetensors").write_bytes((m / "model.safetensors").read_bytes()[:-20]),
    "other format": lambda m: rewrite(m, lambda c: c.update(format=99)),
    "no labels": lambda m: rewrite(m, lambda c: c.pop("labels")),
    "no features": lambda m: rewrite(m, lambda c: c.pop("features")),
    "features of another kind": lambda m: rewrite(m, lambda c: c.update(features=[])),
    "unknown class": lambda m: rewrite(m, lambda c: c["criterion"].update(class_path="structperc.criteria.Gone")),
    "foreign class": lambda m: rewrite(m, lambda c: c["scorer"].update(class_path="foreign.Scorer")),
    "foreign attribute": lambda m: rewrite(
        m, lambda c: c["features"]["documents"]["case"].update(class_path="foreign.Attribute")
    ),
    "other weights": lambda m: retensor(m, lambda t: t.update(own=torch.zeros(1)), add_checksums=False),
    "a weight too many": lambda m: retensor(m, lambda t: t.update(own=torch.zeros(1)), add_checksums=True),
    "a weight missing": lambda m: retensor(m, lambda t: t.pop("scorer.transition"), add_checksums=True),
    "other size": lambda m: retensor(m, lambda t: t.update({NODE: t[NODE][:-1].clone()}), add_checksums=True),
    "not finite": lambda m: retensor(m, lambda t: t[NODE].fill_(torch.nan), add_checksums=True),
    "no keys": lambda m: retensor(m, lambda t: t.pop("features.node_keys"), add_checksums=True),
    "other keys": lambda m: retensor(m, lambda t: t["features.node_keys"].fill_(-1), add_checksums=True),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_damaged_models_are_refused_as_ever(model, damage):
    damage(model)
    assert error_message(lambda: structperc.load(model)) == error_message(lambda: Model.load(model))


SEGMENT_DAMAGE = {
    "a weight missing": lambda t: t.pop("scorer.labels.node"),
    "a weight too many": lambda t: t.update({"scorer.node": torch.zeros(1)}),
    "other size": lambda t: t.update({"scorer.weight": t["scorer.weight"][:-1].clone()}),
    "no keys": lambda t: t.pop("scorer.segments.keys"),
    "other phrases": lambda t: t.update({"scorer.segments.phrases": torch.zeros(9, dtype=torch.int64)}),
}


@pytest.mark.parametrize("damage", SEGMENT_DAMAGE.values(), ids=list(SEGMENT_DAMAGE))
def test_damaged_models_with_segments_are_refused_as_ever(with_segments, damage, tmp_path):
    model = shutil.copytree(with_segments, tmp_path / "model")
    retensor(model, damage, add_checksums=True)
    assert error_message(lambda: structperc.load(model)) == error_message(lambda: Model.load(model))


def test_missing_folder(tmp_path):
    assert error_message(lambda: structperc.load(tmp_path / "nowhere")).startswith(f"{tmp_path / 'nowhere'}: ")
    (tmp_path / "empty").mkdir()
    assert "model.json" in error_message(lambda: structperc.load(tmp_path / "empty"))


@pytest.mark.parametrize(
    "change",
    [
        lambda entry: entry["weights"].update(node="scorer.edge"),
        lambda entry: entry["criterion"].update(probabilistic=True),
        lambda entry: entry["biases"].update(none={"O": 5.0}),
        lambda entry: entry.clear(),
    ],
    ids=["weights", "criterion", "biases", "empty"],
)
def test_changed_entry_of_the_predictor(model, change):
    rewrite(model, lambda config: change(config["predictor"]))
    for load in (structperc.load, Model.load):
        assert "'predictor'" in error_message(lambda load=load: load(model))


def test_invalid_entry_of_the_predictor(model):
    rewrite(model, lambda config: config["predictor"]["biases"].update(none=[5.0]))
    retensor(model, lambda tensors: None, add_checksums=True)
    assert "predictor.biases" in error_message(lambda: structperc.load(model))


def test_model_changed_by_hand(model, caplog):
    rewrite(model, lambda c: c["features"].update(cutoff=7))
    with caplog.at_level(logging.WARNING, "pytorch_lightning.structperc"):
        assert type(structperc.load(model)) is ChainModel
    assert [record.message.count("was changed") for record in caplog.records] == [1]


def test_parts_of_ones_own_need_trust(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from structperc.criteria import CRFLoss\n"
        "class Mine(CRFLoss):\n    probabilistic = True\n"
        "class Reads(Mine):\n    def transform_lattice(self, lattice):\n        return lattice\n"
        "def vowels(word: str) -> str:\n    return ''.join(c for c in word if c in 'aeiou')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    mine = import_module("mine")
    data, text = Sentences(sentences(8)), [["Anna", "Rome"]]
    made = make_tagger(data, mine.Mine())
    made.save(tmp_path / "criterion")
    make_tagger(data, mine.Reads()).save(tmp_path / "transform_lattice")
    features = FeatureExtractor(["w[0]", "vow[0]|vow(word)[-1]"], cutoff=1, attributes={"vow": mine.vowels})
    features.fit(data.corpus("train"))
    own = Tagger(features, deepcopy(made.scorer), PerceptronLoss(), KBest(1))
    own.allocate(made.labels)
    own.save(tmp_path / "attribute")
    monkeypatch.delitem(sys.modules, "mine")

    light = structperc.load(tmp_path / "criterion")  # whose labels are the best of its lattice, criterion or not
    assert (type(light), light.probabilistic) == (SparsePredictor, True)
    whole = Tagger.load(tmp_path / "criterion")
    corpus = light.read(text)
    assert light.predict(corpus, True).labels == whole.predict(corpus, True).labels
    whole.save(tmp_path / "again")
    assert (tmp_path / "again" / "model.json").read_text() == (tmp_path / "criterion" / "model.json").read_text()
    with pytest.raises(InputError, match=r"mine\.Mine "):
        whole.training_step(next(iter(whole.batches(data.corpus("train")))))
    for name in ("transform_lattice", "attribute"):
        assert "--trust mine" in error_message(lambda name=name: structperc.load(tmp_path / name))
    assert "mine" not in sys.modules
    assert type(structperc.load(tmp_path / "transform_lattice", trusted=iter(["mine"]))) is ChainModel
    trusted = structperc.load(tmp_path / "attribute", trusted=["mine"])
    assert type(trusted) is SparsePredictor
    assert trusted.tag(text) == own.tag(text)
    monkeypatch.delitem(sys.modules, "mine")
    (tmp_path / "mine.py").unlink()
    gone = error_message(lambda: structperc.load(tmp_path / "attribute", trusted=["mine"]))
    assert "features.attributes.vow: " in gone
    assert " mine" in gone
