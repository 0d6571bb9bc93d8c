"""Tokens -> vectors: encoders of neural scorers.

base.py             base classes: learn a vocabulary, read text as numbers, embed the numbers
token_embedders.py  vectors of single words: learned or from a file, from characters, from the features of templates
word_vectors.py     files of word vectors; cooccurrence.py makes them from raw text
window.py           vectors of neighbouring words side by side
bilstm.py           recurrent networks in both directions
transformer.py      a pre-trained transformer; pretrained.py loads it
"""

from structperc.encoders.base import ContextEncoder, Encoder, TextModule, TokenEmbedder
from structperc.encoders.bilstm import BiLSTM
from structperc.encoders.token_embedders import CharCNN, FeatureEmbedding, WordEmbedding
from structperc.encoders.transformer import Transformer
from structperc.encoders.window import Window

__all__ = [
    "TextModule",
    "TokenEmbedder",
    "Encoder",
    "ContextEncoder",
    "WordEmbedding",
    "CharCNN",
    "FeatureEmbedding",
    "Window",
    "BiLSTM",
    "Transformer",
]
