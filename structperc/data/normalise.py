"""Labels of a corpus repaired and brought into another tag scheme."""

from structperc.data.corpus import Corpus
from structperc.data.labels import convert, first_violation, repair
from structperc.errors import InputError


def normalise_labels(corpus: Corpus, source: str, target: str, strict: bool = False) -> tuple[Corpus, int]:
    """Column `label` of scheme `source` -> corpus with labels of scheme `target`, number of labels repaired.

    Sentence by sentence, illegal sequences are read as conlleval reads them (I after O or after another type
    opens a segment). InputError with the place of a label that is not of the scheme at all or, if strict,
    that is illegal where it stands.
    """
    if "label" not in corpus.columns:
        raise InputError(f"{corpus.name}: no column 'label' among {list(corpus.columns)}")
    labels = corpus.columns["label"]
    _check_labels(corpus, labels, source)
    normal: list[str] = []
    repaired = 0
    for sentence in corpus.sentences_of(labels):
        if strict:
            _check_legal(corpus, sentence, len(normal), source)
        legal, changed = repair(sentence, source)
        normal += legal if source == target else convert(legal, source, target)
        repaired += changed
    return corpus.replace_column("label", normal), repaired


def _check_labels(corpus: Corpus, labels: list[str], scheme: str) -> None:
    for label in dict.fromkeys(labels):
        try:
            first_violation([label], scheme)
        except InputError as error:
            raise InputError(f"{corpus.where(labels.index(label))}: {error}") from None


def _check_legal(corpus: Corpus, sentence: list[str], start: int, scheme: str) -> None:
    if (at := first_violation(sentence, scheme)) is not None:
        before = repr(sentence[at - 1]) if at else "the beginning"
        after = repr(sentence[at + 1]) if at + 1 < len(sentence) else "the end"
        raise InputError(
            f"{corpus.where(start + at)}: {sentence[at]!r} between {before} and {after} of the sentence is "
            f"illegal in scheme {scheme}; mend it, or set strict: false to repair"
        )
