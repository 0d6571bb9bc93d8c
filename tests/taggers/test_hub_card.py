"""The card of a saved model: what it says, that its code runs, and that nothing else depends on it."""

import re
import subprocess

import pytest
from huggingface_hub import ModelCard

from structperc.chain import KBest
from structperc.cli.main import main
from structperc.criteria import PerceptronLoss
from structperc.models.hub import LARGEST, code, code_block, foreign_modules, hub_card
from structperc.taggers import Tagger
from tests.tiny import Sentences, make_tagger, sentences, without_names


@pytest.fixture
def saved(tmp_path):
    make_tagger(Sentences(sentences(8)), PerceptronLoss(), KBest(1)).save(tmp_path / "model")
    return tmp_path / "model"


def blocks(text, language):
    return re.findall(f"```{language}\n(.*?)```", text, re.DOTALL)


def test_card_of_a_tagger_from_python(saved):
    text = (saved / "README.md").read_text()
    data = ModelCard(text).data
    assert (data.library_name, data.pipeline_tag) == ("structperc", "token-classification")
    assert "model-index" not in data.to_dict()
    assert "## Scores" not in text
    assert all(f"`{label}`" in text for label in Tagger.load(saved).labels.names)


def test_the_code_of_a_card_runs(trained, monkeypatch, capsys):
    """Python, and the command line, in the folder above the model."""
    monkeypatch.chdir(trained.folder)
    text = (trained.folder / "model" / "README.md").read_text()
    (python,) = blocks(text, "python")
    exec(compile(python, "card", "exec"), {})
    (labels,) = eval(capsys.readouterr().out)
    assert len(labels) == 5
    printf, command = blocks(text, "bash")[0].splitlines()
    monkeypatch.chdir(trained.folder.parent)
    (trained.folder.parent / "model").symlink_to(trained.folder / "model")
    subprocess.run(printf, shell=True, check=True)
    assert main(command.split()[1:]) == 0
    assert [line.split()[-1] for line in without_names(capsys.readouterr().out).split("\n") if line] == labels


def test_card_of_a_trained_model(trained):
    text = (trained.folder / "model" / "README.md").read_text()
    assert "| train | `embedded corpus (train)` | 20 |" in text
    assert "--trainer.max_epochs=2" in text
    assert re.search(r"\| test, type \|.*\n.*\n\| `LOC` \|", text)
    assert "class_path: structperc.criteria.PerceptronLoss" in text
    assert "2 epochs, of which number" in text


def test_card_after_loading(saved, tmp_path):
    (saved / "README.md").write_text("# mine\n")
    Tagger.load(saved).save(tmp_path / "again")
    assert (tmp_path / "again" / "README.md").read_text() == "# mine\n"
    for content in (None, b"\xff\xfe\x00", b"x" * (LARGEST + 1)):
        (saved / "README.md").unlink() if content is None else (saved / "README.md").write_bytes(content)
        assert Tagger.load(saved).card is None


def test_card_after_further_training(saved):
    import pytorch_lightning as pl

    tagger, data = Tagger.load(saved), Sentences(sentences(8))
    tagger.card = "# scores of before\n"
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    pl.Trainer(max_epochs=0, accelerator="cpu", enable_model_summary=False, **quiet).fit(tagger, datamodule=data)
    assert tagger.card is None


def test_foreign_modules():
    config = {"class": "structperc.taggers.Tagger", "a": [{"class_path": "own.X", "init_args": {}}]}
    assert foreign_modules(config) == ["own"]
    assert foreign_modules({"class": "mine.deep.Tagger"}) == ["mine.deep"]


def test_card_without_marks():
    text = "---\nlicense: mit\n---\n# mine\n"
    assert hub_card(text, {"class": "structperc.taggers.Tagger"}, "me/x", None, []) == text


@pytest.mark.parametrize("text", ["a|b", "`", "``a", "a\nb", "<b>"])
def test_labels_with_special_characters(text):
    cell = code(text)
    assert "\n" not in cell
    assert not re.search(r"(?<!\\)\|", cell)


def test_end_of_a_block():
    ticks, *_ = code_block("a\n````\nb", "yaml").partition("yaml")
    assert ticks == "`````"
