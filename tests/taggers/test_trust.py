"""Loading a model runs no code that its user did not allow, whatever its files name."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from structperc.chain import KBest
from structperc.cli.main import main
from structperc.criteria import CRFLoss, MCELoss
from structperc.encoders import BiLSTM, WordEmbedding
from structperc.encoders.pretrained import untrained_network
from structperc.errors import InputError
from structperc.features import Clusters, FeatureExtractor, Gazetteer
from structperc.models import Model
from structperc.scorers import Neural
from structperc.taggers.tagger import Tagger
from tests.errors import error_message
from tests.tiny import Sentences, make_tagger, sentences

OWN = """
import pathlib
pathlib.Path({canary!r}).write_text("imported")

from structperc.criteria import CRFLoss

class Own(CRFLoss):
    pass

def Function(**options):
    pathlib.Path({canary!r}).write_text("called")
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A saved likelihood tagger with all resources that a model may have."""
    folder = tmp_path_factory.mktemp("saved")
    data = Sentences(sentences(8))
    features = FeatureExtractor(
        ["w[0]", "gl[0]", "c2[0]"], None, 1, {"gl": Gazetteer(["Rome"])}, Clusters({"Rome": "01"}), progress=False
    )
    features.fit(data.corpus("train"))
    made = make_tagger(data, CRFLoss(), k=1)
    tagger = Tagger(features, made.scorer, made.criterion, made.search)
    tagger.allocate(made.labels)
    for parameter in tagger.parameters():
        parameter.data.fill_(0.5)  # rows of zeros would not be in the file
    tagger.save(folder / "model")
    return folder / "model"


@pytest.fixture
def place(model, tmp_path, monkeypatch):
    """The working folder: a copy of the model, a module that leaves a file where it is imported or called."""
    for file in model.iterdir():
        (tmp_path / "model").mkdir(exist_ok=True)
        (tmp_path / "model" / file.name).write_bytes(file.read_bytes())
    (tmp_path / "own.py").write_text(OWN.format(canary=str(tmp_path / "canary")))
    (tmp_path / "model" / "script.py").write_text(OWN.format(canary=str(tmp_path / "canary")))
    (tmp_path / "text.txt").write_text("Rome B-LOC\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.delitem(sys.modules, "own", raising=False)
    yield tmp_path
    sys.modules.pop("own", None)


def edit(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change model.json as someone does who wants it to be loaded."""
    config = json.loads((folder / "model.json").read_text())
    config = {name: value for name, value in config.items() if name not in ("checksums", "predictor")}
    change(config)
    (folder / "model.json").write_text(json.dumps(config))


def names(path: str, /, *keys: Any, **options: Any) -> Callable[[dict[str, Any]], None]:
    """Has the entry under these keys name a class."""

    def change(config: dict[str, Any]) -> None:
        for key in keys[:-1]:
            config = config[key]
        config[keys[-1]] = path if keys == ("class",) else {"class_path": path, "init_args": options}

    return change


def complaint(folder: Path, **options: Any) -> str:
    message = error_message(Model.load, folder, **options)
    assert message.startswith(f"{folder}: ")
    return message


def readable(folder: Path) -> bool:
    try:
        Model.load(folder)
    except InputError:
        return False
    return True


TOUCH = "touch canary"
CALLS = {
    "a command": names("os.system", "criterion", command=TOUCH),
    "a process": names("subprocess.Popen", "criterion", args=TOUCH, shell=True),
    "a script of the folder": names("runpy.run_path", "search", path_name="model/script.py"),
    "a module of the working folder": names("own.Own", "criterion"),
    "its function": names("own.Function", "nonlocal_features", a=1),
    "its class in place of the tagger": names("own.Own", "class"),
    "evaluated text": names("builtins.eval", "criterion", source="open('canary', 'w')"),
    "a library of the machine": names("ctypes.CDLL", "criterion", name="model/model.json"),
    "code of a hub": names("torch.hub.load", "scorer", repo_or_dir="a/b", model="c"),
    "a function of the library": names("structperc.cli.main.main", "criterion", arguments=["tag", "--help"]),
    "a module that the library imports": names("structperc.cli.main.os.system", "criterion", command=TOUCH),
    "a name that the library imports": names("structperc.models.saving.Path", "criterion"),
    "a part for another place": names("structperc.chain.KBest", "criterion", k=1),
    "a path in place of a list": lambda c: c["features"]["gazetteers"]["gl"].update(phrases="text.txt"),
    "text learned by what reads none": lambda c: c["criterion"].update(learned=["a"]),
    "no name at all": names(["os.system"], "criterion"),
    "no dot": names("eval", "criterion"),
    "an abstract part": names("structperc.criteria.Criterion", "criterion"),
}


@pytest.mark.parametrize("change", CALLS.values(), ids=CALLS)
def test_nothing_is_imported_or_called(place, change):
    edit(place / "model", change)
    before = sorted(place.rglob("*.*"))
    assert "own" not in sys.modules
    complaint(place / "model")
    assert not (place / "canary").exists()
    assert "own" not in sys.modules
    assert sorted(place.rglob("*.*")) == before


@pytest.mark.parametrize("trusted", [["os"], ["own2", "ow"]])
def test_trust_does_not_make_a_function_a_part(place, trusted):
    for path in ("os.system", "subprocess.Popen", "own.Own"):
        edit(place / "model", names(path, "criterion", command=TOUCH))
        complaint(place / "model", trusted=trusted)
    assert not (place / "canary").exists()


ENTRANCES: dict[str, Callable[[], Any]] = {
    "load": lambda: Tagger.load("model"),
    "from_pretrained": lambda: Tagger.from_pretrained("model"),
    "tag": lambda: main(["tag", "model", "text.txt", "--columns", "word", "_"]),
    "candidates": lambda: main(["evaluate", "model", "text.txt", "--candidates", "1"]),
    "explain": lambda: main(["explain", "model", "text.txt"]),
    "weights": lambda: main(["explain", "model"]),
    "decisions": lambda: main(["explain", "model", "text.txt"]),
    "reliability": lambda: main(["evaluate", "model", "text.txt", "--reliability"]),
}


@pytest.mark.parametrize("entrance", ENTRANCES.values(), ids=ENTRANCES)
def test_at_no_entrance(place, entrance, capsys):
    edit(place / "model", names("own.Own", "criterion"))
    try:
        assert entrance() == 2
    except InputError as error:
        print(error, file=sys.stderr)
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "own.Own" in message
    assert "--trust own" in message
    assert not (place / "canary").exists()


def test_trusted_modules_of_init_from(place):
    data = Sentences(sentences(8))
    edit(place / "model", names("own.Own", "criterion"))
    blank = Tagger(FeatureExtractor(["w[0]"]), Neural(BiLSTM([WordEmbedding()])), CRFLoss(), KBest(1))
    with pytest.raises(InputError, match=r"init_from.*own\.Own"):
        Tagger(blank.features, blank.scorer, blank.criterion, KBest(1), init_from="model").build_vocabulary(data)
    assert not (place / "canary").exists()


def test_parts_of_trusted_modules_are_loaded(place):
    edit(place / "model", names("own.Own", "criterion"))
    loaded = Tagger.load(place / "model", trusted=["own"])
    assert type(loaded.criterion).__name__ == "Own"
    assert type(Tagger.from_pretrained(str(place / "model"), trusted=["own"]).criterion).__module__ == "own"


def test_parts_within_parts_are_checked(tmp_path):
    data = Sentences(sentences(8))
    tagger = Tagger(None, Neural(BiLSTM([WordEmbedding(4, 1)], 2)), MCELoss(), KBest(2))
    tagger.build_vocabulary(data)
    tagger.save(tmp_path / "model")
    saved = (tmp_path / "model" / "model.json").read_text()
    for keys in (
        ("scorer", "init_args", "encoder"),
        ("scorer", "init_args", "encoder", "init_args", "inputs", 0),
        ("criterion", "init_args", "measure"),
    ):
        (tmp_path / "model" / "model.json").write_text(saved)
        edit(tmp_path / "model", names("subprocess.Popen", *keys, args=TOUCH))
        assert "subprocess.Popen" in complaint(tmp_path / "model")
        edit(tmp_path / "model", names("structperc.criteria.MarginLoss", *keys, C=1.0))
        assert "is no" in complaint(tmp_path / "model")


def test_an_unknown_entry_of_a_part_is_refused(place):
    edit(place / "model", lambda config: config["criterion"].update(options={"C": 3}))
    assert "criterion: unexpected options" in complaint(place / "model")


def test_a_network_of_many_layers_is_not_built(tmp_path):
    encoder = BiLSTM([WordEmbedding(4, cutoff=1)], hidden=3)
    tagger = Tagger(None, Neural(encoder), CRFLoss(), KBest(1), torch.optim.Adam)
    tagger.build_vocabulary(Sentences(sentences(5)))
    tagger.save(tmp_path / "model")
    edit(tmp_path / "model", lambda config: config["scorer"]["init_args"]["encoder"]["init_args"].update(layers=10**6))
    assert "model.safetensors" in complaint(tmp_path / "model")


def test_networks_of_other_people_are_not_fetched():
    config = {"model_type": "bert", "hidden_size": 8}
    for option in ("auto_map", "quantization_config", "_attn_implementation", "name_or_path"):
        with pytest.raises(InputError, match=option):
            untrained_network({**config, option: {"AutoModel": "someone/model--code.Model"}})


# -- what is damaged ------------------------------------------------------------------------------------------


def test_every_flipped_byte_shows(place, caplog):
    """At places drawn from a seed: weights are refused, a configuration that can still be meant costs a warning."""
    draw = torch.Generator().manual_seed(1)
    for file in ("model.json", "model.safetensors"):
        path = place / "model" / file
        whole = path.read_bytes()
        for at in torch.randint(len(whole), (40,), generator=draw).tolist():
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
            caplog.clear()
            if file == "model.json" and readable(place / "model"):
                assert "model.json" in caplog.text
            else:
                complaint(place / "model")
        path.write_bytes(whole)
    caplog.clear()
    Tagger.load(place / "model")
    assert not caplog.text


WEIGHTS = {
    "NaN": lambda t: t["scorer.node"].view(-1)[0].fill_(torch.nan),
    "infinite": lambda t: t["scorer.transition"].view(-1)[0].fill_(-torch.inf),
    "fewer": lambda t: t.pop("scorer.transition"),
    "more": lambda t: t.update({"scorer.more": torch.zeros(2)}),
    "no keys": lambda t: t.pop("features.node_keys"),
    "another size": lambda t: t.update({"scorer.node": t["scorer.node"][1:].contiguous()}),
    "a key out of range": lambda t: t["features.node_keys"].view(-1)[-1].fill_(2**62),
    "keys out of order": lambda t: t["features.node_keys"].copy_(t["features.node_keys"].flip(0)),
    "negative numbers of keys": lambda t: t["features.node_sizes"].view(-1)[0].fill_(-3),
}


@pytest.mark.parametrize("change", WEIGHTS.values(), ids=WEIGHTS)
def test_invalid_weights(place, change):
    tensors = load_file(place / "model" / "model.safetensors")
    change(tensors)
    save_file(tensors, place / "model" / "model.safetensors")
    edit(place / "model", lambda config: None)
    complaint(place / "model")


ENTRIES = {
    "labels": [["O", "O"], [], "O", [1], ["B-PER"] * 2, None, ["X-PER", "O"]],
    "scheme": ["IOB3", None, 1, ["IOB2"]],
    "unit": ["paragraph", None, 0],
    "features": [None, [], {}, "x"],
    "format": [1, "3", None, True, 3.0],
    "search": [[], {}, {"class_path": "structperc.chain.KBest", "init_args": {"k": 0}}],
    "class": [None, 3, "", "structperc.taggers.GuidedTagger"],
}


@pytest.mark.parametrize("key", ENTRIES)
def test_invalid_entries(place, key):
    saved = (place / "model" / "model.json").read_text()
    for value in ENTRIES[key]:
        (place / "model" / "model.json").write_text(saved)
        edit(place / "model", lambda config, value=value: config.update({key: value}))
        complaint(place / "model")


def test_mismatched_sizes(place):
    many = ["O", *(f"B-{i}" for i in range(1000))]
    edit(place / "model", lambda config: config.update(labels=many))
    assert "(11, 1001)" in complaint(place / "model")


def test_trust_option(place, capsys):
    edit(place / "model", names("own.Own", "criterion"))
    assert main(["explain", "model", "--trust", "own"]) == 0
    assert (place / "canary").read_text() == "imported"
    assert capsys.readouterr().err == ""


def test_folders_do_not_grant_trust(place):
    edit(place / "model", names("own.Own", "criterion"))
    (place / "model" / "config.json").write_text(json.dumps({"trusted": ["own"], "config": {"trusted": ["own"]}}))
    with pytest.raises(InputError):
        Tagger.from_pretrained(place / "model")
    assert not (place / "canary").exists()
