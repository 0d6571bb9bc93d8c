import pytest

from structperc.data.conll import read_conll
from structperc.data.corpus import Corpus
from structperc.data.labels import first_violation, spans
from structperc.data.normalise import normalise_labels
from structperc.errors import InputError


def corpus_of(tmp_path, labels, unit="sentence"):
    """One token per label; "" ends a sentence."""
    file = tmp_path / "a.txt"
    file.write_text("-DOCSTART- O\n" + "".join(f"w {label}\n" if label else "\n" for label in labels))
    return Corpus.from_dataset(read_conll(file, ["word", "label"]), unit, "a.txt")


@pytest.mark.parametrize("unit", ["sentence", "document"])
def test_repair_and_conversion_go_sentence_by_sentence(tmp_path, unit):
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


def test_labels_without_a_scheme_stay(tmp_path):
    corpus = corpus_of(tmp_path, ["NN", "-LRB-", "B-A"])
    normal, repaired = normalise_labels(corpus, "none", "none", strict=True)
    assert (normal.columns["label"], repaired) == (["NN", "-LRB-", "B-A"], 0)


@pytest.mark.parametrize(
    ("labels", "scheme", "message"),
    [
        (
            ["O", "I-A"],
            "IOB2",
            "a.txt:3: 'I-A' between 'O' and the end of the sentence is illegal in scheme IOB2",
        ),
        (
            ["O", "", "I-A", "O"],
            "IOB2",
            "a.txt:4: 'I-A' between the beginning and 'O' of the sentence is illegal",
        ),
        (["B-A", "I-B"], "IOB2", "a.txt:3: 'I-B' between 'B-A' and the end"),
        (["O", "", "O", "B-A"], "IOBES", "a.txt:5: 'B-A' between 'O' and the end"),
    ],
)
def test_strict(tmp_path, labels, scheme, message):
    with pytest.raises(InputError) as error:
        normalise_labels(corpus_of(tmp_path, labels), scheme, scheme, strict=True)
    assert str(error.value).startswith(message)
    assert str(error.value).endswith("mend it, or set strict: false to repair")


def test_labels_of_another_scheme_are_never_repaired(tmp_path):
    with pytest.raises(InputError) as error:
        normalise_labels(corpus_of(tmp_path, ["O", "", "B-A", "E-A"]), "IOB2", "IOB2")
    assert str(error.value) == "a.txt:5: label 'E-A' is not of scheme IOB2 (O, B-TYPE, I-TYPE); set the scheme"


def test_the_column_must_be_there():
    with pytest.raises(InputError, match=r"f: no column 'label' among \['word'\]"):
        normalise_labels(Corpus.from_sentences([{"word": ["a"]}], name="f"), "IOB2", "IOB2")


def test_conll2003(corpora):
    data = read_conll(corpora / "conll2003" / "eng.train", ["word", "pos", "chunk", "label"])
    corpus = Corpus.from_dataset(data, "document", "eng.train")
    normal, repaired = normalise_labels(corpus, "IOB1", "IOB2")
    before, after = (c.sentences_of(c.columns["label"]) for c in (corpus, normal))
    assert [spans(labels) for labels in before] == [spans(labels) for labels in after]
    assert all(first_violation(labels, "IOB2") is None for labels in after)
    assert sum(len(spans(labels)) for labels in after) == 23499
    assert repaired == 2  # two B where nothing of the type stands before
    with pytest.raises(InputError, match=r"^eng.train:152428: 'B-MISC' between 'O' and 'I-MISC'"):
        normalise_labels(corpus, "IOB1", "IOB2", strict=True)
