"""Sentences of label names as users hold them: lists, tuples, arrays, series."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from structperc.errors import InputError
from structperc.spelling import counted


def label_sequences(value: Iterable[Any], name: str) -> list[list[str]]:
    """Return sentences of labels as lists of strings.

    Args:
        value: a list, tuple, array or other iterable of sentences, each of them a sequence of label names.
        name: of the argument, which opens every message.

    Raises:
        InputError: no sentences, a single sentence, or a label that is not a string; sentence and token count from 1.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise InputError(f"{name} is a list of sentences, each a list of labels, not {value!r:.40}")
    given = list(value)
    if given and not any(is_listed(one) for one in given):
        raise InputError(f"{name} holds the labels of one sentence; give a list of sentences: [{name}]")
    return [_labels(one, f"{name}, sentence {n}") for n, one in enumerate(given, 1)]


def is_listed(value: object) -> bool:
    """Return whether a value is a sequence of things: a list, tuple, array or series, but no string and no mapping."""
    listed = hasattr(value, "__len__") and hasattr(value, "__getitem__")
    return listed and not isinstance(value, str | bytes | Mapping)


def check_same_lengths(
    expected: Sequence[Sequence[str]], given: Sequence[Sequence[str]], names: tuple[str, str]
) -> None:
    """Raise InputError unless both have as many sentences, and as many labels in each; `names` are theirs."""
    one, other = names
    if len(expected) != len(given):
        raise InputError(
            f"{one} has {counted(len(expected), 'sentence')}, {other} has {len(given)}; give the same text"
        )
    for n, (a, b) in enumerate(zip(expected, given, strict=True), 1):
        if len(a) != len(b):
            raise InputError(
                f"sentence {n}: {one} has {counted(len(a), 'label')}, {other} has {len(b)}; give one for each token"
            )


def _labels(labels: Any, place: str) -> list[str]:
    if not is_listed(labels):
        raise InputError(f"{place}: the labels of a sentence are a list of strings, not {labels!r:.40}")
    for t, label in enumerate(labels, 1):
        if not isinstance(label, str) or not label:
            raise InputError(f"{place}, token {t}: a label is a string, not {label!r:.40}; write its name")
    return list(map(str, labels))
