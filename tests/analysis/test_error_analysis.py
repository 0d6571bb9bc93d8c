"""Error analyses by hand: counts, links of the page, labels without segments, segments that overlap."""

import re

import numpy as np
import pytest

from structperc import Corpus
from structperc.analysis import error_analysis, error_html, error_lines
from structperc.analysis.error_report import error_record
from structperc.metrics import ErrorKinds
from structperc.predictor import Prediction
from structperc.predictor.base import ProbableSpan

TEXT = [  # words, gold, predicted
    (["Anna", "Lind", "left"], ["B-PER", "I-PER", "O"], ["B-PER", "O", "O"]),
    (["Penus", "and", "Oslo"], ["B-ORG", "O", "B-LOC"], ["B-LOC", "O", "B-LOC"]),
    (["Bo", "saw", "Penus"], ["B-PER", "O", "B-ORG"], ["O", "O", "B-LOC"]),
    (["<Oslo>"], ["O"], ["B-LOC"]),
]
TRAINING = Corpus.from_sentences([{"word": ["Oslo", "Penus", "Bo"], "label": ["B-LOC", "B-LOC", "O"]}])


@pytest.fixture(scope="module")
def analysis():
    """Two documents of two sentences."""
    sentences = [{"word": words, "label": gold} for words, gold, _ in TEXT]
    corpus = Corpus.from_sentences(sentences, documents=[3, 3, 8, 8], unit="document")
    predicted = [label for *_, labels in TEXT for label in labels]
    return error_analysis(corpus, Prediction(predicted, None, None), "IOB2", TRAINING)


def test_counts(analysis):
    persons, places = ErrorKinds(boundary=1, missed=1), ErrorKinds(correct=1, spurious=1)
    assert analysis.kinds() == {"LOC": places, "ORG": ErrorKinds(type=2), "PER": persons}
    once = [("PER", "PER"), ("LOC", "LOC"), ("PER", None), (None, "LOC")]
    assert analysis.confusion() == {("ORG", "LOC"): 2, **dict.fromkeys(once, 1)}
    assert {name: tuple(score) for name, score in analysis.by_novelty().items()} == {
        "seen with this type": (1, 3, 1),  # Oslo, and Penus as predicted
        "seen with another type": (0, 0, 2),  # Penus as gold
        "not seen": (0, 2, 2),
    }
    assert {name: tuple(score) for name, score in analysis.by_length().items()} == {"1": (1, 5, 4), "2": (0, 0, 1)}
    assert {number: tuple(score) for number, score in analysis.by_document().items()} == {0: (1, 3, 3), 1: (0, 2, 2)}
    most, *others = analysis.frequent()
    assert (most.kind, most.gold, most.found) == ("type", ("ORG", "Penus"), ("LOC", "Penus"))
    assert [sentence.number for sentence, _ in most.places] == [1, 2]
    assert [len(error.places) for error in others] == [1, 1, 1]


def test_intervals(analysis):
    """Two documents, with 1 of 3 and 0 of 2 right segments: half of the samples are mixed."""
    assert analysis.documents == 2
    assert analysis.intervals[""].recall == (0, pytest.approx(1 / 3))
    assert analysis.intervals["ORG"].recall == (0, 0)


def test_reports(analysis):
    """Links of the page have targets; text and JSON have the counts."""
    page = "".join(error_html(analysis, "Errors of <this>"))
    targets = re.findall(r'href="#([^"]+)"', page)
    assert (
        {"errors-1-0", "document-2", "sentence-2", "sentence-3"}
        <= set(targets)
        <= set(re.findall(r'id="([^"]+)"', page))
    )
    assert "<Oslo>" not in page
    lines = [" ".join(line.split()) for line in error_lines(analysis)]
    assert "2 wrong type: gold ORG Penus, predicted LOC Penus" in lines
    assert "PER 0 0 1 0 1 0" in lines
    record = error_record(analysis)
    assert record["confusion"][0] == {"gold": "ORG", "predicted": "LOC", "count": 2}
    assert record["semeval"]["partial"] == {
        **{"correct": 3, "incorrect": 0, "partial": 1, "missed": 1, "spurious": 1},
        **{"precision": 3.5 / 5, "recall": 3.5 / 5, "f1": 3.5 / 5},
    }


def test_labels_without_segments():
    corpus = Corpus.from_sentences([{"word": ["a", "b"], "label": ["DT", "NN"]}, {"word": ["b"], "label": ["NN"]}])
    found = error_analysis(corpus, Prediction(["DT", "VB", "VB"], None, None), "none")
    assert found.confusion() == {("DT", "DT"): 1, ("NN", "VB"): 2}
    assert (found.documents, found.by_novelty()) == (0, {})
    lines = [" ".join(line.split()) for line in error_lines(found)]
    assert {"label correct wrong label", "NN 0 2", "NN 0 0 2"} <= set(lines)
    assert not any("SemEval" in line or "nothing" in line for line in lines)


def test_overlapping_segments():
    corpus = Corpus.from_sentences([{"word": ["x"], "label": ["O"]}, {"word": ["a", "b"], "label": ["B-P", "I-P"]}])
    spans = [ProbableSpan("P", 1, 2, 0.5), ProbableSpan("P", 1, 3, 0.4)]
    found = error_analysis(corpus, Prediction(["O"] * 3, None, np.zeros(3), spans), "IOB2")
    assert found.kinds() == {"P": ErrorKinds(correct=1, spurious=1)}
