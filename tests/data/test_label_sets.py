"""Sets of labels: reading, conversion between schemes by enumeration, errors."""

from itertools import product

import pytest

from structperc.data import LabelSet
from structperc.data.label_sets import allowed_labels, convert_label_sets
from structperc.data.tag_schemes import convert, first_violation
from structperc.datamodules import Conll
from structperc.errors import InputError

TYPES = ["ORG", "PER"]
SETS = {
    "IOB1": ["I-PER", "?", "B-PER|I-ORG", "!I-PER|B-PER"],
    "IOB2": ["B-PER|B-ORG", "?", "!B-PER|I-PER", "O|I-ORG"],
    "IOBES": ["S-PER|B-PER", "!O", "E-PER|O", "?"],
}


def names(scheme):
    return LabelSet.from_corpus([f"{'I' if scheme == 'IOB1' else 'B'}-{kind}" for kind in TYPES], scheme).names


def sets_of(texts, scheme):
    """Return the allowed labels of each token."""
    labels = LabelSet(names(scheme), scheme)
    masks = [allowed_labels(text, labels, lambda: "") for text in texts]
    return [{name for name, right in zip(labels.names, mask, strict=True) if right} for mask in masks]


@pytest.mark.parametrize("target", ["IOB1", "IOB2", "IOBES"])
@pytest.mark.parametrize("source", SETS)
def test_conversion_keeps_all_segmentations(source, target):
    for texts in (SETS[source][:3], SETS[source][1:], SETS[source][1::2], SETS[source][:1]):
        legal = [list(path) for path in product(*sets_of(texts, source)) if first_violation(path, source) is None]
        wanted = {tuple(convert(path, source, target)) for path in legal}
        found = product(*sets_of(convert_label_sets(texts, source, target), target))
        converted = {path for path in found if first_violation(path, target) is None}
        assert wanted <= converted
        assert [set(column) for column in zip(*converted, strict=True)] == [
            set(column) for column in zip(*wanted, strict=True)
        ]


def conll(text, **options):
    with open("t.conll", "w") as file:
        file.write(text)
    return Conll(".", {"train": "t.conll"}, ["word", "label"], incomplete=True, **options)


def test_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = conll("Anna B-PER\nLind ?\n\nOslo B-LOC|B-ORG\n\nYes O\nNo I-PER\n")
    corpus = data.corpus("train")
    assert corpus.columns["allowed"] == ["B-PER", "?", "B-LOC|B-ORG", "O", "B-PER"]  # the last one is repaired
    assert data.label_set().type_names == ("LOC", "ORG", "PER")


def test_errors_name_line_and_token(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"t.conll:2: token 'Lind'"):
        conll("Anna O\nLind I-PER|I-ORG\n").corpus("train")
    with pytest.raises(InputError, match="X-PER"):
        conll("Anna O\nLind ?\nleft X-PER|O\n").corpus("train")
    with pytest.raises(InputError, match="types"):
        conll("Anna ?\n", types={"PER": "NAME"})
