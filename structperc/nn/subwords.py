"""Words as subwords of a tokenizer: masks of first subwords, rows for a model, and mini-batches of rows.

This module works without transformers: the tokenizer is an argument.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from structperc.encoders.pretrained import reads_spaces
from structperc.errors import InputError
from structperc.nn.inputs import IGNORE_INDEX

TokenRow = dict[str, list[int] | list[bool]]
OPTIONS = {
    "is_split_into_words": True,
    "truncation": False,
    "padding": False,
    "return_attention_mask": True,
    "return_token_type_ids": False,
    "verbose": False,
}
FILLERS: dict[str, int | bool] = {"attention_mask": 0, "token_type_ids": 0, "words": False, "labels": IGNORE_INDEX}


def first_subwords(word_ids: Iterable[Sequence[int | None]], counts: Sequence[int] | None = None) -> Tensor:
    """Return a mask that marks the first subword of each word.

    `word_ids`: for each row, the number of each position's word, None at special tokens, as returned by `word_ids(row)`
    of a tokenizer's `BatchEncoding`. `counts`: number of words of each row, to detect truncation. Returns a mask (B, T)
    bool, True at first subwords.

    Raises:
        InputError: rows of different lengths; a word without a subword; with `counts`, missing words at the end.
    """
    rows = [list(row) for row in word_ids]
    if len({len(row) for row in rows}) > 1:
        raise InputError(f"word_ids: rows have {sorted({len(row) for row in rows})} positions; pad them to one length")
    if counts is not None and len(counts) != len(rows):
        raise InputError(f"counts: got numbers of words of {len(counts)} rows, but word_ids of {len(rows)}")
    for number, row in enumerate(rows):
        _check_words(row, number, None if counts is None else int(counts[number]))
    return torch.tensor([_first(row) for row in rows], dtype=torch.bool).view(len(rows), -1)


def tokenize_words(
    tokenizer: Any, sentences: Sequence[Sequence[str]], labels: Sequence[Sequence[int]] | None = None
) -> list[TokenRow]:
    """Split the words of sentences into subwords, as rows for a model and a head. Nothing is truncated.

    The subwords are those of the words with a space between them, also of byte-level tokenizers (RoBERTa, ModernBERT).
    Returns a row for each sentence, with `input_ids`, `attention_mask`, and the mask `words`, True at the first subword
    of each word. With labels it has also `labels`, -100 at all other positions. `TokenCollator` makes mini-batches of
    rows.

    Args:
        tokenizer: a fast tokenizer of transformers.
        sentences: the words of each sentence.
        labels: the label numbers of each sentence's words; None for text without labels.

    Raises:
        InputError: a tokenizer without word_ids, different numbers of labels and words, a word without a subword, a
            sentence with more subwords than `tokenizer.model_max_length`.

    Example:
        >>> from structperc.nn import tokenize_words
        >>> class Encoding(dict):
        ...     word_ids = lambda self, row: [None, 0, 1, 1, None]  # [CLS], a word, a word of two subwords, [SEP]
        >>> class Tokenizer:  # in place of AutoTokenizer.from_pretrained(...)
        ...     is_fast = True
        ...     __call__ = lambda self, *_, **__: Encoding(input_ids=[[2, 7, 8, 9, 3]], attention_mask=[[1] * 5])
        >>> tokenize_words(Tokenizer(), [["Ada", "Lovelace"]], labels=[[1, 2]])[0]["labels"]
        [-100, 1, 2, -100, -100]
    """
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(f"tokenizer: {type(tokenizer).__name__} has no word_ids; use a fast tokenizer")
    if isinstance(sentences, str) or any(isinstance(sentence, str) for sentence in sentences):
        raise InputError("sentences: got text, expected a list of words for each sentence")
    if labels is not None and list(map(len, labels)) != list(map(len, sentences)):
        if len(labels) != len(sentences):
            raise InputError(f"labels: got {len(sentences)} sentences, but labels of {len(labels)}")
        number = next(
            i for i, (tags, words) in enumerate(zip(labels, sentences, strict=True)) if len(tags) != len(words)
        )
        words, count = len(sentences[number]), len(labels[number])
        raise InputError(f"labels: sentence {number} has {words} words, but {count} labels")
    given = [list(sentence) for sentence in sentences]
    written = list(map(with_spaces, given)) if reads_spaces(tokenizer) else given
    encoded: Any = tokenizer(written, **OPTIONS) if given else {}
    most = getattr(tokenizer, "model_max_length", None) or float("inf")
    rows: list[TokenRow] = []
    for number, sentence in enumerate(given):
        row: TokenRow = {name: list(encoded[name][number]) for name in ("input_ids", "attention_mask")}
        ids = encoded.word_ids(number)
        if len(ids) > most:
            raise InputError(
                f"sentence {number}: {len(sentence)} words have {len(ids)} subwords, the model takes {most}; "
                "split it into several sentences"
            )
        _check_words(ids, number, len(sentence))
        row["words"] = _first(ids)
        if labels is not None:
            following = iter(labels[number])
            row["labels"] = [int(next(following)) if first else IGNORE_INDEX for first in row["words"]]
        rows.append(row)
    return rows


class TokenCollator:
    """Collator that pads rows, such as those of `tokenize_words`, to one length, for a Trainer or a DataLoader.

    The padding is `pad_token_id` for input_ids, False for `words`, -100 for labels, and 0 for attention_mask and
    token_type_ids.

    Args:
        pad_token_id: that of the tokenizer.
        side: side of the padding, "right" or "left".
        fillers: padding of further names, which have one value for each position.

    Raises:
        InputError: an unknown side; on a call, a name without a filler, rows with different names, or values of one row
            that differ in length.
    """

    def __init__(
        self, pad_token_id: int = 0, side: str = "right", fillers: Mapping[str, int | float | bool] | None = None
    ) -> None:
        if side not in ("right", "left"):
            raise InputError(f"TokenCollator: side must be right or left, got {side!r}")
        self.side, self.fillers = side, {"input_ids": pad_token_id, **FILLERS, **(fillers or {})}

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Return each name's values as a tensor (B, T)."""
        names = list(rows[0]) if rows else []
        for number, row in enumerate(rows):
            if set(row) != set(names):
                differing = sorted(set(row) ^ set(names))
                raise InputError(f"row {number} of the mini-batch: only some rows have {', '.join(differing)}")
            if len({len(values) for values in row.values()}) > 1:
                sizes = ", ".join(f"{name} {len(values)}" for name, values in row.items())
                raise InputError(f"row {number} of the mini-batch: values for different numbers of positions ({sizes})")
        T = max((len(row[names[0]]) for row in rows), default=0) if names else 0
        return {name: self._padded([row[name] for row in rows], name, T) for name in names}

    def _padded(self, values: list[Any], name: str, T: int) -> Tensor:
        if name not in self.fillers:
            raise InputError(f"TokenCollator: no padding for {name}; give fillers={{{name!r}: ...}}")
        given = [torch.as_tensor(value) for value in values]
        padded = torch.full((len(given), T), self.fillers[name])
        for row, value in zip(padded, given, strict=True):
            row[slice(T - len(value), T) if self.side == "left" else slice(len(value))] = value
        return padded


def with_spaces(words: Sequence[str]) -> list[str]:
    """Put a space before all words but the first, for tokenizers that read a list of words otherwise than a text."""
    return [f" {word}" if t and word[:1].strip() else word for t, word in enumerate(words)]


def _first(ids: Sequence[int | None]) -> list[bool]:
    return [word is not None and word != before for before, word in pairwise([None, *ids])]


def _check_words(ids: Sequence[int | None], row: int, count: int | None) -> None:
    """Raise InputError unless each word of a row has a subword: all of `count`, or from the first to the last."""
    numbers = sorted({word for word in ids if word is not None})
    start, end = (numbers[0], numbers[-1] + 1) if count is None and numbers else (0, count or 0)
    if len(numbers) == end - start:
        return
    missing = next(word for word in range(start, end) if word not in set(numbers))
    if count is not None and missing > max(numbers, default=-1):
        raise InputError(
            f"row {row}: only {missing} of {count} words have subwords, the others were truncated; do not truncate, or "
            "truncate words and labels before"
        )
    raise InputError(f"row {row}: word {missing} has no subword; remove it, or replace it by another character")
