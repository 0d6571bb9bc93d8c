"""Columns of words and labels in small files of the shapes of known corpora."""

import pytest

from structperc.data.survey import inspect_file
from tests.errors import error_message

CONLL2003 = "-DOCSTART- -X- -X- O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\nthe DT I-NP O\ncall NN I-NP O\n\n"
CONLL2002_SPANISH = "Melbourne B-LOC\n( O\nAustralia B-LOC\n) O\n\n"
CONLL2002_DUTCH = "-DOCSTART- -DOCSTART- O\nDe Art O\ntekst N O\nvan Prep O\nFlorent N B-PER\nBrys N I-PER\n\n"
CONLL2009 = "".join(
    f"{n}\t{word}\t{word}\t{word}\t{pos}\t{pos}\t_\t_\t{head}\t{head}\t{rel}\t{rel}\t{fill}\t{sense}\t{role}\n"
    for n, word, pos, head, rel, fill, sense, role in (
        (1, "Ford", "NNP", 2, "SBJ", "_", "_", "A0"),
        (2, "sells", "VBZ", 0, "ROOT", "Y", "sell.01", "_"),
        (3, "cars", "NNS", 2, "OBJ", "_", "_", "A1"),
    )
)
UNER = "# sent_id = 1\n# text = Ford sells cars\n1\tFord\tB-ORG\t-\tanna\n2\tsells\tO\t-\tanna\n3\tcars\tO\t-\tanna\n\n"
GERMEVAL = (
    "#\thttp://de.wikipedia.org/\t[2009-10-17]\n1\tAufgrund\tO\tO\n2\tder\tO\tO\n3\tUniversität\tB-ORG\tO\n"
    "4\tBonn\tI-ORG\tB-LOC\n5\tdeutscher\tB-LOCderiv\tO\n\n"
)
MIT = "O\twhat\nO\tmovies\nB-ACTOR\tbrad\nI-ACTOR\tpitt\nB-YEAR\t1990\n\nO\tshow\nB-GENRE\tcomedy\n\n"
ONTONOTES = "The DT (TOP(S(NP* O\nFord NNP * B-ORG\nof IN (PP* O\nMay NNP * B-DATE\n5 CD *)))) I-DATE\n\n"
JOINED = "1\tAnna\tB-PER#O\tB-PER\tx\n2\tsaw\tO#O\tO\tx\n3\tRome\tB-LOC#O\tB-LOC\tx\n\n"


@pytest.mark.parametrize(
    ("text", "roles", "scheme"),
    [
        (CONLL2003, ["word", "column2", "column3", "label"], "IOB1"),
        ("Ford NNP B-NP\nsells VBZ B-VP\nred JJ B-NP\ncars NNS I-NP\n\n", ["word", "column2", "label"], "IOB2"),
        (CONLL2002_SPANISH, ["word", "label"], "IOB2"),
        (CONLL2002_DUTCH, ["word", "column2", "label"], "IOB2"),
        (CONLL2009, ["_", "word", "_", "_", "label", *["_"] * 10], "none"),
        (UNER, ["_", "word", "label", "column4", "column5"], "IOB2"),
        (GERMEVAL, ["_", "word", "label", "column4"], "IOB2"),
        (MIT, ["label", "word"], "IOB2"),
        (ONTONOTES, ["word", "column2", "column3", "label"], "IOB2"),
        (JOINED, ["_", "word", "column3", "label", "column5"], "IOB2"),
        # a gene, of one type, after chunks of several; a mark of mentions after their types
        ("IL-2 NN B-NP B-GENE\nbinds VBZ B-VP O\nDNA NN B-NP O\n\n", ["word", "column2", "column3", "label"], "IOB2"),
        ("tr\u00e8s ADV I-AP O\nEDF NPP I-NP B-ORG\n\n", ["word", "column2", "column3", "label"], "IOB2"),
        ("Anna B-PER B-X\nsaw O O\nRome B-LOC B-X\n\n", ["word", "label", "column3"], "IOB2"),
        # names of annotators that look like prefixes, of a file and of sentences; numbers of sentences
        ("Anna B-PER S\nsaw O S\n\n", ["word", "label", "column3"], "IOB2"),
        ("Anna B-PER S\nsaw O S\n\nBo B-PER b\nleft O b\n\n", ["word", "label", "column3"], "IOB2"),
        ("S-1 Anna B-PER\nS-1 saw O\n\nS-2 Bo B-PER\nS-2 left O\n\n", ["_", "word", "label"], "IOB2"),
        (
            "doc/a 0 Anna B-PER\ndoc/a 1 left O\n\ndoc/b 0 Bo B-PER\ndoc/b 1 left O\n",
            ["_", "_", "word", "label"],
            "IOB2",
        ),
        # parts of speech before a constant column, and before probabilities
        ("Anna NNP s\nleft VBD s\n\n", ["word", "label", "column3"], "none"),
        ("Anna NNP 0.9\nleft VBD 1e-3\n\n", ["word", "label", "column3"], "none"),
    ],
)
def test_columns_of_known_corpora(tmp_path, text, roles, scheme):
    (tmp_path / "train.txt").write_text(text, encoding="utf-8")
    found = inspect_file(str(tmp_path / "train.txt"))
    assert (found.roles, found.scheme) == (roles, scheme)
    assert found.illegal == []


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        (CONLL2003, "column 3 has labels of segments of other types: it is not the label"),
        ("Anna B-PER B-X\nsaw O O\nRome B-LOC B-X\n\n", "column 3 has labels of segments of other types: it is not"),
        (JOINED, "columns 3, 4 have labels of the same types: column 4 is the label"),
        ("Anna I-O\nleft O\nRome I-LOC\n\n", "some segments have the type 'O'"),
        ("DT the\nNN dog\n\n" * 10, "column 1: the word has only 2 distinct strings in 20 tokens"),
    ],
)
def test_remarks_about_columns(tmp_path, text, remark):
    (tmp_path / "train.txt").write_text(text, encoding="utf-8")
    found = inspect_file(str(tmp_path / "train.txt"))
    assert any(one.startswith(remark) for one in found.remarks())
    assert not set(found.other_labels) & set(found.feature_columns)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("O,show\nB-GENRE,comedy\n\nO,find\n", {"label": "1", "word": "2"}),
        ("y,x\nO,show\nB-GENRE,comedy\n", {"label": "y", "word": "x"}),
        ("1;Anna;B-PER;s\n2;left;O;s\n", {"word": "2", "label": "3"}),
    ],
)
def test_columns_of_csv(tmp_path, text, columns):
    (tmp_path / "train.csv").write_text(text)
    found = inspect_file(str(tmp_path / "train.csv"))
    assert found.table is not None
    assert found.table.reader.columns == {**columns, "sentence": ""}


def test_a_column_for_each_predicate(tmp_path):
    (tmp_path / "train.txt").write_text(CONLL2009 + "\n" + CONLL2009.replace("\n", "\t_\n"))
    assert "train.txt:5: 16 fields, but line 1 has 15" in (
        found := error_message(inspect_file, str(tmp_path / "train.txt"))
    )
    assert "CoNLL-2009" in found
