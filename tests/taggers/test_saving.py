"""Saved models: whole or not at all, self-contained, without pickle, and clear about what is wrong with them."""

import json
import os
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from structperc.chain import KBest
from structperc.criteria import CRFLoss, MarginLoss, PerceptronLoss
from structperc.data import output
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.features import Clusters, FeatureExtractor, Gazetteer
from structperc.models import hub
from structperc.models import model_format as model_files
from structperc.models import saving as store
from structperc.scorers import SparseLinear
from structperc.taggers.tagger import Tagger
from tests.errors import error_message

SENTENCES = [["Anna", "saw", "New", "York"], ["rome", "waits"], ["Smith"], ["New", "Anna", "saw", "Rome", "ab"]]
TEMPLATES = ["bias", {"of": ["w", "wl", "p2", "s1"], "at": [-1, 0, 1]}, "wl[-1]|wl[0]"]


def tagger(seed=0, edge=None, criterion=None, k=1, **resources):
    """A tagger of random weights."""
    features = FeatureExtractor(
        TEMPLATES + [f"{name}[0]" for name in resources.pop("attributes", [])], edge, 1, **resources
    )
    corpus = Corpus.from_sentences([{"word": words} for words in SENTENCES])
    features.fit(corpus)
    made = Tagger(features, SparseLinear(sparse_grad=False), criterion or PerceptronLoss(), KBest(k))
    made.allocate(LabelSet.from_corpus(["O", "B-PER", "B-LOC"], "IOB2"))
    torch.manual_seed(seed)
    for parameter in made.scorer.parameters():
        torch.nn.init.normal_(parameter)
    return made


def assert_same(a, b):
    """Equal labels and equal scores, also for words that training has not seen."""
    sentences = [*SENTENCES, ["unseen", "Rome", "words"], ["Ü", "𝔘", "a|b"]]
    assert a.tag(sentences) == b.tag(sentences)
    assert a.kbest(sentences, 3) == b.kbest(sentences, 3)


@pytest.fixture
def saved(tmp_path):
    """A saved model and what it tags."""
    tagger().save(tmp_path / "model")
    return tmp_path / "model"


def complaint(folder):
    message = error_message(Tagger.load, folder)
    assert str(folder) in message
    return message


# -- round trips ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [{"edge": TEMPLATES}, {"criterion": CRFLoss()}, {"criterion": MarginLoss(C=12.5), "k": 2}],
    ids=["same edges", "likelihood", "margin"],
)
def test_loaded_equals_saved(tmp_path, options):
    original = tagger(**options)
    original.save(tmp_path / "model")
    loaded = Tagger.load(tmp_path / "model")
    assert_same(loaded, original)
    assert (loaded.labels, loaded.unit, loaded.search.k) == (original.labels, original.unit, original.search.k)
    assert loaded.vocabulary() == original.vocabulary()
    assert type(loaded.criterion) is type(original.criterion)
    assert loaded.scorer.sparse_grad is False
    assert not loaded.training


def test_saving_a_loaded_model_changes_no_byte(saved, tmp_path):
    Tagger.load(saved).save(tmp_path / "again")
    for file in saved.iterdir():
        assert (tmp_path / "again" / file.name).read_bytes() == file.read_bytes()


def test_only_json_and_safetensors_and_the_card(saved, trained):
    for folder in (saved, trained.folder / "model"):
        assert {file.name for file in folder.iterdir()} == {"model.json", "model.safetensors", "README.md"}
        assert json.loads((folder / "model.json").read_text(encoding="utf-8"))["format"] == model_files.FORMAT
        tensors = load_file(folder / "model.safetensors")
        assert {"scorer.node", "features.node_keys"} <= tensors.keys()


def test_saved_model_is_self_contained(tmp_path):
    lists, paths = tmp_path / "places.txt", tmp_path / "paths.tsv"
    lists.write_text("New York\nRome\n")
    paths.write_text("0101\tAnna\t3\n0110\tRome\t2\n")
    resources = {"gazetteers": {"gl": Gazetteer(lists)}, "clusters": Clusters(paths), "attributes": ["gl", "c2", "c4"]}
    original = tagger(**resources)
    assert {"gl[0]=B", "gl[0]=I", "c4[0]=0110"} <= set(original.features.index.names("node"))
    original.save(tmp_path / "model")
    shutil.move(tmp_path / "model", tmp_path / "elsewhere")
    for file in (lists, paths):
        file.unlink()
    assert str(tmp_path) not in (tmp_path / "elsewhere" / "model.json").read_text()
    assert_same(Tagger.load(tmp_path / "elsewhere"), original)


# -- saving over a model --------------------------------------------------------------------------------------


def test_replacement_of_a_model(saved):
    tagger(seed=1).save(saved)
    assert_same(Tagger.load(saved), tagger(seed=1))
    assert Tagger.load(saved).kbest(SENTENCES, 1) != tagger(seed=0).kbest(SENTENCES, 1)
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("file", ["model.json", "model.safetensors"])
def test_full_disk_keeps_the_old_model(saved, monkeypatch, file):
    def full(*_, **__):
        raise OSError("no space left on device")

    if file == "model.json":
        monkeypatch.setattr(Path, "write_text", full)
    else:
        monkeypatch.setattr(store, "save_file", full)
    with pytest.raises(InputError, match=r"model: .*\(no space"):
        tagger(seed=1).save(saved)
    assert_same(Tagger.load(saved), tagger(seed=0))
    with pytest.raises(InputError, match=r"new: .*\(no space"):
        tagger().save(saved.parent / "new")
    assert [path.name for path in saved.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("moves", range(4))
def test_failing_moves(saved, monkeypatch, moves):
    done = []

    def failing(source, target, replace=os.replace):
        if len(done) == moves:
            raise OSError("input/output error")
        done.append(target)
        replace(source, target)

    monkeypatch.setattr(output.os, "replace", failing)
    new = tagger(seed=1)
    try:
        new.save(saved)
    except InputError:
        new = tagger(seed=0)
    assert_same(Tagger.load(saved), new)


# -- what cannot be loaded ------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["model.json", "model.safetensors"])
@pytest.mark.parametrize("content", [None, b"\x00\xff garbage", b"[]", "cut short"])
def test_damaged_files(saved, file, content):
    path = saved / file
    if content is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-20] if content == "cut short" else content)
    message = complaint(saved)
    assert content is not None or file in message


@pytest.mark.parametrize("key", ["labels", "scorer", "format"])
def test_missing_entry(saved, key):
    config = json.loads((saved / "model.json").read_text())
    del config[key]
    (saved / "model.json").write_text(json.dumps(config))
    assert key in complaint(saved)


def test_other_folders_and_formats(saved, tmp_path):
    complaint(tmp_path / "nowhere")
    config = json.loads((saved / "model.json").read_text())
    (saved / "model.json").write_text(json.dumps({**config, "format": 99}))
    assert "99" in complaint(saved)


@pytest.mark.parametrize("path", ["structperc.criteria.Gone", "no_such_package.Criterion"])
def test_class_without_module(saved, path):
    config = json.loads((saved / "model.json").read_text())
    config["criterion"]["class_path"] = path
    (saved / "model.json").write_text(json.dumps(config))
    assert path in error_message(Tagger.load, saved)


def test_a_silent_hub_is_one_line(monkeypatch):
    def silent(model_id, **options):
        raise ConnectionError("no answer\nat all")

    monkeypatch.setattr(hub, "snapshot_download", silent)
    with pytest.raises(InputError, match=r"^hub someone/model: .*no answer at all\)$"):
        Tagger.from_pretrained("someone/model")
