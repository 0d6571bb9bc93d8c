"""Sets of labels: reading, conversion between schemes by enumeration, errors."""

from itertools import product

import pytest

from structperc.data import Corpus, LabelSet
from structperc.data.label_sets import allowed_labels, convert_label_sets, open_other_types
from structperc.data.survey import inspect_file
from structperc.data.tag_schemes import convert, first_violation
from structperc.datamodules import Combined, Conll, Table
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


ROWS = """{"text": "Anna met Jo Fox in Rome.", "spans": [[0, 4, "PER"]], "complete": false, "not": [[9, 15, "ORG"]]}
{"text": "Yes.", "spans": []}
"""


def test_spans_of_incomplete_texts(tmp_path):
    (tmp_path / "t.jsonl").write_text(ROWS)
    columns = {"text": "text", "spans": "spans", "complete": "complete", "not": "not"}
    corpus = Table(str(tmp_path), {"train": "t.jsonl"}, columns).corpus("train")
    unknown = ["?"] * 3
    wanted = ["B-PER", "!I-PER", "!B-ORG|I-ORG", "!B-ORG|I-ORG", *unknown, "O", "O"]
    assert list(corpus.columns["allowed"]) == wanted
    (tmp_path / "t.jsonl").write_text(ROWS.replace("9, 15", "0, 4").replace('"ORG"', '"PER"'))
    with pytest.raises(InputError, match=r"t.jsonl:1"):
        Table(str(tmp_path), {"train": "t.jsonl"}, columns).corpus("train")


def test_survey_counts_sets_and_words_are_no_sets(tmp_path):
    (tmp_path / "t.conll").write_text("Anna B-PER\n? ?\nOslo B-LOC|B-ORG\n? O\n")
    survey = inspect_file(str(tmp_path / "t.conll"))
    assert dict(survey.sets) == {"?": 1, "B-LOC|B-ORG": 1}
    assert (survey.scheme, survey.illegal) == ("IOB2", [])
    assert list(survey.corpus.columns["word"]) == ["Anna", "?", "Oslo", "?"]


def test_combined_corpora(tmp_path):
    (tmp_path / "a.txt").write_text("Anna B-PER\nsaw O\n")
    (tmp_path / "b.txt").write_text("Oslo B-LOC\nand O\nAnna B-PER\n")
    columns = ["word", "label"]
    names = Conll(str(tmp_path), {"train": "a.txt"}, columns, annotated_types=["PER"])
    both = Combined([names, Conll(str(tmp_path), {"train": "b.txt", "dev": "b.txt"}, columns)])
    assert both.corpus("train").columns["allowed"] == ["B-PER", "!B-PER|I-PER", "B-LOC", "O", "B-PER"]
    assert both.label_set().type_names == ("LOC", "PER")
    assert "allowed" not in both.corpus("dev").columns
    typo = Conll(str(tmp_path), {"train": "a.txt"}, columns, annotated_types=["LOC", "PERS"])
    with pytest.raises(InputError, match=r"sources\[1\].annotated_types.*'PERS'.*LOC, PER; .*PER"):
        Combined([both, typo]).corpus("train")


def test_sets_with_o_are_open_for_types_of_other_corpora():
    corpus = Corpus.from_sentences([{"word": ["Anna", "saw"], "label": ["O", "O"], "allowed": ["B-PER|O", "!O"]}])
    assert open_other_types(corpus, "IOB2", ["PER"]).columns["allowed"] == ["!I-PER", "!O"]


def test_errors_name_line_and_token(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"t.conll:2: token 'Lind'"):
        conll("Anna O\nLind I-PER|I-ORG\n").corpus("train")
    with pytest.raises(InputError, match=r"t.conll:3: token 'left'.*X-PER"):
        conll("Anna O\nLind ?\nleft X-PER|O\n").corpus("train")
    with pytest.raises(InputError, match="types"):
        conll("Anna ?\n", types={"PER": "NAME"})
