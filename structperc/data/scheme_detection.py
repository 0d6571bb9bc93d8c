"""Detection of the tag scheme of labels, and conversion of gold labels to a scheme."""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise, product
from typing import NamedTuple

from structperc.data.tag_schemes import (
    BRACKETS,
    OUTSIDE_TAG,
    PREFIX_SCHEMES,
    TAG_SEPARATORS,
    USUAL_OUTSIDE,
    Notation,
    are_brackets,
    bracket_types,
    convert,
    first_violation,
    is_allowed_transition,
    parse_notation,
    parse_tag,
    repair,
    spans,
    suggest_label,
    unknown_label_message,
    wider_scheme,
)
from structperc.errors import InputError
from structperc.spelling import counted

logger = logging.getLogger("pytorch_lightning.structperc")

LabelSequences = Sequence[Sequence[str]]  # names of labels by sentence
USUAL = "IOB2"
NO_OUTSIDE = "no token is outside segments, as scheme IO expects; if labels are not segments, use scheme none"
NO_SEGMENT = "no segment in the training data: only O will be predicted"

# Labels outside segments in files without "O".
OTHER_OUTSIDE = ("o", "0", "_", "-", "OUT", "OTHER", "Other", "other", "NONE", "None", "none", "NIL", "null")
MIN_SHARE = 0.5  # least share of the tokens with other labels than "O" whose labels are of the scheme
MIN_SHARE_UNUSUAL = 0.8  # the same, for labels of another form than "B-TYPE"
MIN_SHARE_MIXED = 0.01  # least share of all tokens with prefixes that only another scheme has
MAX_RATIO = 3  # largest ratio of tokens in segments to tokens with "O"
MIN_SHARE_IN_RUNS = 0.1  # the same, for labels without prefixes: next to a token with the same label
TOLERANCE = 0.1  # share of all tokens; schemes with so many more unrecognized labels are compared by illegal labels


def legal_schemes(sentences: LabelSequences) -> list[str]:
    """Return the segment schemes in which all sentences are legal; all schemes if there is no segment.

    Otherwise schemes fit together only if they differ in letters that do not occur (IOBES and BMES in that of INSIDE).
    """
    return [scheme for scheme in PREFIX_SCHEMES if _is_legal(sentences, scheme)]


class SchemeFit(NamedTuple):
    """The scheme or notation that fits labels best, and the labels that are not of it."""

    scheme: str  # "none": the labels are not segments
    unrecognized: Mapping[str, int]  # counts of labels that are not of the scheme
    inside: int  # number of tokens with other labels than the outside label
    prefixed: int  # number of these with a label of the scheme, or of the best one if the scheme is "none"
    outside: int  # number of tokens outside segments
    illegal: int = 0  # number of recognized labels that are illegal after the label before, or at the end
    types: frozenset[str] = frozenset()  # types of the segments; "" for labels that consist of a prefix

    @property
    def is_regular(self) -> bool:
        """True for labels with prefixes and types of which at most a tenth is not of the scheme."""
        return bool(self.types - {""}) and sum(self.unrecognized.values()) <= TOLERANCE * self.inside

    def remark(self) -> str | None:
        """Return a message about unusual labels, if any."""
        if self.scheme == "IO":
            advice = "set --labels none if they are not segments"
            return f"labels have no prefixes such as B-, so neighbours with one label are a segment (IO); {advice}"
        if self.scheme != "none":
            return f"{self.prefixed:,} of {self.inside:,} labels fit {self.scheme}" if self.unrecognized else None
        if self.prefixed:
            return f"{self.prefixed:,} of {self.inside:,} labels have prefixes such as B-, too few for a tag scheme"
        if self.outside * MAX_RATIO > self.inside:
            advice = "set --labels IO if neighbours with one label are a segment"
            return f"labels have no prefixes such as B-, so they are learned and evaluated token by token; {advice}"
        return None


def fit_scheme(sentences: LabelSequences) -> SchemeFit:
    """Return the scheme or notation with the fewest illegal and unrecognized labels, preferably the usual one.

    If prefixes of several schemes are mixed, such as S- among B- and I-, it is a scheme that has all of them, unless
    they are rare; segments do not depend on it. Labels without prefixes have the scheme "none", see `fit_io`. It must
    fit half of the labels other than "O", or 80 % for labels of another form than "B-TYPE"; otherwise the scheme is
    "none". Labels without types, such as B and I, must also be several and nearly all legal.
    """
    pairs = Counter(chain.from_iterable(pairwise([None, *labels, None]) for labels in sentences))
    counts: Counter[str] = Counter()
    for (label, _), n in pairs.items():
        if label is not None:
            counts[label] += n
    outside = counts[USUAL_OUTSIDE]
    if set(counts) <= {USUAL_OUTSIDE}:
        return SchemeFit(USUAL if counts else "none", {}, 0, 0, outside)
    fits = [(notation, _unrecognized(notation, counts)) for notation in _notations(counts)]
    possible = [(form, unread) for form, unread in fits if counts.keys() - unread.keys() - {form.outside}]
    if not possible:
        return SchemeFit("none", {}, counts.total() - outside, 0, outside)
    most = min(sum(unread.values()) for _, unread in possible) + counts.total() * TOLERANCE
    close = [(form, unread) for form, unread in possible if sum(unread.values()) <= most]
    cost, notation, unread = min(((_cost(*fit, pairs), *fit) for fit in close), key=lambda one: one[0])
    read_by_others = [(form, few) for form, few in possible if form[1:] == notation[1:] and few.keys() < unread.keys()]
    enough = sum(unread.values()) - MIN_SHARE_MIXED * counts.total()
    wider = [(_cost(form, few, pairs), form, few) for form, few in read_by_others if sum(few.values()) <= enough]
    if wider:
        cost, notation, unread = min(wider, key=lambda one: one[0][1::-1])
    outside = counts[notation.outside]
    inside = counts.total() - outside
    prefixed = inside - sum(unread.values())
    usual = (notation.lower, notation.reversed, notation.gap) == (False, False, "-")
    if prefixed < inside * (MIN_SHARE if usual else MIN_SHARE_UNUSUAL):
        return SchemeFit("none", {}, inside, prefixed, outside)
    illegal, read = cost[0] - cost[1], counts.keys() - unread.keys()
    types = frozenset(kind for label in read if (kind := parse_tag(label, notation.name).type) is not None)
    if types == {""} and (len(counts) == 1 or illegal > inside * TOLERANCE):
        return SchemeFit("none", {}, inside, 0, outside)
    return SchemeFit(notation.name, unread, inside, prefixed, outside, illegal, types)


def fit_io(sentences: LabelSequences) -> SchemeFit | None:
    """Return the fit of scheme IO if O is the most frequent label and others stand in runs, more than by chance."""
    counts = Counter(chain.from_iterable(sentences))
    outside = counts.pop(USUAL_OUTSIDE, 0)
    if not counts or outside <= max(counts.values()):
        return None
    inside = counts.total()
    in_runs = sum(len(run) for labels in sentences for run in _runs(labels) if len(run) > 1)
    pairs = sum(len(run) - 1 for labels in sentences for run in _runs(labels))
    by_chance = sum(n * n for n in counts.values()) / (inside + outside)
    if pairs <= by_chance or in_runs < MIN_SHARE_IN_RUNS * inside:
        return None
    return SchemeFit("IO", {}, inside, inside, outside, 0, frozenset(counts))


def fit_brackets(sentences: LabelSequences) -> SchemeFit | None:
    """Return the fit of labels that are all brackets, by the numbers of tokens with and without an opening one."""
    counts = Counter(chain.from_iterable(sentences))
    if not are_brackets(counts):
        return None
    opening = {label: kinds for label in counts if (kinds := bracket_types(label))}
    inside = sum(counts[label] for label in opening)
    types = frozenset(chain.from_iterable(opening.values()))
    return SchemeFit(BRACKETS, {}, inside, inside, counts.total() - inside, 0, types)


def _runs(labels: Sequence[str]) -> Iterator[list[str]]:
    """Yield the runs of equal labels other than O."""
    return (list(run) for label, run in groupby(labels) if label != USUAL_OUTSIDE)


def detect_scheme(sentences: LabelSequences) -> str:
    """Return the scheme of `fit_scheme` if all labels have it in the usual notation; otherwise "none"."""
    fit = fit_scheme(sentences)
    return fit.scheme if fit.scheme in PREFIX_SCHEMES and not fit.unrecognized else "none"


def _notations(counts: Counter[str]) -> Iterator[Notation]:
    """Yield notations with a separator that occurs, the usual ones first."""
    gaps = {gap for name in counts for gap in (name[1:2], name[-2:-1]) if gap and gap in TAG_SEPARATORS}
    outside = max((USUAL_OUTSIDE, *OTHER_OUTSIDE), key=counts.__getitem__)
    for lower, last in product((False, True), repeat=2):
        for gap in sorted(gaps, key=TAG_SEPARATORS.index) or [TAG_SEPARATORS[0]]:
            for scheme in PREFIX_SCHEMES:
                yield Notation(scheme, lower, last, gap, outside)


def _unrecognized(notation: Notation, counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts of labels that are not of a notation; if there are any, also of prefixes without a type."""
    unread = {name: n for name, n in counts.items() if name != notation.outside and notation.split(name) is None}
    if unread:
        unread |= {name: n for name, n in counts.items() if name in notation.letters}
    return unread


def _cost(
    notation: Notation, unread: Mapping[str, int], pairs: Mapping[tuple[str | None, str | None], int]
) -> tuple[int, int, bool]:
    """Return a sort key: number of illegal or unrecognized labels, of unrecognized ones, True for an unusual scheme."""
    name, missing = notation.name, sum(unread.values())
    read = {pair: n for pair, n in pairs.items() if unread.keys().isdisjoint(pair)}
    tags = {label: OUTSIDE_TAG if label is None else parse_tag(label, name) for label in chain.from_iterable(read)}
    illegal = sum(n for (a, b), n in read.items() if not is_allowed_transition(tags[a], tags[b], notation.scheme))
    return missing + illegal, missing, notation.scheme != USUAL


def advice_for(label: str, scheme: str, sentences: LabelSequences) -> str:
    """Return advice for a label in some sentences that is not of a scheme."""
    fit = fit_scheme(sentences)
    if fit.scheme not in (scheme, "none") and label not in fit.unrecognized:
        return f"set labels: {fit.scheme}"
    if fit.scheme == "none" and not fit.prefixed:
        bare = "if neighbours with one label are a segment, set scheme: IO; " if "O" in chain(*sentences) else ""
        return f"{bare}if these labels are not segments, set scheme: none"
    meant = suggest_label(label, scheme)
    if meant is None and (wider := wider_scheme(label, scheme)) is not None:
        return f"correct this line, or set labels: {wider}, which also has this prefix"
    return "correct this line" if meant is None else f"did you mean {meant!r}? Correct this line"


def common_scheme(predictions: Mapping[str, LabelSequences]) -> str:
    """Return a scheme that fits the predictions of all systems, given by name; IOB2 if possible.

    Raises InputError if the labels of the systems are of different schemes.
    """
    fitting = {name: legal_schemes(sentences) for name, sentences in predictions.items()}
    shared = [scheme for scheme in PREFIX_SCHEMES if all(scheme in legal for legal in fitting.values())]
    if USUAL in shared or not any(fitting.values()):
        return USUAL
    if shared:
        return shared[0]
    for name, legal in fitting.items():
        if legal and USUAL not in legal:
            raise InputError(f"{name}: its labels are of scheme {legal[0]}, others are not; convert all to one scheme")
    return USUAL


def check_labels(sentences: LabelSequences, name: str, scheme: str) -> None:
    """Raise InputError with file and location for a label that is not of the scheme."""
    checked: set[str] = set()
    for n, sentence in enumerate(sentences, 1):
        for t, label in enumerate(sentence, 1):
            if label not in checked and not is_label(label, scheme):
                advice = advice_for(label, scheme, sentences)
                raise InputError(f"{name}, sentence {n}, token {t}: {unknown_label_message(label, scheme)}; {advice}")
            checked.add(label)


def warn_joined(name: str, sentences: LabelSequences, source: str, target: str) -> None:
    """Warn of adjacent segments of the same type, which become one in the scheme IO."""
    if parse_notation(target).scheme != "IO" or parse_notation(source).scheme == "IO":
        return
    neighbours = (pairwise(spans(labels, source)) for labels in sentences)
    log_joined(name, sum((a.type, a.end) == (b.type, b.start) for pairs in neighbours for a, b in pairs))


def log_joined(name: str, joined: int) -> None:
    """Warn of a number of segments of the file `name` that are joined to the one before."""
    if joined:
        reason = "scheme IO cannot separate adjacent segments of one type"
        logger.warning("%s: %s joined to the one before: %s", name, counted(joined, "segment"), reason)


def is_label(label: str, scheme: str) -> bool:
    """Return True if a label is of a scheme or notation."""
    notation = parse_notation(scheme)
    return notation.scheme == "none" or label == notation.outside or notation.split(label) is not None


def to_scheme(sentences: LabelSequences, name: str, target: str, source: str | None = None) -> LabelSequences:
    """Convert the gold labels of the file `name` from the source scheme to the target scheme.

    Without a source, labels that are legal in the target scheme are unchanged, and the source of others is the first
    scheme that fits. Illegal labels are repaired with a warning. Raises InputError for labels that are not of the
    source, or fit no scheme.
    """
    if target == "none" and source in (None, "none"):
        return sentences
    if source == BRACKETS or (source is None and are_brackets({*chain(*sentences)})):
        sentences, source = [convert(labels, BRACKETS, "IOB2") for labels in sentences], "IOB2"
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
    warn_joined(name, [labels for labels, _ in repaired], source, target)
    if changed := sum(changes for _, changes in repaired):
        logger.warning("%s: %s illegal in %s repaired", name, counted(changed, "label"), source)
    return [convert(labels, source, target) for labels, _ in repaired]


def _is_legal(sentences: LabelSequences, scheme: str) -> bool:
    try:
        return all(first_violation(labels, scheme) is None for labels in sentences)
    except InputError:  # a label that is not of the scheme
        return False
