"""Brackets as labels, against segments written down as trees; coreference chains."""

import json
import random

import pytest

from structperc.data import Conll, Corpus, LabelSet, Table
from structperc.data.conversion import read_annotated
from structperc.data.normalise import normalise_labels
from structperc.data.scheme_detection import to_scheme
from structperc.data.survey import inspect_file
from structperc.data.tag_schemes import Span, are_brackets, are_chains, bracket_spans, convert, encode_spans, spans
from tests.errors import error_message


def tree(draw, start, end, depth):
    """Random segments between two tokens, each with those inside it."""
    found, t = [], start
    while t < end:
        stop = draw.randint(t + 1, end)
        if draw.random() < 0.6:
            inner = tree(draw, t, stop, depth + 1) if depth < 2 else []
            found.append((Span(draw.choice(["A", "b-c"]), t, stop), inner))
        t = stop
    return found


def flat(segments):
    return [one for span, inner in segments for one in (span, *flat(inner))]


def written(segments, length):
    """Brackets of segments, outer ones first."""
    every = flat(segments)
    return [
        "".join(f"({span.type}" for span in every if span.start == t)
        + "*"
        + ")" * sum(span.end == t + 1 for span in every)
        for t in range(length)
    ]


def test_random_trees():
    for seed in range(300):
        draw = random.Random(seed)
        length = draw.randint(1, 6)
        segments = tree(draw, 0, length, 0)
        labels = written(segments, length)
        outer = [span for span, _ in segments]
        assert bracket_spans(labels) == (outer, len(flat(segments)) - len(outer))
        assert spans(labels, "brackets") == outer
        for scheme in ("IOB2", "IOBES"):
            assert convert(labels, "brackets", scheme) == encode_spans(outer, length, scheme)


@pytest.mark.parametrize(
    ("labels", "brackets", "chains"),
    [
        (["(PER*", "*", "*)", "(LOC)"], True, False),
        (["(A0*A0)", "(V*V)", "*"], True, False),
        (["*", "*"], False, False),
        (["NN", "(", ")", "*"], False, False),
        (["(12", "12)", "(3|(4)", "5)|6)", "-"], False, True),
        (["(PER)", "B-LOC", "*"], False, False),
    ],
)
def test_forms(labels, brackets, chains):
    assert (are_brackets(labels), are_chains(labels)) == (brackets, chains)


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        (["*", "(PER*", "*"], "a.txt, sentence 2, token 2: '(PER*' opens"),
        (["*", "*)"], "a.txt, sentence 2, token 2: '*)' closes"),
        (["(A*", "*B)"], "a.txt, sentence 2, token 2: '*B)' closes"),
        (["(A)", "O"], "a.txt, sentence 2, token 2: label 'O'"),
    ],
)
def test_wrong_brackets(labels, place):
    rows = [{"word": ["x"] * len(one), "label": one} for one in (["(A*", "*)"], labels)]
    assert error_message(normalise_labels, Corpus.from_sentences(rows, name="a.txt"), "brackets", "IOB2").startswith(
        place
    )


CONLL2012 = "".join(
    f"bc/x/00/c {part} {n} {word} NNP {tree} - - - Speaker#1 {name} {chain}\n" + end
    for part, n, word, tree, name, chain, end in (
        (0, 0, "Anna", "(TOP(S(NP*", "(PERSON*", "(12", ""),
        (0, 1, "Lind", "*)", "*)", "12)", ""),
        (0, 2, "left", "(VP*)))", "*", "-", "\n"),
        (1, 0, "Bank", "(TOP(NP*", "(ORG*", "(3", ""),
        (1, 1, "of", "*", "*", "-", ""),
        (1, 2, "Oslo", "*))", "(GPE))", "3)", "\n"),
    )
)


def test_conll2012(tmp_path, caplog):
    (tmp_path / "a.gold_conll").write_text(f"#begin document (bc/x/00/c); part 000\n{CONLL2012}#end document\n")
    found = inspect_file(str(tmp_path / "a.gold_conll"))
    assert [i for i, role in enumerate(found.roles, 1) if role != "_"] == [4, 11]
    assert (found.file_scheme, found.scheme, found.inner, found.feature_columns) == ("brackets", "IOB2", 1, [])
    assert found.types()[0] == {"PERSON": 1, "ORG": 1}
    assert sum("1 segment not read" in one or "CoNLL-2012" in one for one in found.remarks()) == 2
    assert read_annotated(str(tmp_path / "a.gold_conll"))[1].labels == ["B-ORG", "I-ORG", "I-ORG"]
    caplog.clear()
    data = Conll(str(tmp_path), {"train": "a.gold_conll"}, found.roles, labels="brackets", comments=True)
    assert data.corpus("train").columns["label"] == ["B-PERSON", "I-PERSON", "O", "B-ORG", "I-ORG", "I-ORG"]
    assert len([one for one in caplog.messages if "1 segment not read" in one]) == 1


def test_brackets_are_no_plain_labels(tmp_path):
    (tmp_path / "a.txt").write_text("Anna NNP (PER*\nLind NNP *)\nleft VBD *\n")
    assert inspect_file(str(tmp_path / "a.txt")).file_scheme == "brackets"
    for scheme in ("none", "IOB2", "IO"):
        data = Conll(str(tmp_path), {"train": "a.txt"}, ["word", "_", "label"], scheme=scheme)
        found = error_message(data.corpus, "train")
        assert "a.txt:1: label '(PER*'" in found
        assert "labels: brackets" in found
    assert "brackets" in error_message(LabelSet, ("(PER*", "*", "*)"), "none")
    assert to_scheme([["(PER*", "*)"]], "gold", "IOBES") == [["B-PER", "E-PER"]]
    assert "data.incomplete" in error_message(Conll, str(tmp_path), {}, ["word"], labels="brackets", incomplete=True)
    (tmp_path / "a.jsonl").write_text(json.dumps({"tokens": ["Anna", "left"], "tags": ["(PER)", "*"]}))
    table = inspect_file(str(tmp_path / "a.jsonl"))
    assert (table.file_scheme, table.types()[0]) == ("brackets", {"PER": 1})
    rows = Table(str(tmp_path), {"train": "a.jsonl"}, {"word": "tokens", "label": "tags"}, labels="brackets")
    assert rows.corpus("train").columns["label"] == ["B-PER", "O"]


def test_columns_of_names_before_those_of_predicates(tmp_path):
    lines = ("The (S* (NP* * - (A0*", "Ford * * (ORG) - *)", "plant * *) * - *", "opens *) (VP*) * open (V*)")
    (tmp_path / "a.txt").write_text("\n".join(lines))
    assert inspect_file(str(tmp_path / "a.txt")).roles[3] == "label"


def test_coreference_chains(tmp_path):
    (tmp_path / "a.txt").write_text("Anna NNP (12\nLind NNP 12)\nleft VBD -\n")
    assert inspect_file(str(tmp_path / "a.txt")).roles == ["word", "label", "column3"]
    (tmp_path / "b.txt").write_text("Anna (12\nLind 12)\nleft -\n")
    found = inspect_file(str(tmp_path / "b.txt"))
    assert any(one.startswith("column 2 has coreference chains") for one in found.remarks())
    data = Conll(str(tmp_path), {"train": "b.txt"}, ["word", "label"], scheme="none")
    assert "b.txt:1: label '(12' is of a coreference chain" in error_message(data.corpus, "train")
