"""Sentences as batches, for modules that read text."""

import numpy as np
import torch

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules.encoded import EncodedCorpus
from structperc.features import FeatureExtractor

WORDS = [["Anna", "met", "Bo", "in", "Rome"], ["no"], ["Bo", "met", "Anna"], ["Rome", "in", "in", "Bo"]]


def corpus(sentences=WORDS):
    return Corpus.from_sentences([{"word": words, "label": ["O"] * len(words)} for words in sentences])


def batch(module, sentences=WORDS, rows=None):
    """The sentences as a module reads them, in one batch; `rows` may have -1 for an empty one."""
    made = corpus(sentences)
    features = FeatureExtractor(progress=False)
    features.fit(made)
    encoded = EncodedCorpus(made, features, LabelSet(("O", "B-X", "I-X")), module.encode_inputs(made))
    return encoded[list(range(len(sentences))) if rows is None else rows]


def assert_alike(module, rows=(0, 1, 2, 3), tolerance=1e-5):
    """Each sentence has the same vectors alone and among others, and zeros in the padding."""
    whole = module(batch(module, rows=list(rows)))
    for b, row in enumerate(rows):
        n = len(WORDS[row])
        alone = module(batch(module, rows=[row]))
        torch.testing.assert_close(whole[b, :n], alone[0], rtol=0, atol=tolerance)
        assert not whole[b, n:].any()
    return np.asarray([len(WORDS[row]) for row in rows])
