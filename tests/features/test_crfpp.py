import pytest

from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.features.templates import read_crfpp
from tests.errors import error_message

TEMPLATE = """# Unigram
U00:%x[-2,0]
U01:%x[0,0]
U05:%x[-1,0]/%x[0,1]
U06:

# Bigram
B
B01:%x[0,1]
"""


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "template"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_macros_become_attributes_at_offsets(write):
    templates = read_crfpp(write(TEMPLATE), ["word", "pos"])
    assert templates.node == ["word[-2]", "word[0]", "word[-1]|pos[0]", "bias"]
    assert templates.edge == ["bias", "pos[0]"]


def test_expansion_of_the_crfpp_manual(write):
    """The sentence of the CRF++ manual: at "the", %x[-1,0] is reckons, %x[0,1] is DT, %x[-3,0] is _B-1."""
    words, tags = ["He", "reckons", "the", "current", "account"], ["PRP", "VBZ", "DT", "JJ", "NN"]
    corpus = Corpus.from_sentences([{"word": words, "pos": tags}])
    text = "U00:%x[0,0]\nU01:%x[0,1]\nU02:%x[-1,0]\nU03:%x[-2,1]\nU04:%x[0,0]/%x[0,1]\nU05:%x[-3,0]\nB\n"
    extractor = FeatureExtractor.from_crfpp(write(text), ["word", "pos"])
    encoded = extractor.fit_encode(corpus)
    names = extractor.index.names("node")
    assert {names[i] for i in encoded.cut([0])[0].ids[encoded.nodes.offsets[2] : encoded.nodes.offsets[3]]} == {
        "word[0]=the",
        "pos[0]=DT",
        "word[-1]=reckons",
        "pos[-2]=PRP",
        "word[0]=the|pos[0]=DT",
        "word[-3]=_B-1",
    }
    assert extractor.index.names("edge") == ["bias"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("U00:%x[0,0]\nX01:%x[0,0]", ":2: "),
        ("\n# c\nU00:%x[0]", ":3: "),
        ("U00:%x[99999999,0]", ":1: "),
        ("Unigrams are written so", ":1: "),
        ("# nothing\n", ": "),
        ("U00:%x[0,2]", ":1: "),
        ("U00:%x[0,0]\nU00:%x[1,0]", ":2: 'U00:%x[1,0]'"),
    ],
)
def test_errors_name_file_and_line(write, text, message):
    path = write(text)
    assert str(path) + message in error_message(read_crfpp, path, ["word", "pos"])


def test_byte_order_mark(write):
    assert read_crfpp(write("\ufeff" + TEMPLATE), ["word", "pos"]) == read_crfpp(write(TEMPLATE), ["word", "pos"])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere"):
        read_crfpp(tmp_path / "nowhere", ["word"])
