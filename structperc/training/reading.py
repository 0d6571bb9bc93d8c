"""A file of CoNLL columns as the corpus that a saved tagger reads, with gold labels in its scheme."""

import logging
from collections.abc import Sequence

from structperc.data.conll import read_conll
from structperc.data.corpus import Corpus
from structperc.data.normalise import normalise_labels
from structperc.errors import InputError
from structperc.training.sequence_tagger import SequenceTagger

logger = logging.getLogger("pytorch_lightning.structperc")


def read_corpus(
    tagger: SequenceTagger,
    file: str,
    columns: Sequence[str] | None = None,
    unit: str | None = None,
    scheme: str | None = None,
) -> Corpus:
    """-> corpus; with a column `label`, in the scheme of the tagger, if the file has gold labels.

    `columns` are the roles of the file's columns; by default those that the tagger reads come first, and what
    stands last behind them is gold. `unit` and `scheme` (of the file) are those of the tagger unless given. Labels
    are repaired and converted as `SequenceData` does. InputError for a bad file, missing columns and labels that
    are not of the scheme.
    """
    unit = unit or tagger.unit
    corpus = _read(tagger, file, columns, unit)
    if unit == "document" and 1 < len(corpus) == len(corpus.sentences) - 1:
        raise InputError(f"{file}: no document marks (-DOCSTART- lines) in it; use --unit sentence")
    if "label" not in corpus.columns:
        return corpus
    source = scheme or tagger.labels.scheme
    corpus, repaired = normalise_labels(corpus, source, tagger.labels.scheme)
    if repaired:
        logger.warning("%s: %d labels illegal in %s were repaired", file, repaired, source)
    return corpus


def read_gold(
    tagger: SequenceTagger,
    file: str,
    columns: Sequence[str] | None = None,
    unit: str | None = None,
    scheme: str | None = None,
) -> Corpus:
    """As `read_corpus`. InputError for a file without gold labels."""
    corpus = read_corpus(tagger, file, columns, unit, scheme)
    if "label" not in corpus.columns:
        raise InputError(f"{file}: there are no gold labels; name their column 'label' in --columns")
    return corpus


def _read(tagger: SequenceTagger, file: str, columns: Sequence[str] | None, unit: str) -> Corpus:
    if columns:
        return Corpus.from_dataset(read_conll(file, list(columns)), unit, file)
    roles = tagger.features.columns
    places = {role: i for i, role in enumerate(roles)}
    corpus = Corpus.from_dataset(read_conll(file, {**places, "label": -1}), unit, file)
    if corpus.columns["label"] != corpus.columns[roles[-1]]:
        return corpus
    return Corpus.from_dataset(read_conll(file, roles), unit, file)  # nothing stands behind what the tagger reads
