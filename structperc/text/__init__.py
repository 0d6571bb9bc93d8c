"""Running text -> tokens with character offsets, sentences; spans of characters -> spans of tokens.

tokenizer.py    rules that cut text as corpora are cut, or patterns of one's own
sentences.py    where sentences begin among the tokens
paragraphs.py   where a text can be cut so that its parts have the same tokens and sentences
tokenized.py    `TokenizedText`: a text, its tokens and sentences; words joined to a text
alignment.py    `TextSpan`: a typed stretch of characters; which tokens it has
invisible.py    characters that show nothing by themselves and stay with the one beside them
"""

from structperc.text.alignment import (
    Alignment,
    Misfit,
    TextSpan,
    align,
    in_characters,
    joined_sentences,
    placed,
    to_tokens,
)
from structperc.text.paragraphs import paragraph_ends
from structperc.text.sentences import line_sentences, one_sentence, rule_sentences
from structperc.text.tokenized import TokenizedText, joined, tokenized
from structperc.text.tokenizer import RuleTokenizer, conll_tokens, ud_tokens

__all__ = [
    "conll_tokens",
    "ud_tokens",
    "RuleTokenizer",
    "rule_sentences",
    "line_sentences",
    "one_sentence",
    "paragraph_ends",
    "TokenizedText",
    "tokenized",
    "joined",
    "TextSpan",
    "align",
    "Alignment",
    "Misfit",
    "joined_sentences",
    "in_characters",
    "to_tokens",
    "placed",
]
