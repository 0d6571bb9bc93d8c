"""Incomplete labels: sets of labels in text files, one of which is right.

| text | labels that may be right |
|---|---|
| `?` | any |
| `B-PER|B-ORG` | one of these |
| `!B-PER|I-PER` | all but these |

A corpus with such labels has a column `allowed` with these texts; its column `label` has one allowed label of each
token, O where it may be right. The right label sequence is a legal one of the tag scheme with an allowed label at each
token.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, lru_cache, partial
from itertools import product

import numpy as np

from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import (
    BEGIN,
    END,
    INSIDE,
    OUTSIDE_TAG,
    SCHEMES,
    SINGLE,
    Tag,
    is_allowed_transition,
    make_label,
    parse_notation,
    parse_tag,
    starts_segment,
)
from structperc.errors import InputError

ALLOWED = "allowed"  # role of the column
ANY, OR, NOT = "?", "|", "!"
OTHER = "\0"  # stands for all types that a sentence does not name

Tags = frozenset[Tag]


def is_label_set(text: str) -> bool:
    """Return True for the text of a set of labels, False for a single label."""
    return text == ANY or OR in text or text.startswith(NOT)


def split_label_set(text: str) -> tuple[list[str], bool]:
    """Return the labels in the text of a set, and True if the set consists of all other labels."""
    if text == ANY:
        return [], True
    excluded = text.startswith(NOT)
    return text.removeprefix(NOT).split(OR), excluded


def write_label_set(names: Collection[str], excluded: bool) -> str:
    """Return the text of a set of labels, or with `excluded` of all other labels."""
    joined = OR.join(sorted(names))
    return ((NOT + joined) if names else ANY) if excluded else joined


def allowed_labels(text: str, labels: LabelSet, where: Callable[[], str]) -> np.ndarray:
    """Return a mask (L,) bool of the labels in a set.

    `text`: a label or the text of a set. `where`: returns the beginning of an error message, "file:line". Raises
    InputError: an unknown label, or an empty set.
    """
    names, excluded = split_label_set(text) if is_label_set(text) else ([text], False)
    mask = np.full(len(labels), excluded)
    mask[
        labels.encode([name for name in names if not excluded or name in labels.names], lambda _: where())
    ] = not excluded
    if not mask.any():
        raise InputError(f"{where()}: {text!r} excludes all labels; allow one of them")
    return mask


def names_in(texts: Iterable[str]) -> set[str]:
    """Return the labels named by labels and texts of sets."""
    return {name for text in texts for name in (split_label_set(text)[0] if is_label_set(text) else [text])}


# -- corpora --------------------------------------------------------------------------------------------------


def separate_label_sets(corpus: Corpus, source: str, target: str) -> tuple[Corpus, Corpus | None]:
    """Separate the sets among the labels of a corpus.

    `corpus`: a corpus whose labels may be sets. `source`: scheme or notation of its labels. `target`: scheme of the
    result. Returns the corpus with complete labels only, those of sentences with sets replaced by one outside label;
    and a corpus whose labels are those of the target scheme in these sentences, and "" in others; None without sets.
    Raises InputError: with file, line and token: a label that is not of the scheme, or no legal label at a token.
    """
    labels = corpus.factorize("label")
    several = np.array([is_label_set(label) for label in labels.distinct], bool)
    if not several.any():
        return corpus, None
    sentences = np.unique(np.searchsorted(corpus.sentences, np.flatnonzero(several[labels.numbers]), side="right") - 1)
    texts = list(corpus.columns["label"])
    sets = [""] * len(texts)
    outside = parse_notation(source).outside if source != "none" else next(iter(names_in(labels.distinct)), "O")
    for r in sentences.tolist():
        a, b = int(corpus.sentences[r]), int(corpus.sentences[r + 1])

        def where(t: int, start: int = a) -> str:
            return f"{corpus.where(start + t)}: token {corpus.columns['word'][start + t]!r}"

        sets[a:b] = convert_label_sets(texts[a:b], source, target, where)
        texts[a:b] = [outside] * (b - a)
    return corpus.replace_column("label", texts), corpus.replace_column("label", sets)


def join_label_sets(corpus: Corpus, sets: Corpus) -> Corpus:
    """Return a corpus with the labels of `separate_label_sets`, complete ones and sets, and a column `allowed`."""
    complete, texts = corpus.columns["label"], sets.columns["label"]
    names = sorted(names_in(complete) | (names_in(texts) - {""}))
    examples = {text: _example(text, names) for text in set(texts)}
    label = [examples[text] if text else name for name, text in zip(complete, texts, strict=True)]
    allowed = [text or name for name, text in zip(complete, texts, strict=True)]
    return corpus.replace_column("label", label).replace_column(ALLOWED, allowed)


def _example(text: str, known: Sequence[str]) -> str:
    """Return a label of a set, O if possible."""
    names, excluded = split_label_set(text) if is_label_set(text) else ([text], False)
    possible = [name for name in known if name not in names] if excluded else names
    return "O" if "O" in possible else (possible or [""])[0]


def is_incomplete(corpus: Corpus) -> bool:
    """Return True for a corpus with sets of labels."""
    return ALLOWED in corpus.columns


def first_label_set(corpus: Corpus) -> str:
    """Return the text of the first set in a corpus with sets of labels."""
    return next(text for text in corpus.factorize(ALLOWED).distinct if is_label_set(text))


def open_other_types(corpus: Corpus, scheme: str, annotated: Collection[str]) -> Corpus:
    """Return a corpus whose tokens outside of segments may be of all types that it does not annotate.

    `corpus`: a corpus with labels. `scheme`: their tag scheme. `annotated`: the types that the corpus annotates.
    Returns the corpus with a column `allowed`, in which O is replaced by all labels but those of these types, also in
    sets. Raises InputError: labels without a scheme.
    """
    if scheme == "none":
        raise InputError(f"{corpus.name}: annotated_types: labels of scheme none have no types; remove it")
    labels = corpus.columns[ALLOWED if is_incomplete(corpus) else "label"]
    annotated_labels = {make_label(letter, kind) for kind in annotated for letter in SCHEMES[scheme]}

    @cache
    def opened(text: str) -> str:
        names, excluded = split_label_set(text) if is_label_set(text) else ([text], False)
        return text if excluded or "O" not in names else write_label_set(annotated_labels.difference(names), True)

    return corpus.replace_column(ALLOWED, list(map(opened, labels)))


def label_sets_of_spans(
    length: int,
    found: Iterable[tuple[int, int, str]],
    excluded: Iterable[tuple[int, int, str]],
    complete: bool,
    place: str,
) -> list[str]:
    """Return IOB2 labels and sets for the spans of a text.

    If the annotation is not complete, tokens outside of the spans are unknown, but a span does not go on after its end.
    An excluded span (start, end, type) means that none of its tokens belongs to a segment of the type. `length`: number
    of tokens. `found`: spans of tokens, start <= t < end, that are segments. `excluded`: spans that are not segments of
    a type. `complete`: True if all segments are among `found`. `place`: beginning of an error message. Raises
    InputError: a span is also excluded.
    """
    labels, wrong = ["O" if complete else ""] * length, [set[str]() for _ in range(length + 1)]
    for first, end, kind in found:
        labels[first:end] = [make_label("B", kind), *[make_label("I", kind)] * (end - first - 1)]
        wrong[end].add(make_label("I", kind))
    for first, end, kind in excluded:
        both = {make_label("B", kind), make_label("I", kind)}
        if both & set(labels[first:end]):
            raise InputError(
                f"{place}: tokens {first + 1}..{end} are both {kind} and not {kind}; remove one of the spans"
            )
        for t in range(first, end):
            wrong[t] |= both
    return [label or write_label_set(names, True) for label, names in zip(labels, wrong, strict=False)]


# -- tag schemes ----------------------------------------------------------------------------------------------


def convert_label_sets(
    labels: Sequence[str], source: str, target: str, where: Callable[[int], str] = lambda t: f"token {t + 1}"
) -> list[str]:
    """Convert the labels of a sentence, some of which are sets, to another tag scheme.

    A set of the result has the labels, at its token, of all segmentations whose labels in the source scheme are allowed
    and legal. Combinations of labels of different tokens are not remembered. `labels`: labels and texts of sets.
    `source`: scheme or notation of the labels. `target`: scheme of the result. `where`: returns the beginning of an
    error message from the index of a token. Returns labels and texts of sets. Raises InputError: a label that is not of
    the scheme, or no legal label at a token.
    """
    if parse_notation(source).scheme == "none":
        return list(labels)
    parsed = [_parse(label, source, partial(where, t)) for t, label in enumerate(labels)]
    types = tuple(sorted({tag.type for tags, _ in parsed for tag in tags if tag.type is not None}))
    scheme = parse_notation(source).scheme
    sets = [_expand(tags, excluded, types, scheme) for tags, excluded in parsed]
    forward = _reachable(sets, scheme, where)
    if source == target:
        return [write_label_set({_name(tag, target) for tag in tags}, excluded) for tags, excluded in parsed]
    both = _reachable_back(forward, scheme)
    converted = []
    for t, (_, excluded) in enumerate(parsed):
        before = both[t - 1] if t else frozenset([OUTSIDE_TAG])
        after = both[t + 1] if t + 1 < len(both) else frozenset([OUTSIDE_TAG])
        made = _converted(before, both[t], after, scheme, target)
        every = _universe(types, target)
        names = {_name(tag, target) for tag in (every - made if excluded else made) if tag.type != OTHER}
        converted.append(write_label_set(names, excluded))
    return converted


def _parse(label: str, source: str, where: Callable[[], str]) -> tuple[Tags, bool]:
    names, excluded = split_label_set(label) if is_label_set(label) else ([label], False)
    try:
        return frozenset(parse_tag(name, source) for name in names), excluded
    except InputError as error:
        raise InputError(f"{where()}: {label!r}: {error}") from None


def _name(tag: Tag, scheme: str) -> str:
    letters = {prefix: letter for letter, prefix in SCHEMES[scheme].items()}
    return "O" if tag.type is None else make_label(letters[tag.prefix], tag.type)


@lru_cache(maxsize=1024)
def _universe(types: tuple[str, ...], scheme: str) -> Tags:
    """Return all labels of a scheme for the types and for another one."""
    return frozenset([OUTSIDE_TAG, *(Tag(p, kind) for kind in (*types, OTHER) for p in SCHEMES[scheme].values())])


def _expand(tags: Tags, excluded: bool, types: tuple[str, ...], scheme: str) -> Tags:
    return _universe(types, scheme) - tags if excluded else tags


def _reachable(sets: Sequence[Tags], scheme: str, where: Callable[[int], str]) -> list[Tags]:
    """Return the labels that follow a legal sequence of allowed ones. Raises InputError where there are none."""
    reachable, before = [], frozenset([OUTSIDE_TAG])
    for t, tags in enumerate(sets):
        before = _following(before, tags, scheme)
        if not before:
            raise InputError(f"{where(t)}: no allowed label is legal in {scheme} after those before; allow another one")
        reachable.append(before)
    if reachable and not _following(before, frozenset([OUTSIDE_TAG]), scheme):
        raise InputError(f"{where(len(sets) - 1)}: no allowed label is legal in {scheme} at the end of a sentence")
    return reachable


def _reachable_back(sets: Sequence[Tags], scheme: str) -> list[Tags]:
    """Return those of the labels that also begin a legal sequence of allowed ones up to the end."""
    reachable, after = [], frozenset([OUTSIDE_TAG])
    for tags in reversed(sets):
        after = _preceding(tags, after, scheme)
        reachable.append(after)
    return reachable[::-1]


@lru_cache(maxsize=2**16)
def _following(before: Tags, tags: Tags, scheme: str) -> Tags:
    return frozenset(tag for tag in tags if any(is_allowed_transition(previous, tag, scheme) for previous in before))


@lru_cache(maxsize=2**16)
def _preceding(tags: Tags, after: Tags, scheme: str) -> Tags:
    return frozenset(tag for tag in tags if any(is_allowed_transition(tag, following, scheme) for following in after))


@lru_cache(maxsize=2**16)
def _converted(before: Tags, tags: Tags, after: Tags, scheme: str, target: str) -> Tags:
    """Return the labels in the target scheme of all legal triples."""
    converted = set()
    for a, tag, b in product(before, tags, after):
        if is_allowed_transition(a, tag, scheme) and is_allowed_transition(tag, b, scheme):
            converted.add(_in_scheme(a, tag, b, target))
    return frozenset(converted)


def _in_scheme(before: Tag, tag: Tag, after: Tag, target: str) -> Tag:
    """Return a label in the target scheme, from its neighbours in the source scheme."""
    if tag.type is None:
        return tag
    if target == "IO":
        return Tag(INSIDE, tag.type)
    first, last = starts_segment(before, tag), after.type is None or starts_segment(tag, after)
    if target == "IOB1":
        return Tag(BEGIN if first and before.type == tag.type else INSIDE, tag.type)
    if target == "IOB2":
        return Tag(BEGIN if first else INSIDE, tag.type)
    return Tag((SINGLE if last else BEGIN) if first else (END if last else INSIDE), tag.type)
