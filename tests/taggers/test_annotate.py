"""Running text with spans of its characters; probabilities against an enumeration of all labellings."""

import math
from itertools import chain

import numpy as np
import pytest
import torch

from structperc.criteria import CRFLoss, PerceptronLoss
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import spans
from structperc.errors import InputError
from structperc.text import tokenize
from structperc.text.tokenizer import line_sentences, ud_tokens
from tests.tiny import random_tagger

TEXT = "Anna met Bo. Anna-Bo left\n\nBo met."
LABELS = {"IOB1": ["I-PER", "O"], "IOB2": ["B-PER", "O"], "IOBES": ["B-PER", "O"], "none": ["N", "V", "."]}


def tagger(scheme="IOB2", criterion=CRFLoss, node=("w[0]", "w[-1]")):
    """With random weights."""
    words, labels = tokenize(TEXT, ud_tokens).words, LabelSet.from_corpus(LABELS[scheme], scheme)
    return random_tagger([{"word": words, "pos": words}], labels, criterion(), node, seed=2)


@pytest.mark.parametrize(
    ("scheme", "unit"), [("IOB1", "sentence"), ("IOBES", "document"), ("IOB2", "sentence"), ("none", "sentence")]
)
def test_confidences_by_enumeration(scheme, unit):
    """Of segments: of the labellings that have exactly this segment."""
    made = tagger(scheme)
    made.unit = unit
    text = tokenize("Anna met Bo. Bo met.\n\nAnna.", ud_tokens)
    labels = made.tag(text.word_lists, [0, 0, 0] if unit == "document" else None)
    expected = []
    for sentence, words, first in zip(labels, text.word_lists, text.sentences, strict=False):
        every = made.kbest([words], len(made.labels) ** len(words))[0]  # sentences are independent in a chain of words
        alone = [(label, t, t + 1) for t, label in enumerate(sentence)]
        for segment in alone if scheme == "none" else spans(sentence):
            kind, start, end = segment
            same = [
                one.log_probability
                for one in every
                if (one.labels[start] == kind if scheme == "none" else segment in spans(one.labels))
            ]
            place = text.tokens[first + start][0], text.tokens[first + end - 1][1]
            expected.append((*place, kind, pytest.approx(sum(map(math.exp, same)), abs=1e-5), True, True))
    assert len(expected) > 2
    if unit == "sentence":
        assert [span[:6] for span in made.annotate(text.text, ud_tokens)] == expected
    else:  # transitions between sentences count there
        assert [span[:3] for span in made.annotate(text.text, ud_tokens)] == [span[:3] for span in expected]


def test_spans_of_labels():
    made = tagger()
    text = tokenize(TEXT, sentences=line_sentences)
    found = made.annotate(TEXT, sentences=line_sentences)
    assert found
    assert len(made.tag(text.word_lists)) == 2
    surfaces = [
        " ".join(words[span.start : span.end])
        for words, labels in zip(text.word_lists, made.tag(text.word_lists), strict=True)
        for span in spans(labels)
    ]
    assert [" ".join(TEXT[start:end].split()) for start, end, *_ in found] == [s.replace(" .", ".") for s in surfaces]
    assert made.annotate("") == made.annotate(" \n") == []


def test_confidence_of_tokens():
    made = tagger()
    corpus = made.read([["Anna", "met", "Bo"], [], ["Bo"]])
    found, plain = made.predict(corpus, confident=True), made.predict(corpus)
    tables = torch.cat(made.marginals([["Anna", "met", "Bo"], ["Bo"]]))
    sure = tables.gather(1, torch.tensor([made.labels.index(label) for label in found.labels])[:, None])[:, 0]
    np.testing.assert_allclose(found.tokens, sure.numpy(), rtol=1e-5)
    assert found.labels == plain.labels == list(chain.from_iterable(made.label(corpus)))
    assert plain.tokens is None
    assert np.isnan(found.segments).tolist() == [label == "O" for label in found.labels]


def test_without_probabilities():
    made = tagger(criterion=PerceptronLoss)
    assert [one.confidence for one in made.annotate(TEXT)] == [None] * len(made.annotate(TEXT))
    with pytest.raises(InputError, match="PerceptronLoss"):
        made.predict(made.read([["Anna"]]), confident=True)


def test_text_for_a_tagger_of_columns():
    with pytest.raises(InputError, match="pos"):
        tagger(node=["w[0]", "pos[0]"]).annotate(TEXT)
