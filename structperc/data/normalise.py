"""Normalisation of the labels of a corpus: repair, conversion to another tag scheme, renaming of types."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np

from structperc.data.corpus import Column, Corpus
from structperc.data.labels import LabelSet
from structperc.data.read_options import ReadOptions
from structperc.data.scheme_detection import advice_for, is_label, log_joined, warn_joined
from structperc.data.tag_schemes import (
    BRACKETS,
    OUTSIDE_TAG,
    PREFIX_SCHEMES,
    are_brackets,
    are_chains,
    bracket_spans,
    check_bare,
    convert,
    encode_spans,
    first_violation,
    is_allowed_transition,
    parse_notation,
    parse_tag,
    rename,
    repair,
    starts_segment,
    unknown_label_message,
)
from structperc.errors import InputError
from structperc.spelling import counted

SHOWN = 10  # unknown labels in a message

logger = logging.getLogger("pytorch_lightning.structperc")


def checked_corpus(corpus: Corpus, reading: ReadOptions, scheme: str, unmarked: str, strict: bool = False) -> Corpus:
    """Return a corpus of the unit in `reading` with its labels, if any, normalised from `reading.labels` to `scheme`.

    Raises InputError, which ends with `unmarked`, for the unit "document" if documents are not marked.
    """
    assert reading.labels is not None
    name = corpus.name
    if reading.unit == "document" and 1 < len(corpus) == len(corpus.sentences) - 1:
        raise InputError(f"{name}: no document boundaries {unmarked}")
    if "label" not in corpus.columns:
        return corpus
    given = corpus
    corpus, repaired = normalise_labels(given, reading.labels, scheme, strict)
    if repaired:
        better = better_scheme(given, reading.labels)
        hint = "" if better is None else f"; in {better} nearly all are legal: set labels: {better}"
        logger.warning("%s: %s illegal in %s repaired%s", name, counted(repaired, "label"), reading.labels, hint)
    return corpus


def better_scheme(corpus: Corpus, scheme: str) -> str | None:
    """Return the scheme in which at most a tenth as many sentences are illegal as in the given one, or None."""
    illegal = {}
    for candidate in PREFIX_SCHEMES:
        with suppress(InputError):  # labels that are not of the scheme
            illegal[candidate] = len(illegal_sentences(corpus, candidate))
    best = min(illegal, key=lambda one: illegal[one], default=scheme)
    return best if scheme in illegal and 10 * illegal[best] <= illegal[scheme] else None


def normalise_labels(corpus: Corpus, source: str, target: str, strict: bool = False) -> tuple[Corpus, int]:
    """Convert the labels of a corpus to another tag scheme, sentence by sentence.

    Illegal sequences are interpreted as conlleval does (I after O or after another type begins a segment). Returns the
    corpus with the new labels, and the number of repaired labels.

    Args:
        corpus: a corpus with a column `label`.
        source: scheme or notation of its labels, or "brackets".
        target: scheme of the result.
        strict: raise an error for illegal labels instead of repairing them.

    Raises:
        InputError: no column `label`; or, with its location, a label that is not of the scheme or, if strict, illegal.

    Example:
        >>> corpus = Corpus.from_sentences([{"word": ["Anna", "Lind", "left"], "label": ["I-PER", "I-PER", "O"]}])
        >>> normalise_labels(corpus, "IOB1", "IOBES")[0].columns["label"]
        ['B-PER', 'E-PER', 'O']
        >>> normalise_labels(corpus, "IOB2", "IOB2")[1]  # in IOB2 the first label must be B-PER
        1
    """
    if "label" not in corpus.columns:
        raise InputError(f"{corpus.name}: no column 'label' among {list(corpus.columns)}")
    if source == BRACKETS:
        corpus, inner = read_brackets(corpus)
        source = "IOB2"
        if inner:
            logger.warning("%s: %s not read: they are inside of others", corpus.name, counted(inner, "segment"))
    labels = corpus.factorize("label")
    check_scheme_labels(corpus, source)
    illegal = illegal_sentences(corpus, source)
    if strict and len(illegal):
        raise _illegal_label(corpus, int(illegal[0]), source)
    if source == target and not len(illegal):
        return corpus, 0
    warn_joined(corpus.name, corpus.sentences_of(corpus.columns["label"]), source, target)
    names = {name: i for i, name in enumerate(labels.distinct)}
    numbers, repaired = labels.numbers.copy(), 0
    for r in illegal if source == target else range(len(corpus.sentences) - 1):
        a, b = corpus.sentences[r], corpus.sentences[r + 1]
        legal, changed = repair([labels.distinct[i] for i in labels.numbers[a:b].tolist()], source)
        normal = legal if source == target else convert(legal, source, target)
        numbers[a:b] = [names.setdefault(name, len(names)) for name in normal]
        repaired += changed
    return corpus.replace_column("label", Column.from_codes(list(names), numbers)), repaired


def read_brackets(corpus: Corpus) -> tuple[Corpus, int]:
    """Return a corpus whose labels are brackets with the IOB2 labels of the outermost ones, and the number of others.

    Raises InputError with its location for a label of another form, or a bracket without its counterpart.
    """
    labels: list[str] = []
    inner = 0
    for start, brackets in zip(corpus.sentences.tolist(), corpus.sentences_of(corpus.columns["label"]), strict=False):
        segments, more = bracket_spans(brackets, lambda t, start=start: corpus.where(start + t))  # type: ignore[misc]
        labels += encode_spans(segments, len(brackets), "IOB2")
        inner += more
    return corpus.replace_column("label", labels), inner


def illegal_sentences(corpus: Corpus, scheme: str) -> np.ndarray:
    """Return the numbers of the sentences with illegal label sequences, ascending (n,) int64.

    Raises InputError for a label that is not of the scheme.
    """
    distinct, numbers = corpus.factorize("label")
    if scheme == "none" or not len(numbers):
        return np.zeros(0, np.int64)
    tags = [*(parse_tag(label, scheme) for label in distinct), OUTSIDE_TAG]
    allowed = np.array([[is_allowed_transition(before, tag, scheme) for tag in tags] for before in tags])
    wrong = ~allowed[_previous_labels(corpus), numbers]
    last = np.unique(corpus.sentences)[1:] - 1
    wrong[last] |= ~allowed[numbers[last], -1]
    return np.unique(np.searchsorted(corpus.sentences, np.flatnonzero(wrong), side="right") - 1)


def _illegal_label(corpus: Corpus, sentence: int, scheme: str) -> InputError:
    start = int(corpus.sentences[sentence])
    labels = list(corpus.columns["label"][start : corpus.sentences[sentence + 1]])
    at = first_violation(labels, scheme)
    assert at is not None
    before = repr(labels[at - 1]) if at else "the beginning"
    after = repr(labels[at + 1]) if at + 1 < len(labels) else "the end"
    return InputError(
        f"{corpus.where(start + at)}: {labels[at]!r} between {before} and {after} of the sentence is illegal in scheme "
        f"{scheme}; correct it, or set strict: false to repair it"
    )


def check_known_labels(corpus: Corpus, labels: LabelSet) -> None:
    """Raise InputError with the location of a label of the corpus that is missing in the label set."""
    if "label" in corpus.columns:
        distinct, numbers = corpus.factorize("label")
        labels.encode(distinct, lambda i: corpus.where(int(np.flatnonzero(numbers == i)[0])))


def warn_unknown_labels(corpus: Corpus, labels: LabelSet) -> None:
    """Warn of tokens of an evaluation corpus whose labels are missing in the label set."""
    if "label" not in corpus.columns or set(labels.names).issuperset(corpus.factorize("label").distinct):
        return
    distinct, numbers = corpus.factorize("label")
    counts = dict(zip(distinct, np.bincount(numbers, minlength=len(distinct)).tolist(), strict=True))
    unknown = sorted((name for name in distinct if name not in labels.names), key=lambda name: (-counts[name], name))
    named = ", ".join(f"{name} ({counts[name]:,})" for name in unknown[:SHOWN])
    more = f" and {len(unknown) - SHOWN:,} more" if len(unknown) > SHOWN else ""
    total = counted(sum(counts[name] for name in unknown), "token")
    logger.warning("%s: %s with labels not seen in training, counted as errors: %s%s", corpus.name, total, named, more)


def count_segments(corpus: Corpus, scheme: str | None = None) -> int:
    """Return the number of segments in labels of a scheme, or of any scheme with prefixes, see `tag_schemes.spans`."""
    distinct, numbers = corpus.factorize("label")
    tags = [*(parse_tag(label, scheme) for label in distinct), OUTSIDE_TAG]
    opening = np.array([[starts_segment(before, tag) for tag in tags] for before in tags])
    return int(np.count_nonzero(opening[_previous_labels(corpus), numbers]))


def _previous_labels(corpus: Corpus) -> np.ndarray:
    """Return the number of the previous label in the sentence, (N,); at its beginning the number of distinct labels."""
    distinct, numbers = corpus.factorize("label")
    before = np.concatenate([numbers[:1], numbers[:-1]])
    before[np.unique(corpus.sentences)[:-1]] = len(distinct)
    return before


def rename_types(corpus: Corpus, scheme: str, types: Mapping[str, str]) -> Corpus:
    """Rename the types of the segments of a corpus.

    Several types may get the same name; adjacent segments are not merged, except in IO, with a warning.

    Args:
        corpus: a corpus with a column `label`, whose labels are legal in `scheme`.
        scheme: tag scheme of the labels.
        types: new name of each type that changes.

    Raises:
        InputError: the scheme is "none".
    """
    sentences = corpus.sentences_of(corpus.columns["label"])
    dropped = [segment._replace(type=types.get(segment.type, segment.type)) for segment in corpus.dropped]
    labels = [label for s in sentences for label in rename(s, scheme, types)]
    renamed = replace(corpus.replace_column("label", labels), dropped=dropped)
    if scheme == "IO":
        log_joined(corpus.name, count_segments(corpus, scheme) - count_segments(renamed, scheme))
    return renamed


def check_types(corpus: Corpus, scheme: str, types: Mapping[str, str]) -> None:
    """Raise InputError for a type in `types` that no segment of the corpus has."""
    names = LabelSet.from_corpus(corpus.factorize("label").distinct, scheme).type_names
    for name in types:
        if name not in names:
            raise InputError(f"data.types: no segment of {corpus.name} has type {name!r}; known are {', '.join(names)}")


def check_scheme_labels(corpus: Corpus, scheme: str) -> None:
    """Raise InputError with location and advice for a label that is not of a scheme."""
    names = corpus.factorize("label").distinct
    if (brackets := are_brackets(names)) or are_chains(names):
        label = next(name for name in names if "(" in name or ")" in name)
        place = corpus.where(corpus.columns["label"].index(label))
        reason = "has brackets; set labels: brackets"
        chain = "is of a coreference chain, which has no types; name another column 'label'"
        raise InputError(f"{place}: label {label!r} {reason if brackets else chain}")
    if parse_notation(scheme).scheme == "IO":
        check_bare(names)
    for label in names:
        if not is_label(label, scheme):
            labels = corpus.columns["label"]
            advice = advice_for(label, scheme, corpus.sentences_of(labels))
            if label[:1] in "?!" or "|" in label:
                advice = "for incomplete labels, set data.incomplete: true"
            place = corpus.where(labels.index(label))
            raise InputError(f"{place}: {unknown_label_message(label, scheme)}; {advice}")
