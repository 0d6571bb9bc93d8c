"""Encoders of neural scorers, which compute vectors of tokens.

base.py             base classes
token_embedders.py  vectors of single words: from a table or a file, from characters, from the features of templates
cooccurrence.py     vectors of words from raw text
context.py          windows of neighbouring words and bidirectional LSTMs
frozen.py           vectors of a frozen encoder, computed once
transformer.py      a pre-trained transformer; pretrained.py loads it
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
