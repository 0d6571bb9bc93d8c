"""Tokens -> vectors: what neural scorers see of a text.

base.py              the contract: learn a vocabulary, read text as numbers, embed the numbers
word_embedding.py    a vector for each word, learned or from a file (vectors.py); strings.py is its vocabulary
char_cnn.py          a vector for each word from its characters
feature_embedding.py a vector for each token from the features of templates: clusters, gazetteers, documents
cooccurrence.py      vectors for such files, from the neighbours of words in raw text
window.py, bilstm.py vectors of neighbouring words side by side; recurrent networks in both directions, which may see
                     each sentence of a document by itself (sentences.py)
transformer.py       a pre-trained transformer: pretrained.py finds it, piece_windows.py cuts long sequences for it
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
