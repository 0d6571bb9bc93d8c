"""A small tagger with random weights, and texts for it."""

import torch

from structperc.chain import KBest
from structperc.criteria import CRFLoss
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.features import FeatureExtractor
from structperc.scorers import SparseLinear
from structperc.taggers import Tagger
from structperc.text import conll_tokens

TEXTS = ["Anna met Bo. Anna left.", "", "Bo\n\nmet Ürsula 😀 .", " ", "Anna"]


def tagger(criterion=CRFLoss, node=("w[0]", "w[-1]"), unit="document"):
    """With random weights."""
    words = conll_tokens_of(" ".join(TEXTS))
    features = FeatureExtractor(list(node), cutoff=1)
    features.fit(Corpus.from_sentences([{"word": words, "pos": words}]))
    made = Tagger(features, SparseLinear(), criterion(), KBest(1))
    made.allocate(LabelSet.from_corpus(["B-PER", "B-LOC"], "IOB2"))
    torch.manual_seed(2)
    for parameter in made.scorer.parameters():
        torch.nn.init.normal_(parameter)
    made.unit = unit
    return made


def conll_tokens_of(text):
    return [text[a:b] for a, b in conll_tokens(text)]
