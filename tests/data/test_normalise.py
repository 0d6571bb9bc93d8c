import random

import pytest

from structperc.data.conll import read_conll, read_conll_corpus
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.normalise import (
    check_types,
    checked_corpus,
    count_segments,
    illegal_sentences,
    normalise_labels,
    rename_types,
    warn_unknown_labels,
)
from structperc.data.read_options import ReadOptions
from structperc.data.tag_schemes import convert, first_violation, rename, spans
from structperc.errors import InputError
from tests.errors import error_message


def corpus_of(tmp_path, labels, unit="sentence"):
    """One token per label; "" ends a sentence."""
    file = tmp_path / "a.txt"
    file.write_text("-DOCSTART- O\n" + "".join(f"w {label}\n" if label else "\n" for label in labels))
    return Corpus.from_dataset(read_conll(file, ["word", "label"]), unit, "a.txt")


@pytest.mark.parametrize("unit", ["sentence", "document"])
def test_repair_by_sentence(tmp_path, unit):
    corpus = corpus_of(tmp_path, ["O", "B-A", "", "I-A", "I-A", "B-B"], unit)
    normal, repaired = normalise_labels(corpus, "IOB2", "IOBES")
    assert normal.columns["label"] == ["O", "S-A", "B-A", "E-A", "S-B"]
    assert repaired == 1
    assert normal.columns["word"] == corpus.columns["word"]
    assert corpus.columns["label"] == ["O", "B-A", "I-A", "I-A", "B-B"]


def test_legal_labels_are_not_touched(tmp_path):
    corpus = corpus_of(tmp_path, ["I-A", "B-A", "", "I-A"])
    assert normalise_labels(corpus, "IOB1", "IOB1", strict=True)[0].columns == corpus.columns
    normal, repaired = normalise_labels(corpus, "IOB1", "IOB2", strict=True)
    assert (normal.columns["label"], repaired) == (["B-A", "B-A", "B-A"], 0)


def test_labels_without_scheme(tmp_path):
    corpus = corpus_of(tmp_path, ["NN", "-LRB-", "B-A"])
    normal, repaired = normalise_labels(corpus, "none", "none", strict=True)
    assert (normal.columns["label"], repaired) == (["NN", "-LRB-", "B-A"], 0)
    with pytest.raises(InputError, match=r"f: .*'label'"):
        normalise_labels(Corpus.from_sentences([{"word": ["a"]}], name="f"), "IOB2", "IOB2")


@pytest.mark.parametrize(
    ("labels", "scheme", "message"),
    [
        (["O", "I-A"], "IOB2", "a.txt:3: 'I-A' between 'O' and the end"),
        (["O", "", "I-A", "O"], "IOB2", "a.txt:4: 'I-A' between the beginning and 'O'"),
        (["O", "", "O", "B-A"], "IOBES", "a.txt:5: 'B-A' between 'O' and the end"),
    ],
)
def test_strict(tmp_path, labels, scheme, message):
    found = error_message(normalise_labels, corpus_of(tmp_path, labels), scheme, scheme, strict=True)
    assert found.startswith(message)
    assert "strict: false" in found


def test_no_repair_of_other_schemes(tmp_path):
    for labels, scheme, place, advice in (
        (["O", "", "B-A", "E-A"], "IOB2", "a.txt:5: label 'E-A'", "labels: IOBES"),
        (["B-A", "I-A", "O", "b-A"], "IOB2", "a.txt:5: label 'b-A'", "'B-A'?"),
        (["B-A", "I-A", "O", "x"], "IOB2", "a.txt:5: label 'x'", "correct this line"),
        (["A-b", "A-i", "o"], "IOB2", "a.txt:2: label 'A-b'", "labels: IOB2 TYPE-b"),
        (["NN", "VB", "O"], "IOB2", "a.txt:2: label 'NN'", "scheme: none"),
        (["A_B", "A_I", "O"], "IOB2 TYPE-B", "a.txt:2: label 'A_B'", "labels: IOB2 TYPE_B"),
    ):
        found = error_message(normalise_labels, corpus_of(tmp_path, labels), scheme, "IOB2")
        assert found.startswith(place)
        assert advice in found


def test_other_notations(tmp_path):
    corpus = corpus_of(tmp_path, ["A-b", "A-i", "o", "", "A-i"])
    normal, repaired = normalise_labels(corpus, "IOB2 TYPE-b", "IOBES")
    assert (normal.columns["label"], repaired) == (["B-A", "E-A", "O", "S-A"], 1)
    with pytest.raises(InputError, match=r"a.txt:6: 'A-i'"):
        normalise_labels(corpus, "IOB2 TYPE-b", "IOBES", strict=True)


def test_conll2003(corpora):
    data = read_conll(corpora / "conll2003" / "eng.train", ["word", "pos", "chunk", "label"])
    corpus = Corpus.from_dataset(data, "document", "eng.train")
    normal, repaired = normalise_labels(corpus, "IOB1", "IOB2")
    before, after = (c.sentences_of(c.columns["label"]) for c in (corpus, normal))
    assert [spans(labels) for labels in before] == [spans(labels) for labels in after]
    assert all(first_violation(labels, "IOB2") is None for labels in after)
    assert sum(len(spans(labels)) for labels in after) == 23499
    assert repaired == 2  # two B where nothing of the type stands before
    with pytest.raises(InputError, match=r"^eng.train:152428: 'B-MISC' .*'O' .*'I-MISC'"):
        normalise_labels(corpus, "IOB1", "IOB2", strict=True)


MERGED = {"A": "NAME", "B": "NAME"}


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES", "BILOU"])
def test_renamed_segments_are_the_same_and_legal(scheme):
    draw, given = random.Random(5), ["O", "B-A", "I-A", "B-B", "I-B", "B-C", "I-C"]
    for _ in range(200):
        labels = convert(draw.choices(given, k=7), "IOB2", scheme)
        renamed = rename(labels, scheme, MERGED)
        assert first_violation(renamed, scheme) is None
        expected = [(MERGED.get(span.type, span.type), span.start, span.end) for span in spans(labels)]
        assert [tuple(span) for span in spans(renamed)] == expected


def test_names_may_be_exchanged_and_left_out():
    assert rename(["B-A", "I-A", "B-B"], "IOB2", {"A": "B", "B": "A"}) == ["B-B", "I-B", "B-A"]
    assert rename(["B-A", "I-A", "B-B"], "IOB2", {"A": ""}) == ["B", "I", "B-B"]
    with pytest.raises(InputError, match="'none'"):
        rename(["NN"], "none", {"NN": "N"})


@pytest.mark.parametrize("target", ["IOB1", "IOB2", "IOBES"])
def test_types_of_a_corpus_sentence_by_sentence(tmp_path, target):
    corpus = corpus_of(tmp_path, ["I-A", "I-B", "", "I-B", "I-B", "B-B", "I-C"], "document")
    normal, _ = normalise_labels(corpus, "IOB1", target)
    renamed = rename_types(normal, target, MERGED)
    sentences = [spans(labels) for labels in renamed.sentences_of(renamed.columns["label"])]
    assert sentences == [[("NAME", 0, 1), ("NAME", 1, 2)], [("NAME", 0, 2), ("NAME", 2, 3), ("C", 3, 4)]]
    assert renamed.columns["word"] == corpus.columns["word"]
    assert "I-A" in corpus.columns["label"]


def test_unknown_types(tmp_path):
    corpus = corpus_of(tmp_path, ["B-A", "I-A", "B-C"])
    check_types(corpus, "IOB2", {"A": "X", "C": "B"})
    found = error_message(check_types, corpus, "IOB2", {"A": "X", "B": "X"})
    assert found.startswith("data.types: ")
    assert "'B'" in found


def test_unit_and_scheme_of_a_source():
    assert ReadOptions().or_else("document", "IOB1") == ReadOptions(unit="document", labels="IOB1")
    named = ReadOptions(["word"], "sentence", "IOBES", "latin-1")
    assert named.or_else("document", "IOB1") == named


def test_sequences_of_rows(tmp_path, caplog):
    file = tmp_path / "a.txt"
    file.write_text("-DOCSTART- O\n\nx I-A\ny I-A\n\nz I-B\n\n-DOCSTART- O\n\nv O\n")
    for unit, sequences in (("sentence", 3), ("document", 2)):
        given = read_conll_corpus(file, ["word", "label"], unit=unit)
        corpus = checked_corpus(given, ReadOptions(unit=unit, labels="IOB2"), "IOBES", "at all")
        assert corpus.columns["label"] == ["B-A", "E-A", "S-B", "O"]
        assert len(corpus) == sequences
    assert [message.startswith(f"{file}: 2 labels illegal in IOB2 ") for message in caplog.messages] == [True] * 2
    with pytest.raises(InputError, match=r"a.txt:3: 'I-A' .*IOB2"):
        checked_corpus(given, ReadOptions(unit="sentence", labels="IOB2"), "IOBES", "at all", strict=True)


def test_documents_need_marks(tmp_path):
    file = tmp_path / "a.txt"
    file.write_text("x I-A\n\ny I-A\n")
    corpus, documents = read_conll_corpus(file, ["word"], unit="document"), ReadOptions(unit="document", labels="IOB2")
    with pytest.raises(InputError, match="no document boundaries at all"):
        checked_corpus(corpus, documents, "IOB2", "at all")
    assert list(checked_corpus(corpus, documents._replace(unit="sentence"), "IOB2", "at all").columns) == ["word"]
    single = Corpus.from_sentences([{"word": ["x"]}], unit="document")  # needs no mark
    assert checked_corpus(single, documents, "IOB2", "at all") is single


def test_labels_not_seen_in_training(caplog):
    unseen = [f"B-{i:02}" for i in range(12)]
    corpus = Corpus.from_sentences([{"word": ["w"] * 14, "label": ["O", *unseen, "B-11"]}], name="dev")
    warn_unknown_labels(corpus, LabelSet(("O", "B-X", "I-X")))
    (message,) = caplog.messages
    assert message.startswith("dev: 13 tokens ")
    assert message.endswith(": B-11 (2), " + ", ".join(f"{name} (1)" for name in unseen[:9]) + " and 2 more")


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES"])
def test_illegal_sentences_and_segments(scheme):
    draw = random.Random(scheme)
    names = ["O", "I-X", "I-Y", "B-X", "B-Y", *(["S-X", "E-Y", "E-X"] if scheme == "IOBES" else [])]
    labels = [draw.choices(names, k=draw.randrange(4)) for _ in range(300)]
    corpus = Corpus.from_sentences({"word": one, "label": one} for one in labels)
    illegal = [i for i, one in enumerate(labels) if first_violation(one, scheme) is not None]
    assert 0 < len(illegal) < 300
    assert illegal_sentences(corpus, scheme).tolist() == illegal
    assert count_segments(corpus) == sum(len(spans(one)) for one in labels)
