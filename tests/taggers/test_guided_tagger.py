"""Guided learning through the program: the same data, scores, saved models and commands as other taggers."""

import pytest
import torch

from structperc.cli.main import main
from structperc.data.read_options import ReadOptions
from structperc.datamodules.sources import Synthetic
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.guided import ContextFeatures
from structperc.guided.model import GuidedOptimizer
from structperc.models import Model
from structperc.taggers.guided_tagger import GuidedTagger
from structperc.taggers.tagger import Tagger
from structperc.tagging.labelling import FileTagger, OutputOptions
from structperc.training.program import Program, run
from tests.tiny import without_names

CONFIG = """\
seed_everything: 1
trainer: {max_epochs: 2, enable_progress_bar: false, accelerator: cpu}
data:
  class_path: structperc.data.Synthetic
  init_args: {train: 5, dev: 2, test: 1, batch_size: 3}
model:
  class_path: structperc.taggers.GuidedTagger
  init_args:
    features:
      class_path: structperc.features.FeatureExtractor
      init_args: {node: [bias, "w[0]", "w[-1]", "pos[0]"], cutoff: 1}
    context:
      class_path: structperc.guided.ContextFeatures
      init_args: {templates: [shen2007_c], size: 1024}
    beam: 2
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "guided.yaml"
    path.write_text(CONFIG)
    return path


def fitted(config, root, *options):
    program = Program(["fit", "-c", str(config), f"--trainer.default_root_dir={root}", *options])
    program.run()
    return program


def weights(tagger):
    return {name: p.detach().clone() for name, p in tagger.named_parameters()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_fit_saves_the_averages_of_the_best_epoch(config, tmp_path):
    program = fitted(config, tmp_path / "run", "--trainer.max_epochs=1")
    saved = Model.load(tmp_path / "run" / "1" / "model")
    assert type(saved) is GuidedTagger
    (optimizer,) = program.trainer.optimizers
    assert isinstance(optimizer, GuidedOptimizer)
    steps = optimizer.param_groups[0]["steps"]
    assert steps >= program.datamodule.corpus("train").tokens
    checkpoint = torch.load(tmp_path / "run" / "1" / "checkpoints" / "last.ckpt", weights_only=True)
    for name, p in saved.named_parameters():
        assert torch.equal(p, checkpoint["state_dict"][name])
        (state,) = (s for s in checkpoint["optimizer_states"][0]["state"].values() if s["sums"].shape == p.shape)
        raw = state["training_weights"]
        assert torch.equal(p, (raw.double() - state["sums"] / steps).float())
        assert not torch.equal(p, raw)
    (results,) = (tmp_path / "run" / "1").glob("results.json")
    assert '"dev"' in results.read_text()


def test_a_saved_model_labels_as_the_trained_one(config, tmp_path):
    program = fitted(config, tmp_path / "run")
    saved = GuidedTagger.load(tmp_path / "run" / "1" / "model")
    assert same(weights(saved), weights(program.model))
    assert (saved.guided.beam, saved.guided.order) == (2, "easiest")
    sentences = [{"word": ["Nothing", "fell"], "pos": ["NN", "VBD"]}, {"word": ["a"], "pos": ["DT"]}]
    assert saved.tag(sentences) == program.model.tag(sentences)
    assert [len(labels) for labels in saved.tag([*sentences, {"word": [], "pos": []}])] == [2, 1, 0]
    files = {file.name for file in (tmp_path / "run" / "1" / "model").iterdir()}
    assert files == {"model.json", "model.safetensors", "README.md"}


def test_the_size_of_mini_batches_changes_nothing(config, tmp_path):
    one, many = (fitted(config, tmp_path / size, f"--data.batch_size={size}") for size in ("1", "5"))
    assert same(weights(one.model), weights(many.model))
    counts = [program.trainer.callback_metrics["train/updates"] for program in (one, many)]
    assert counts[0] == counts[1] > 0


def test_learning(config, tmp_path):
    program = fitted(config, tmp_path / "run", "--trainer.max_epochs=5", "--data.train=20")
    assert program.model.training_error() < 0.05
    labels = program.model.label(program.datamodule.corpus("train"))
    gold = program.datamodule.corpus("train").columns["label"]
    wrong = sum(a != b for a, b in zip((x for s in labels for x in s), gold, strict=True))
    assert wrong < 0.05 * len(gold)


def test_commands_that_need_a_lattice(config, tmp_path, capsys):
    fitted(config, tmp_path / "run", "--trainer.max_epochs=1")
    model, text = str(tmp_path / "run" / "1" / "model"), tmp_path / "text"
    text.write_text("Nothing NN\nfell VBD\n")
    capsys.readouterr()
    FileTagger(model, read_options=ReadOptions(["word", "pos"])).tag_file(str(text))
    assert without_names(capsys.readouterr().out).startswith("Nothing NN ")
    with pytest.raises(InputError, match=r"GuidedTagger .*-k"):
        FileTagger(model, OutputOptions(k=3), ReadOptions(["word", "pos"])).tag_file(str(text))
    with pytest.raises(InputError, match=r"GuidedTagger.*Tagger"):
        Tagger.load(model)
    assert main(["explain", model]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--data.unit=document", "data.unit: "),
        ("--model.beam=0", "beam "),
        ("--model.context.templates=[t[5]]", "t\\[5\\]"),
    ],
)
def test_bad_options(config, tmp_path, option, said):
    with pytest.raises(InputError, match=said):
        run(["fit", "-c", str(config), f"--trainer.default_root_dir={tmp_path / 'run'}", option])


def test_without_averages_the_last_weights_count():
    data = Synthetic(train=4, dev=1, test=1, batch_size=4)
    made = GuidedTagger(FeatureExtractor(["w[0]"], cutoff=1), ContextFeatures(["t[-1]"]), 1, average=False)
    made.features.fit(data.corpus("train"))
    made.allocate(data.label_set())
    optimizer = made.configure_optimizers()
    made.guided.learn(made.encode(data.corpus("train")).flat([0, 1, 2, 3]), optimizer)
    raw = weights(made)
    with optimizer.evaluation_weights():
        assert same(weights(made), raw)
    assert any(p.any() for p in raw.values())
