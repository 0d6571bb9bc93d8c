"""A small tagger with random weights, and texts for it."""

from structperc.criteria import CRFLoss
from structperc.data.labels import LabelSet
from structperc.text.tokenizer import conll_tokens
from tests.tiny import random_tagger

TEXTS = ["Anna met Bo. Anna left.", "", "Bo\n\nmet Ürsula 😀 .", " ", "Anna"]


def tagger(criterion=CRFLoss, node=("w[0]", "w[-1]"), unit="document"):
    """With random weights."""
    words = conll_tokens_of(" ".join(TEXTS))
    labels = LabelSet.from_corpus(["B-PER", "B-LOC"], "IOB2")
    made = random_tagger([{"word": words, "pos": words}], labels, criterion(), node, seed=2)
    made.unit = unit
    return made


def conll_tokens_of(text):
    return [text[a:b] for a, b in conll_tokens(text)]
