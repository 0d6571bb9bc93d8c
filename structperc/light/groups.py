"""Sentences that are given one after the other, in groups that are labelled at a time."""

from collections.abc import Iterable, Iterator
from itertools import count, zip_longest
from typing import Any

from structperc.errors import InputError
from structperc.light.inference import Sentence, named_columns

_MISSING: Any = object()


def groups(
    sentences: Iterable[Sentence], documents: Iterable[int] | None, tokens: float
) -> Iterator[tuple[list[Sentence], list[int] | None]]:
    """Yield sentences, and their documents if given, in groups of about so many tokens and of whole documents.

    Each is iterated over once; no more is taken than a group has, and one sentence to see that a document is over.
    Raises InputError where there are not as many ids as sentences.
    """
    group: list[Sentence] = []
    ids: list[int] = []
    size = 0
    given: Iterator[tuple[Any, Any]]
    given = zip(sentences, count()) if documents is None else zip_longest(sentences, documents, fillvalue=_MISSING)
    for sentence, document in given:
        if sentence is _MISSING or document is _MISSING:
            raise InputError("there are not as many document ids as sentences; give one for each")
        if size >= tokens and document != ids[-1]:
            yield group, None if documents is None else ids
            group, ids, size = [], [], 0
        columns = {role: list(values) for role, values in named_columns(sentence).items()}
        group.append(columns)
        ids.append(document)
        size += max([1, *map(len, columns.values())])  # empty ones take memory, too
    if group:
        yield group, None if documents is None else ids
