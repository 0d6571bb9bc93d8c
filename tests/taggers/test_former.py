"""Models that were saved before classes had public paths are loaded, and do as they did."""

import json
from pathlib import Path

import pytest
import torch

from structperc.taggers import BaseTagger

FORMER = Path(__file__).parent / "former"
SAID = json.loads((FORMER / "said.json").read_text())  # what they said when they were saved
KINDS = sorted(folder.name for folder in FORMER.iterdir() if folder.is_dir())


@pytest.fixture
def labelled():
    """Name of a kind -> its tagger, and the sentences as it takes them."""

    def labelled(kind):
        tagger = BaseTagger.load(FORMER / kind)
        sentences = SAID["sentences"]
        return tagger, sentences, [0] * len(sentences) if tagger.unit == "document" else None

    return labelled


@pytest.mark.parametrize("kind", KINDS)
def test_labels_and_scores_are_those_of_then(kind, labelled):
    tagger, sentences, documents = labelled(kind)
    assert tagger.tag(sentences, documents) == SAID[kind]["tags"]
    if "best" in SAID[kind]:
        lists = tagger.candidates(tagger.read(sentences, documents), 3)
        assert [[one.labels for one in best] for best in lists] == [[x for x, _ in best] for best in SAID[kind]["best"]]
        scores = [[score for _, score in best] for best in SAID[kind]["best"]]
        for found, wanted in zip(lists, scores, strict=True):
            assert [one.score for one in found] == pytest.approx(wanted, rel=1e-5)


def test_all_kinds_are_here():
    assert set(KINDS) == SAID.keys() - {"sentences"}
    assert len(KINDS) == 7


def paths(value):
    """All class paths in a model."""
    if isinstance(value, dict):
        own = [value[key] for key in ("class", "class_path") if key in value]
        return own + [path for part in value.values() for path in paths(part)]
    return [path for part in value for path in paths(part)] if isinstance(value, list) else []


@pytest.mark.parametrize("kind", KINDS)
def test_saved_again_they_name_public_paths_and_keep_their_weights(kind, labelled, tmp_path):
    tagger, _, _ = labelled(kind)
    tagger.save(tmp_path / "model")
    said = json.loads((tmp_path / "model" / "model.json").read_text())
    assert paths(said)
    assert all(path.count(".") == 2 for path in paths(said))
    assert any(path.count(".") == 3 for path in paths(json.loads((FORMER / kind / "model.json").read_text())))
    again = BaseTagger.load(tmp_path / "model").state_dict()
    assert all(torch.equal(again[name], tensor) for name, tensor in tagger.state_dict().items())
