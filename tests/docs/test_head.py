"""The examples of docs/get_started/head.md run and learn what they are shown."""

import re

import pytest
import torch

from structperc.nn import TokenTagger
from tests.docs.written import blocks

NAMES = "whole model,its spans,BiLSTM,legal,candidates,transformers,new text,Lightning,pytorch-crf,its weights"
EXAMPLES = {name: number for number, name in enumerate(NAMES.split(","))}


def example(name):
    return blocks("get_started/head", "python")[EXAMPLES[name]]


def run(name, names=None):
    names = {"__name__": name} if names is None else names
    torch.manual_seed(0)
    exec(compile(example(name), f"head.md, {name}", "exec"), names)
    return names


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_short(name):
    assert len([line for line in example(name).splitlines() if line]) <= 30


def test_a_bilstm(capsys):
    names = run("BiLSTM")
    assert capsys.readouterr().out.strip() == str(names["gold"].tolist())


def test_legal_labels_candidates_and_confidence(capsys):
    run("candidates", run("legal"))
    printed = re.findall(r"print\(.*\)  # (.*)$", example("legal") + example("candidates"), re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == printed


def test_lightning():
    names = run("Lightning")
    assert torch.equal(names["predicted"], names["gold"])


@pytest.fixture
def transformers(tmp_path, monkeypatch):
    """Skips the test where the Trainer of transformers cannot run; the current folder is empty."""
    pytest.importorskip("transformers", reason="transformers is not installed: pip install structperc[neural]")
    pytest.importorskip("accelerate", reason="the Trainer of transformers needs accelerate: pip install accelerate")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("transformers")
def test_a_transformer_under_its_own_trainer(tmp_path, capsys):
    names = run("transformers")
    assert names["predicted"].tolist() == names["collate"](names["rows"])["labels"].tolist()
    names["trainer"].save_model(tmp_path / "saved")
    assert (tmp_path / "saved" / "model.safetensors").is_file()
    capsys.readouterr()
    run("new text", names)
    assert str([(0, 4, "PER"), (9, 11, "PER")]) in capsys.readouterr().out


@pytest.fixture
def tiny_bert(transformers, tmp_path):
    """A folder in place of google-bert/bert-base-cased, from which the examples load."""
    from tests.encoders.tiny_models import save_bert

    save_bert(tmp_path / "google-bert" / "bert-base-cased")


@pytest.mark.usefixtures("tiny_bert")
def test_a_whole_model():
    names = run("whole model")
    assert run("its spans", {**names})["tagger"].tag(names["sentences"]) == names["tagger"].tag(names["sentences"])


@pytest.mark.usefixtures("tiny_bert")
def test_code_of_token_tagger():
    names = {"__name__": "token_tagger"}
    for code in blocks("how_to/token_tagger", "python"):
        exec(compile(code, "token_tagger.md", "exec"), names)
    assert "eval_f1" in {key for row in names["trainer"].state.log_history for key in row}


@pytest.mark.usefixtures("tiny_bert")
def test_code_of_lora():
    """The merged models predict what the adapted ones do."""
    pytest.importorskip("peft", reason="adapters need peft: pip install peft")
    names = {"__name__": "lora"}
    for code in blocks("how_to/lora", "python"):
        exec(compile(code, "lora.md", "exec"), names)
    assert names["merged"].tag(names["sentences"]) == TokenTagger.from_pretrained("entities").tag(names["sentences"])
    batch = names["collate"](names["rows"])
    adapted, merged = (names[name].eval()(**batch)["predicted"] for name in ("own", "network"))
    assert torch.equal(adapted, merged)
    assert not any("lora" in name for name, _ in names["network"].named_parameters())


def test_pytorch_crf():
    names = run("pytorch-crf")
    assert [len(row) for row in names["best"]] == [4, 2]
    run("its weights", names)
    expected = -names["crf"](names["emissions"], names["tags"], names["mask"], reduction="mean")
    torch.testing.assert_close(names["same"], expected)
