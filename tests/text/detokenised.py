"""Tokens written as a text, as people write it; what is ambiguous without the original is written one way."""

import re
from collections.abc import Iterator
from pathlib import Path

from structperc.text.tokenizer import Tokenizer

_CLITIC = re.compile(r"n['’]t|['’](s|re|ve|ll|d|m)", re.IGNORECASE)
_CLOSES = re.compile(r"[.!?]+|[,;:)\]}%]")
_OPENS = re.compile(r"[(\[{$£€]|(US|C|A)\$")


def detokenised(words: list[str], tight: str) -> str:
    """Punctuation and clitics at their words, quotes in pairs; no space on either side of the characters of `tight`."""
    text, glued, quoted = "", True, False
    for i, word in enumerate(words):
        left = bool(_CLOSES.fullmatch(word) or _CLITIC.fullmatch(word)) or word in tight
        right = bool(_OPENS.fullmatch(word)) or word in tight
        if word == '"':
            quoted = not quoted
            left, right = not quoted, quoted
        if word == "'":
            left = i > 0 and words[i - 1].lower().endswith("s")
            right = not left
        text += word if glued or left else f" {word}"
        glued = right
    return text


def agreement(sentences: Iterator[list[str]], cut: Tokenizer, tight: str) -> tuple[float, float]:
    """F1 of tokens, and the share of sentences whose tokens are all right, after detokenising and cutting again."""
    both = given = found = right = n = 0
    for words in sentences:
        text = detokenised(words, tight)
        gold, own = extents(words), extents([text[a:b] for a, b in cut(text)])
        both, given, found = both + len(gold & own), given + len(gold), found + len(own)
        right, n = right + (gold == own), n + 1
    return 2 * both / (given + found), right / n


def extents(words: list[str]) -> set[tuple[int, int]]:
    """Where tokens stand if there is no white space between them."""
    at, found = 0, set()
    for word in words:
        found.add((at, at + len(word)))
        at += len(word)
    return found


def sentences_of(file: Path) -> Iterator[list[str]]:
    """Words of a column file."""
    for block in file.read_text(encoding="utf-8").split("\n\n"):
        words = [line.split()[0] for line in block.split("\n") if line.strip() and not line.startswith("-DOCSTART-")]
        if words:
            yield words
