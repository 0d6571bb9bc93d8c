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
    SpanConflict,
    TextSpan,
    TokenizedText,
    align,
    align_words,
    join_words,
    merge_sentences,
    to_character_offsets,
    to_token_spans,
    tokenized,
)
from structperc.text.tokenizer import (
    RuleTokenizer,
    conll_tokens,
    line_sentences,
    one_sentence,
    paragraph_ends,
    rule_sentences,
    ud_tokens,
)

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
    "join_words",
    "TextSpan",
    "align",
    "Alignment",
    "SpanConflict",
    "merge_sentences",
    "to_character_offsets",
    "to_token_spans",
    "align_words",
]
