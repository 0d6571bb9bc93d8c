"""Labels of a corpus repaired, brought into another tag scheme, and their types renamed."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from structperc.data.corpus import Column, Corpus
from structperc.data.labels import LabelSet
from structperc.data.read_options import ReadOptions
from structperc.data.scheme_detection import advice_for, is_label
from structperc.data.tag_schemes import (
    OUTSIDE_TAG,
    convert,
    first_violation,
    is_allowed_transition,
    parse_tag,
    rename,
    repair,
    starts_segment,
    unknown_label_message,
)
from structperc.errors import InputError
from structperc.spelling import counted

if TYPE_CHECKING:
    from datasets import Dataset

SHOWN = 10  # unknown labels

logger = logging.getLogger("pytorch_lightning.structperc")


def corpus_from_rows(
    rows: "Dataset", name: str, reading: ReadOptions, scheme: str, unmarked: str, strict: bool = False
) -> Corpus:
    """Return rows of sentences as a corpus of the unit that `reading` names, whose labels, if any, are of `scheme`."""
    assert reading.unit is not None
    return checked_corpus(Corpus.from_dataset(rows, reading.unit, name), reading, scheme, unmarked, strict)


def checked_corpus(corpus: Corpus, reading: ReadOptions, scheme: str, unmarked: str, strict: bool = False) -> Corpus:
    """Return a corpus of the unit that `reading` names with labels, if it has any, of `scheme`.

    Raises InputError for documents that nothing marks; `unmarked` ends the message.
    """
    assert reading.labels is not None
    name = corpus.name
    if reading.unit == "document" and 1 < len(corpus) == len(corpus.sentences) - 1:
        raise InputError(f"{name}: no document marks {unmarked}")
    if "label" not in corpus.columns:
        return corpus
    corpus, repaired = normalise_labels(corpus, reading.labels, scheme, strict)
    if repaired:
        logger.warning("%s: %s illegal in %s repaired", name, counted(repaired, "label"), reading.labels)
    return corpus


def normalise_labels(corpus: Corpus, source: str, target: str, strict: bool = False) -> tuple[Corpus, int]:
    """Return the corpus with labels of scheme `target` in place of `source`, and how many of them were repaired.

    Sentence by sentence, illegal sequences are read as conlleval reads them (I after O or after another type opens a
    segment). Raises InputError with the place of a label that is not of the scheme at all or, if strict, that is
    illegal where it stands.
    """
    if "label" not in corpus.columns:
        raise InputError(f"{corpus.name}: no column 'label' among {list(corpus.columns)}")
    labels = corpus.numbered("label")
    check_scheme_labels(corpus, source)
    illegal = illegal_sentences(corpus, source)
    if strict and len(illegal):
        a, b = corpus.sentences[illegal[0]], corpus.sentences[illegal[0] + 1]
        _check_legal(corpus, corpus.columns["label"][a:b], int(a), source)
    if source == target and not len(illegal):
        return corpus, 0
    names = {name: i for i, name in enumerate(labels.distinct)}
    numbers, repaired = labels.numbers.copy(), 0
    for r in illegal if source == target else range(len(corpus.sentences) - 1):
        a, b = corpus.sentences[r], corpus.sentences[r + 1]
        legal, changed = repair([labels.distinct[i] for i in labels.numbers[a:b].tolist()], source)
        normal = legal if source == target else convert(legal, source, target)
        numbers[a:b] = [names.setdefault(name, len(names)) for name in normal]
        repaired += changed
    return corpus.replace_column("label", Column.numbered(list(names), numbers)), repaired


def illegal_sentences(corpus: Corpus, scheme: str) -> np.ndarray:
    """Return the numbers of the sentences whose labels are illegal where they stand, ascending (n,) int64.

    Raises InputError for a label that is not of the scheme at all.
    """
    distinct, numbers = corpus.numbered("label")
    if scheme == "none" or not len(numbers):
        return np.zeros(0, np.int64)
    tags = [*(parse_tag(label, scheme) for label in distinct), OUTSIDE_TAG]
    allowed = np.array([[is_allowed_transition(before, tag, scheme) for tag in tags] for before in tags])
    wrong = ~allowed[_before(corpus), numbers]
    last = np.unique(corpus.sentences)[1:] - 1
    wrong[last] |= ~allowed[numbers[last], -1]
    return np.unique(np.searchsorted(corpus.sentences, np.flatnonzero(wrong), side="right") - 1)


def check_known_labels(corpus: Corpus, labels: LabelSet) -> None:
    """Raise InputError with the place of a label of the corpus that the label set lacks."""
    if "label" in corpus.columns:
        distinct, numbers = corpus.numbered("label")
        labels.encode(distinct, lambda i: corpus.where(int(np.flatnonzero(numbers == i)[0])))


def warn_unknown_labels(corpus: Corpus, labels: LabelSet) -> None:
    """Say how many tokens of a corpus to evaluate on have labels that the label set lacks, and which labels."""
    if "label" not in corpus.columns or set(labels.names).issuperset(corpus.numbered("label").distinct):
        return
    distinct, numbers = corpus.numbered("label")
    counts = dict(zip(distinct, np.bincount(numbers, minlength=len(distinct)).tolist(), strict=True))
    unknown = sorted((name for name in distinct if name not in labels.names), key=lambda name: (-counts[name], name))
    named = ", ".join(f"{name} ({counts[name]:,})" for name in unknown[:SHOWN])
    more = f" and {len(unknown) - SHOWN:,} more" if len(unknown) > SHOWN else ""
    total = sum(counts[name] for name in unknown)
    one, many = ("1 token has a label", "it counts"), (f"{total:,} tokens have labels", "they count")
    tokens, end = one if total == 1 else many
    logger.warning("%s: %s that training did not have: %s%s; %s as wrong", corpus.name, tokens, named, more, end)


def count_segments(corpus: Corpus) -> int:
    """Return how many segments the labels of a corpus are, which are of any segment scheme; see `segments.spans`."""
    distinct, numbers = corpus.numbered("label")
    tags = [*map(parse_tag, distinct), OUTSIDE_TAG]
    opening = np.array([[starts_segment(before, tag) for tag in tags] for before in tags])
    return int(np.count_nonzero(opening[_before(corpus), numbers]))


def _before(corpus: Corpus) -> np.ndarray:
    """The number of the label before each token in its sentence, (N,); at its beginning one more than all numbers."""
    distinct, numbers = corpus.numbered("label")
    before = np.concatenate([numbers[:1], numbers[:-1]])
    before[np.unique(corpus.sentences)[:-1]] = len(distinct)
    return before


def rename_types(corpus: Corpus, scheme: str, types: Mapping[str, str]) -> Corpus:
    """Return the corpus with the same segments, whose types are renamed by `types`; labels are legal in `scheme`.

    Several types of one new name are merged; neighbouring segments stay apart. Raises InputError for scheme "none".
    """
    sentences = corpus.sentences_of(corpus.columns["label"])
    return corpus.replace_column("label", [label for s in sentences for label in rename(s, scheme, types)])


def check_types(corpus: Corpus, scheme: str, types: Mapping[str, str]) -> None:
    """Raise InputError for a type of `types` that no segment of the corpus has."""
    known = LabelSet.from_corpus(corpus.numbered("label").distinct, scheme).type_names
    for name in types:
        if name not in known:
            raise InputError(
                f"data.types: no segment of {corpus.name} is of type {name!r}; known are {', '.join(known)}"
            )


def check_scheme_labels(corpus: Corpus, scheme: str) -> None:
    """Raise InputError, with the place and advice, for a label that is not of a scheme, wherever it stands."""
    for label in corpus.numbered("label").distinct:
        if not is_label(label, scheme):
            labels = corpus.columns["label"]
            advice = advice_for(label, scheme, corpus.sentences_of(labels))
            raise InputError(f"{corpus.where(labels.index(label))}: {unknown_label_message(label, scheme)}; {advice}")


def _check_legal(corpus: Corpus, sentence: Sequence[str], start: int, scheme: str) -> None:
    if (at := first_violation(sentence, scheme)) is not None:
        before = repr(sentence[at - 1]) if at else "the beginning"
        after = repr(sentence[at + 1]) if at + 1 < len(sentence) else "the end"
        raise InputError(
            f"{corpus.where(start + at)}: {sentence[at]!r} between {before} and {after} of the sentence is "
            f"illegal in scheme {scheme}; mend it, or set strict: false to repair"
        )
