"""Tokens -> vectors: what neural scorers see of a text."""

from structperc.encoders.base import ContextEncoder, Encoder, TextModule, TokenEmbedder
from structperc.encoders.bilstm import BiLSTM
from structperc.encoders.char_cnn import CharCNN
from structperc.encoders.transformer import Transformer
from structperc.encoders.window import Window
from structperc.encoders.word_embedding import WordEmbedding

__all__ = [
    "TextModule",
    "TokenEmbedder",
    "Encoder",
    "ContextEncoder",
    "WordEmbedding",
    "CharCNN",
    "Window",
    "BiLSTM",
    "Transformer",
]
