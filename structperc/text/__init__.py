"""Tokenization of running text, and the alignment of character spans with tokens.

tokenizer.py        tokenizers, sentence splitters, invisible characters
alignment.py        tokenized texts, character spans and token spans
quoted_mentions.py  mentions without offsets
"""

from structperc.text.alignment import (
    Alignment,
    SpanConflict,
    TextSpan,
    TokenizedText,
    align,
    align_words,
    join_words,
    merge_sentences,
    to_character_offsets,
    token_ranges,
    tokenize,
)
from structperc.text.quoted_mentions import find_quotes
from structperc.text.tokenizer import (
    RuleTokenizer,
    character_tokens,
    conll_tokens,
    line_sentences,
    one_sentence,
    paragraph_ends,
    rule_sentences,
    ud_tokens,
)

__all__ = [
    "character_tokens",
    "conll_tokens",
    "ud_tokens",
    "RuleTokenizer",
    "rule_sentences",
    "line_sentences",
    "one_sentence",
    "paragraph_ends",
    "TokenizedText",
    "tokenize",
    "join_words",
    "TextSpan",
    "align",
    "token_ranges",
    "Alignment",
    "SpanConflict",
    "merge_sentences",
    "to_character_offsets",
    "align_words",
    "find_quotes",
]
