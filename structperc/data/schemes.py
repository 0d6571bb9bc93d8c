"""The tag scheme of labels, found where none is given."""

import logging
from collections.abc import Mapping, Sequence

from structperc.data.segments import convert, first_violation, repair
from structperc.data.tags import SEGMENT_SCHEMES
from structperc.errors import InputError

logger = logging.getLogger("pytorch_lightning.structperc")

Sentences = Sequence[Sequence[str]]  # of label names
USUAL = "IOB2"


def fitting_schemes(sentences: Sentences) -> list[str]:
    """Return the schemes of segments in which all sentences are legal; all schemes if there is no segment.

    With a segment there is one at most: each scheme but IOB1 begins every segment with a letter (B, S or U) that IOB1
    has only after a segment of the same type, and a segment of one token tells IOB2, IOBES and BILOU apart, as does
    the end of a longer one.
    """
    return [scheme for scheme in SEGMENT_SCHEMES if _fits(sentences, scheme)]


def common_scheme(predictions: Mapping[str, Sentences]) -> str:
    """Return the scheme of what several systems, by name, predicted: the one that fits all, else IOB2.

    Raises InputError for a system whose labels fit another scheme than those of the others.
    """
    fitting = {name: fitting_schemes(sentences) for name, sentences in predictions.items()}
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
    """Raise InputError, naming the file, for a label that the scheme does not have, wherever it stands."""
    for label in dict.fromkeys(label for sentence in sentences for label in sentence):
        try:
            first_violation([label], scheme)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None


def in_scheme(sentences: Sentences, name: str, target: str, source: str | None = None) -> Sentences:
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
        fitting = fitting_schemes(sentences)
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
        logger.warning("%s: %d labels illegal in %s were repaired", name, changed, source)
    return found


def _fits(sentences: Sentences, scheme: str) -> bool:
    try:
        return all(first_violation(labels, scheme) is None for labels in sentences)
    except InputError:  # a label that the scheme does not have
        return False
