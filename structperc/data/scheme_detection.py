"""Detection of the tag scheme of labels, and conversion of gold labels to a scheme."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise, product
from typing import NamedTuple

from structperc.data.tag_schemes import (
    OUTSIDE_TAG,
    SEGMENT_SCHEMES,
    TAG_SEPARATORS,
    USUAL_OUTSIDE,
    Notation,
    convert,
    first_violation,
    is_allowed_transition,
    parse_notation,
    parse_tag,
    repair,
    suggest_label,
    unknown_label_message,
)
from structperc.errors import InputError
from structperc.spelling import counted

logger = logging.getLogger("pytorch_lightning.structperc")

Sentences = Sequence[Sequence[str]]  # of label names
USUAL = "IOB2"
NO_SEGMENT = "no segment in the training data: only O will be predicted"

# Labels outside of segments where there is no "O".
OTHER_OUTSIDE = ("o", "0", "_", "-", "OUT", "OTHER", "Other", "other", "NONE", "None", "none", "NIL", "null")
ENOUGH = 0.5  # share of the tokens with other labels than "O" that must be of a scheme
ENOUGH_UNUSUAL = 0.8  # the same, for labels of another form than "B-TYPE"
TYPICAL = 3  # labels of segments are at most this many times as frequent as "O"
NEAR = 0.1  # schemes that do not fit this share of all tokens more are also compared by illegal labels


def legal_schemes(sentences: Sentences) -> list[str]:
    """Return the segment schemes in which all sentences are legal; all schemes if there is no segment.

    If there is one, several schemes are returned only if they differ in letters that do not occur (IOBES and BMES for
    the inside).
    """
    return [scheme for scheme in SEGMENT_SCHEMES if _is_legal(sentences, scheme)]


class SchemeFit(NamedTuple):
    """The scheme or notation that fits labels best, and the labels that are not of it."""

    scheme: str  # "none": the labels are not segments
    unrecognized: Mapping[str, int]  # count of each label that is not of the scheme
    inside: int  # tokens with another label than the outside label
    prefixed: int  # how many of these are of the scheme, or of the best one if the scheme is "none"
    outside: int  # tokens outside of segments

    def remark(self) -> str | None:
        """Return a line of text about unusual labels, if any."""
        if self.scheme != "none":
            return f"{self.prefixed:,} of {self.inside:,} labels fit {self.scheme}" if self.unrecognized else None
        if self.prefixed:
            return f"{self.prefixed:,} of {self.inside:,} labels have prefixes such as B-, too few for a tag scheme"
        if self.outside * TYPICAL > self.inside:
            return "labels have no prefixes such as B-, so they are learned and scored token by token"
        return None


def fit_scheme(sentences: Sentences) -> SchemeFit:
    """Return the scheme or notation with the fewest illegal and unrecognized labels, the usual one if several have.

    It must fit half of the labels other than "O", or four of five for labels of another form than "B-TYPE"; otherwise
    the scheme is "none".
    """
    pairs = Counter(chain.from_iterable(pairwise([None, *labels, None]) for labels in sentences))
    counts: Counter[str] = Counter()
    for (label, _), n in pairs.items():
        if label is not None:
            counts[label] += n
    outside = counts[USUAL_OUTSIDE]
    if set(counts) <= {USUAL_OUTSIDE}:
        return SchemeFit(USUAL if counts else "none", {}, 0, 0, outside)
    possible = [(how, _unrecognized(how, counts)) for how in _notations(counts)]
    possible = [(how, unread) for how, unread in possible if counts.keys() - unread.keys() - {how.outside}]
    if not possible:
        return SchemeFit("none", {}, counts.total() - outside, 0, outside)
    most = min(sum(unread.values()) for _, unread in possible) + counts.total() * NEAR
    close = [(how, unread) for how, unread in possible if sum(unread.values()) <= most]
    how, unread = min(close, key=lambda one: _cost(one[0], one[1], pairs))
    inside = counts.total() - counts[how.outside]
    prefixed = inside - sum(unread.values())
    usual = (how.lower, how.reversed, how.gap) == (False, False, "-")
    enough = prefixed >= inside * (ENOUGH if usual else ENOUGH_UNUSUAL)
    return SchemeFit(how.name if enough else "none", unread if enough else {}, inside, prefixed, counts[how.outside])


def detect_scheme(sentences: Sentences) -> str:
    """Return the scheme of `fit_scheme` if all labels are of it, in the usual notation; else "none"."""
    found = fit_scheme(sentences)
    return found.scheme if found.scheme in SEGMENT_SCHEMES and not found.unrecognized else "none"


def _notations(counts: Counter[str]) -> Iterator[Notation]:
    """Yield notations with a separator that occurs, the usual ones first."""
    gaps = {gap for name in counts for gap in (name[1:2], name[-2:-1]) if gap and gap in TAG_SEPARATORS}
    outside = max((USUAL_OUTSIDE, *OTHER_OUTSIDE), key=counts.__getitem__)
    for lower, last in product((False, True), repeat=2):
        for gap in sorted(gaps, key=TAG_SEPARATORS.index) or [TAG_SEPARATORS[0]]:
            for scheme in SEGMENT_SCHEMES:
                yield Notation(scheme, lower, last, gap, outside)


def _unrecognized(how: Notation, counts: Mapping[str, int]) -> dict[str, int]:
    """Return the labels that are not of a notation; prefixes without a type count only if all labels are of it."""
    found = {name: n for name, n in counts.items() if name != how.outside and how.split(name) is None}
    if found:
        found |= {name: n for name, n in counts.items() if name in how.letters}
    return found


def _cost(
    how: Notation, unread: Mapping[str, int], pairs: Mapping[tuple[str | None, str | None], int]
) -> tuple[int, int, bool]:
    """Return the number of illegal and unrecognized labels, of unrecognized ones, and whether the scheme is unusual."""
    name, missing = how.name, sum(unread.values())
    known = {pair: n for pair, n in pairs.items() if unread.keys().isdisjoint(pair)}
    tags = {label: OUTSIDE_TAG if label is None else parse_tag(label, name) for label in chain.from_iterable(known)}
    illegal = sum(n for (a, b), n in known.items() if not is_allowed_transition(tags[a], tags[b], how.scheme))
    return missing + illegal, missing, how.scheme != USUAL


def advice_for(label: str, scheme: str, sentences: Sentences) -> str:
    """Return what to change if a label in some sentences is not of a scheme."""
    found = fit_scheme(sentences)
    if found.scheme not in (scheme, "none") and label not in found.unrecognized:
        return f"set labels: {found.scheme}"
    if found.scheme == "none" and not found.prefixed:
        return "if these labels are not segments, set scheme: none"
    meant = suggest_label(label, scheme)
    return "correct this line" if meant is None else f"did you mean {meant!r}? Correct this line"


def common_scheme(predictions: Mapping[str, Sentences]) -> str:
    """Return a scheme that fits the predictions of several systems, by name; IOB2 if possible.

    Raises InputError for a system whose labels fit another scheme than those of the others.
    """
    fitting = {name: legal_schemes(sentences) for name, sentences in predictions.items()}
    shared = [scheme for scheme in SEGMENT_SCHEMES if all(scheme in own for own in fitting.values())]
    if USUAL in shared or not any(fitting.values()):
        return USUAL
    if shared:
        return shared[0]
    for name, own in fitting.items():
        if own and USUAL not in own:
            raise InputError(f"{name}: its labels are of scheme {own[0]}, others are not; convert all to one scheme")
    return USUAL


def check_labels(sentences: Sentences, name: str, scheme: str) -> None:
    """Raise InputError, with the file and the place, for a label that is not of the scheme."""
    known: set[str] = set()
    for n, sentence in enumerate(sentences, 1):
        for t, label in enumerate(sentence, 1):
            if label not in known and not is_label(label, scheme):
                advice = advice_for(label, scheme, sentences)
                raise InputError(f"{name}, sentence {n}, token {t}: {unknown_label_message(label, scheme)}; {advice}")
            known.add(label)


def is_label(label: str, scheme: str) -> bool:
    """Return whether a label is of a scheme or notation."""
    how = parse_notation(scheme)
    return how.scheme == "none" or label == how.outside or how.split(label) is not None


def to_scheme(sentences: Sentences, name: str, target: str, source: str | None = None) -> Sentences:
    """Return the gold labels of a file, by name, in the target scheme; `source` is that of the file.

    Without a source, labels that are legal in the target scheme are returned as they are, others are of the first
    scheme that fits. Labels that are illegal in the given source are repaired with a warning. Raises InputError for
    labels that fit no scheme or are not of the source.
    """
    if target == "none" and source in (None, "none"):
        return sentences
    if source is None:
        if _is_legal(sentences, target):
            return sentences
        fitting = legal_schemes(sentences)
        if not fitting:
            raise InputError(f"{name}: the gold labels are illegal in every scheme; set --labels to their scheme")
        source = fitting[0]
        logger.info("%s: gold labels of scheme %s are compared as %s", name, source, target)
    check_labels(sentences, name, source)
    repaired = [repair(sentence, source) for sentence in sentences]
    if changed := sum(changes for _, changes in repaired):
        logger.warning("%s: %s illegal in %s repaired", name, counted(changed, "label"), source)
    return [convert(labels, source, target) for labels, _ in repaired]


def _is_legal(sentences: Sentences, scheme: str) -> bool:
    try:
        return all(first_violation(labels, scheme) is None for labels in sentences)
    except InputError:  # a label that is not of the scheme
        return False
