"""Tokenization of running text, and the alignment of character spans with tokens.

tokenizer.py        tokenizers, sentence splitters, invisible characters
alignment.py        tokenized texts, character spans and token spans
quoted_mentions.py  mentions without offsets
"""

from structperc.text.alignment import TextSpan, tokenize
from structperc.text.tokenizer import RuleTokenizer

__all__ = [
    "RuleTokenizer",
    "tokenize",
    "TextSpan",
]
