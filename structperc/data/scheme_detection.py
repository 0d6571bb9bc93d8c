"""The tag scheme of labels, found where none is given."""

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
NO_SEGMENT = "no segment in the training data: nothing but O will be learned"


# Labels outside of segments where there is no "O".
OTHER_OUTSIDE = ("o", "0", "_", "-", "OUT", "OTHER", "Other", "other", "NONE", "None", "none", "NIL", "null")
ENOUGH = 0.5  # share of the tokens with other labels than "O" that must be of a scheme
ENOUGH_UNUSUAL = 0.8  # the same, for labels of another form than "B-TYPE"
TYPICAL = 3  # labels of segments are at most so many times as frequent as "O"
NEAR = 0.1  # share of all tokens: schemes that leave so many more unread are compared by illegal labels, too


def legal_schemes(sentences: Sentences) -> list[str]:
    """Return the schemes of segments in which all sentences are legal; all schemes if there is no segment.

    With a segment there is one, or several that differ in letters that do not occur (IOBES and BMES in those for the
    inside): each scheme but IOB1 begins every segment with a letter (B, S, U or W) that IOB1 has only after a segment
    of the same type, and a segment of one token tells schemes apart, as does the end of a longer one.
    """
    return [scheme for scheme in SEGMENT_SCHEMES if _fits(sentences, scheme)]


class SchemeFit(NamedTuple):
    """The scheme or notation that fits labels best, and the labels that are not of it."""

    scheme: str  # "none": the labels are no segments
    unrecognized: Mapping[str, int]  # distinct labels that are not of the scheme, with how often they occur
    inside: int  # tokens with another label than that outside of segments
    prefixed: int  # how many of these have a label of the scheme, or of the best one where the scheme is "none"
    outside: int  # tokens outside of segments

    def remark(self) -> str | None:
        """Return what is odd about the labels as a line of text; None if nothing is."""
        if self.scheme != "none":
            return f"{self.prefixed:,} of {self.inside:,} labels fit {self.scheme}" if self.unrecognized else None
        if self.prefixed:
            return f"{self.prefixed:,} of {self.inside:,} labels have prefixes such as B-, too few for a tag scheme"
        if self.outside * TYPICAL > self.inside:
            return "labels have no prefixes such as B-, so they are learned and scored token by token"
        return None


def fit_scheme(sentences: Sentences) -> SchemeFit:
    """Return the scheme or notation for which the fewest labels are illegal or not of it at all, of several the usual.

    It is one that most labels are of, "O" not counted: half of them, or four of five for labels of another form than
    "B-TYPE". Otherwise it is "none".
    """
    pairs = Counter(chain.from_iterable(pairwise([None, *labels, None]) for labels in sentences))
    counts: Counter[str] = Counter()
    for (label, _), n in pairs.items():
        if label is not None:
            counts[label] += n
    outside = counts[USUAL_OUTSIDE]
    if set(counts) <= {USUAL_OUTSIDE}:
        return SchemeFit(USUAL if counts else "none", {}, 0, 0, outside)
    possible = [(how, _unread(how, counts)) for how in _notations(counts)]
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
    """Return the scheme of `fit_scheme`, if it has the usual notation and all labels are of it; else "none"."""
    found = fit_scheme(sentences)
    return found.scheme if found.scheme in SEGMENT_SCHEMES and not found.unrecognized else "none"


def _notations(counts: Counter[str]) -> Iterator[Notation]:
    """Notations whose form some label has, the usual ones first."""
    gaps = {gap for name in counts for gap in (name[1:2], name[-2:-1]) if gap and gap in TAG_SEPARATORS}
    outside = max((USUAL_OUTSIDE, *OTHER_OUTSIDE), key=counts.__getitem__)
    for lower, last in product((False, True), repeat=2):
        for gap in sorted(gaps, key=TAG_SEPARATORS.index) or [TAG_SEPARATORS[0]]:
            for scheme in SEGMENT_SCHEMES:
                yield Notation(scheme, lower, last, gap, outside)


def _unread(how: Notation, counts: Mapping[str, int]) -> dict[str, int]:
    """The labels that are not of a notation; prefixes without a type are of it only if all labels are."""
    unread = {name: n for name, n in counts.items() if name != how.outside and how.divided(name) is None}
    if unread:
        unread |= {name: n for name, n in counts.items() if name in how.letters}
    return unread


def _cost(
    how: Notation, unread: Mapping[str, int], pairs: Mapping[tuple[str | None, str | None], int]
) -> tuple[int, int, bool]:
    """How many labels are illegal or unread, how many of them unread, and whether the scheme is not the usual one."""
    name, missing = how.name, sum(unread.values())
    known = {pair: n for pair, n in pairs.items() if unread.keys().isdisjoint(pair)}  # what may follow others is open
    tags = {label: OUTSIDE_TAG if label is None else parse_tag(label, name) for label in chain.from_iterable(known)}
    illegal = sum(n for (a, b), n in known.items() if not is_allowed_transition(tags[a], tags[b], how.scheme))
    return missing + illegal, missing, how.scheme != USUAL


def advice_for(label: str, scheme: str, sentences: Sentences) -> str:
    """Return what to change where a label of some sentences is not of a scheme."""
    found = fit_scheme(sentences)
    if found.scheme not in (scheme, "none") and label not in found.unrecognized:
        return f"set labels: {found.scheme}"
    if found.scheme == "none" and not found.prefixed:
        return "if these labels are no segments, set scheme: none"
    meant = suggest_label(label, scheme)
    return "correct this line" if meant is None else f"did you mean {meant!r}? Correct this line"


def common_scheme(predictions: Mapping[str, Sentences]) -> str:
    """Return the scheme of what several systems, by name, predicted: the one that fits all, else IOB2.

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
            raise InputError(f"{name}: its labels are of scheme {own[0]}, others are not; bring all to one scheme")
    return USUAL


def check_labels(sentences: Sentences, name: str, scheme: str) -> None:
    """Raise InputError, naming the file and the place, for a label that the scheme does not have."""
    known: set[str] = set()
    for n, sentence in enumerate(sentences, 1):
        for t, label in enumerate(sentence, 1):
            if label not in known and not is_label(label, scheme):
                advice = advice_for(label, scheme, sentences)
                raise InputError(f"{name}, sentence {n}, token {t}: {unknown_label_message(label, scheme)}; {advice}")
            known.add(label)


def is_label(label: str, scheme: str) -> bool:
    """Return whether a label is one of a scheme or notation, wherever it stands."""
    how = parse_notation(scheme)
    return how.scheme == "none" or label == how.outside or how.divided(label) is not None


def to_scheme(sentences: Sentences, name: str, target: str, source: str | None = None) -> Sentences:
    """Return gold labels of a file, by name, in the target scheme; `source` is that of the file.

    Without a source, labels that are legal in the target scheme stay, others are of the one scheme that fits. Labels
    illegal in a source that is given are repaired as `repair` does, and counted in a warning. Raises InputError for
    labels that fit no scheme, and for those that the source does not have.
    """
    if target == "none" and source in (None, "none"):
        return sentences
    if source is None:
        if _fits(sentences, target):
            return sentences
        fitting = legal_schemes(sentences)
        if not fitting:
            raise InputError(
                f"{name}: its gold labels are illegal in every scheme; set --labels to the one they are of"
            )
        source = fitting[0]
        logger.info("%s: gold labels of scheme %s are compared as %s", name, source, target)
    check_labels(sentences, name, source)
    repaired = [repair(sentence, source) for sentence in sentences]
    found = [convert(labels, source, target) for labels, _ in repaired]
    if changed := sum(changes for _, changes in repaired):
        logger.warning("%s: %s illegal in %s repaired", name, counted(changed, "label"), source)
    return found


def _fits(sentences: Sentences, scheme: str) -> bool:
    try:
        return all(first_violation(labels, scheme) is None for labels in sentences)
    except InputError:  # a label that the scheme does not have
        return False
