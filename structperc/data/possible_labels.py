"""Labels that may be predicted: entries of a dictionary, labels of single tokens, forced segments.

In a corpus they are a column `possible` of labels separated by "|", such as "B-PER|O", or "?" for all labels. If names
of labels contain "|", it is a JSON list, such as ["NN|VB", "NN"].
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from structperc.data.corpus import Column, Corpus
from structperc.data.label_sets import ANY, OR, allowed_labels, is_label_set
from structperc.data.labels import AllowedTransitions, LabelSet
from structperc.data.tag_schemes import Span, convert
from structperc.data.text_files import read_lines
from structperc.errors import InputError

POSSIBLE = "possible"  # role of the column
LIST = '["'  # beginning of a list of labels in JSON


ADVICE = "leave out a forbidden span, or allow another label"


def allowed_lists(length: int, allowed: Iterable[Iterable[str] | None] | None) -> list[list[str] | None]:
    """Return the labels that each token of a sentence may have, None for all.

    `length`: number of tokens of the sentence. `allowed`: for each token an iterable of label names, or None for all;
    None for a sentence without restrictions. Raises InputError: another number of tokens, or anything but a list of
    labels for a token.
    """
    if allowed is None:
        return [None] * length
    tokens = [] if isinstance(allowed, str) or not isinstance(allowed, Iterable) else list(allowed)
    if len(tokens) != length:
        raise InputError(f"allowed: give a list of {length} items, one for each token: labels, or None for all")
    return [label_list(value, f"allowed[{token}]") for token, value in enumerate(tokens)]


def allowed_column(length: int, allowed: Iterable[Iterable[str] | None] | None) -> list[str]:
    """Return the column `possible` of a sentence; arguments and errors are those of `allowed_lists`."""
    return list(map(label_text, allowed_lists(length, allowed)))


def label_list(value: Any, place: str) -> list[str] | None:
    """Return the labels that a token may have, None for all.

    `value`: an iterable of label names, or None. `place`: beginning of an error message. Raises InputError: a string,
    anything that is not iterable, or an item that is not a string.
    """
    if value is None:
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError(f"{place} is {value!r:.40}; give a list of labels, or None for all labels")
    names = list(value)
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{place} has {name!r:.40}, which is not the name of a label; list names of labels")
    return names


def label_text(names: Sequence[str] | None) -> str:
    """Return a list of labels as in the column `possible`; None stands for all labels."""
    if names is None:
        return ANY
    return json.dumps(list(names)) if any(map(is_label_set, names)) else OR.join(names)


def first_impossible(
    masks: np.ndarray,
    real: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    scheme: AllowedTransitions,
    follows: np.ndarray | None = None,
) -> tuple[int, int] | None:
    """Return row and token of the first token for which a tag scheme leaves no label or state, None if there is none.

    `masks`: (B, T, M) bool, labels or states that are possible. `real`: (B, T) bool, False in the padding. `first`:
    (B, T) bool, first tokens of sentences. `last`: (B, T) bool, last tokens of sentences. `scheme`: what the tag scheme
    allows. `follows`: (B, T, M, M) bool, pairs of states that may follow one another; None: all.
    """
    start, transition, end = scheme
    impossible, before = np.zeros(real.shape, bool), np.ones((len(masks), len(start)), bool)
    for t in range(real.shape[1]):
        steps, begun = transition, start
        if follows is not None and t:
            steps, begun = transition & follows[:, t], start & (before[:, None] @ follows[:, t])[:, 0]
        within = (before[:, None].astype(np.float32) @ steps)[:, 0] > 0
        before = masks[:, t] & np.where(first[:, t, None], begun, within) & (end | ~last[:, t, None])
        impossible[:, t] = real[:, t] & ~before.any(1)
    rows, tokens = impossible.nonzero()
    return (int(rows[0]), int(tokens[0])) if len(rows) else None


def label_masks(corpus: Corpus, labels: LabelSet, role: str) -> np.ndarray | None:
    """Return the masks (N, L) bool of a column of sets of labels, None without one.

    Raises InputError for unknown labels.
    """
    if role not in corpus.columns:
        return None
    distinct, numbers = corpus.factorize(role)
    table = np.zeros((len(distinct), len(labels)), bool)
    for number, text in enumerate(distinct):
        place = int(np.argmax(numbers == number))
        if text.startswith(LIST):
            table[number, labels.encode(json.loads(text), corpus.where(place))] = True
        elif text:  # otherwise no label is possible
            table[number] = allowed_labels(text, labels, lambda place=place: corpus.where(place))  # type: ignore[misc]
    return table[numbers]


def read_lexicon(file: str | Path, labels: LabelSet, encoding: str | None = None) -> dict[str, list[str]]:
    r"""Return the labels of each word of a dictionary file: lines of a word, a tab, and labels separated by "|".

    Labels that contain "|" are given as a JSON list: a word, a tab, and ["NN|VB", "NN"]. `file`: the file; a word may
    have several lines. `encoding`: encoding of the file, by default UTF-8.

    Raises:
        InputError: the file cannot be read, a line without a tab, or an unknown label.

    Example:
        >>> from pathlib import Path
        >>> from structperc import LabelSet
        >>> from structperc.data import read_lexicon
        >>> _ = Path("lexicon.tsv").write_text("Oslo\tB-LOC\nParis\tB-LOC|B-PER\n")
        >>> read_lexicon("lexicon.tsv", LabelSet(("O", "B-LOC", "B-PER")))
        {'Oslo': ['B-LOC'], 'Paris': ['B-LOC', 'B-PER']}
    """
    lexicon: dict[str, list[str]] = {}
    for number, line in enumerate(read_lines(file, encoding), 1):
        word, _, text = line.partition("\t")
        if not line.strip():
            continue
        names = _lexicon_labels(text.strip())
        if not word or not names:
            raise InputError(f"{file}:{number}: expected a word, a tab and labels such as B-LOC|O, got {line!r:.60}")
        labels.encode(names, f"{file}:{number}")
        lexicon[word] = list(dict.fromkeys([*lexicon.get(word, []), *names]))
    return lexicon


def _lexicon_labels(text: str) -> list[str]:
    """Return the labels of a line of a dictionary; none if the text is not valid."""
    if not text.startswith(LIST):
        return list(filter(None, text.split(OR)))
    try:
        names = json.loads(text)
    except ValueError:
        return []
    return names if all(isinstance(name, str) for name in names) else []


def with_lexicon(corpus: Corpus, lexicon: Mapping[str, Sequence[str]], labels: LabelSet) -> Corpus:
    """Return a corpus in which the words of a lexicon may only have its labels, besides former restrictions.

    `lexicon`: label names of words; other words may have all labels.
    """
    words, numbers = corpus.factorize("word")
    table = np.ones((len(words), len(labels)), bool)
    for number, word in enumerate(words):
        if word in lexicon:
            table[number] = False
            table[number, labels.encode(lexicon[word], f"lexicon, word {word!r}")] = True
    former = label_masks(corpus, labels, POSSIBLE)
    masks = table[numbers] if former is None else table[numbers] & former
    rows, numbers = np.unique(masks, axis=0, return_inverse=True)
    texts = [label_text(None if row.all() else np.array(labels.names)[row].tolist()) for row in rows]
    return corpus.replace_column(POSSIBLE, Column.from_codes(texts, numbers.reshape(-1)))


def span_within(span: Iterable[Any], length: int, name: str) -> Span:
    """Return a span of tokens of a sentence.

    `span`: (type, start, end), tokens start <= t < end. `length`: number of tokens of the sentence. `name`: beginning
    of an error message. Raises InputError: anything else, or a span outside of the sentence.
    """
    try:
        kind, start, end = span
        first, stop = index(start), index(end)
    except (TypeError, ValueError):
        raise InputError(
            f"{name}: {span!r:.60} is not a span; give type, first token and token after the last"
        ) from None
    if not isinstance(kind, str):
        raise InputError(f"{name}: the type of the span {span!r:.60} is not a string")
    if not 0 <= first < stop <= length:
        raise InputError(f"{name}: the span {first}..{stop} is not within the {length} tokens of the sentence")
    return Span(kind, first, stop)


def forced_labels(length: int, segments: Iterable[tuple[str, int, int]], labels: LabelSet) -> list[list[str] | None]:
    """Return the labels of each token of a sentence that allow exactly these segments, for `tag(..., allowed=)`.

    The tokens of each segment have its labels. The tokens next to it have no label that would extend it. Where the
    segment begins with I in IOB1, the token before it is not of its type: there, an adjacent segment of its type is
    possible only if it is forced, too. `length`: number of tokens of the sentence. `segments`: (type, start, end),
    tokens start <= t < end.

    Raises:
        InputError: a segment outside of the sentence, of an unknown type, or that overlaps another one; labels without
            a tag scheme.

    Example:
        >>> from structperc import LabelSet
        >>> from structperc.data import Span, forced_labels
        >>> forced_labels(3, [Span("PER", 0, 2)], LabelSet(("O", "B-PER", "I-PER")))
        [['B-PER'], ['I-PER'], ['O', 'B-PER']]
    """
    if labels.scheme == "none":
        raise InputError("forced: the labels of this model have no tag scheme, so they have no segments")
    given = sorted((span_within(segment, length, "forced") for segment in segments), key=lambda span: span.start)
    iob2 = ["O"] * length
    for kind, start, end in given:
        if kind not in labels.type_names:
            raise InputError(f"forced: unknown type {kind!r}; the model has {', '.join(labels.type_names)}")
        if any(name != "O" for name in iob2[start:end]):
            raise InputError(f"forced: the segment {start}..{end} overlaps another one")
        iob2[start:end] = [f"B-{kind}", *[f"I-{kind}"] * (end - start - 1)]
    written = labels.encode(convert(iob2, "IOB2", labels.scheme), "forced")
    inside = np.array([name != "O" for name in iob2])
    masks = ~inside[:, None] | (np.arange(len(labels)) == written[:, None])
    types, opening = labels.segmentation
    for _, start, end in given:
        if start and not inside[start - 1]:
            masks[start - 1] &= opening[:, written[start]]
        if end < length and not inside[end]:
            masks[end] &= (types < 0) | opening[written[end - 1]]
    return [None if mask.all() else np.array(labels.names)[mask].tolist() for mask in masks]
