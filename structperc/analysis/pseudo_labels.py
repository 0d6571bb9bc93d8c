"""Pseudo-labels: unknown labels of training data replaced by those of which a model is sure, for self-training."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from structperc.data.conll import conll_lines
from structperc.data.corpus import Corpus
from structperc.data.label_sets import ALLOWED, is_incomplete, is_label_set
from structperc.data.possible_labels import POSSIBLE
from structperc.data.read_options import DEFAULT_READING, ReadOptions
from structperc.data.table_files import table_format
from structperc.data.tag_schemes import parse_tag
from structperc.data.text_files import expand_path, read_lines
from structperc.errors import InputError
from structperc.models.chain_model import ChainModel
from structperc.spelling import counted
from structperc.tagging.column_roles import GOLD, column_roles, line_format_of


class PseudoLabels(NamedTuple):
    """Training data with labels that a model has added.

    Example:
        >>> from structperc import Corpus
        >>> corpus = Corpus.from_sentences([{"word": ["Anna", "left"], "allowed": ["B-PER", "?"]}])
        >>> PseudoLabels(corpus, added={"O": 3}, unknown=1).lines()
        ['3 unknown labels replaced, 1 unknown label left', '  O: 3']
    """

    corpus: Corpus  # labels and sets of labels in the column `allowed`, in the scheme of the model
    added: dict[str, int]  # number of added labels, by type or "O"
    unknown: int  # number of tokens whose label is still unknown or ambiguous

    def lines(self) -> list[str]:
        """Return the numbers of added labels and of unknown ones that are left."""
        done, left = counted(sum(self.added.values()), "unknown label"), counted(self.unknown, "unknown label")
        return [f"{done} replaced, {left} left", *(f"  {name}: {n:,}" for name, n in self.added.items())]


def pseudo_labels(tagger: ChainModel, corpus: Corpus, min_probability: float = 0.9) -> PseudoLabels:
    """Replace unknown and ambiguous labels by the predicted ones of high probability. Lee 2013, section 2.

    The model labels each sentence under its known labels: a label is predicted only if it is allowed, and its
    probability is that given the known labels of the sentence. A label of lower probability stays a set. Training with
    the result and labelling again is a round of self-training (Scudder 1965; Yarowsky 1995).

    Args:
        tagger: A model with probabilities, trained by `CRFLoss` for instance.
        corpus: Training data with sets of labels in the scheme of the tagger, as of a data module with `incomplete`.
        min_probability: Lowest probability of an added label, 0..1.

    Raises:
        InputError: The data has no sets of labels, the tagger has no probabilities, or the number is not in 0..1.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(max_iterations=20).fit(X, y).tagger_
        >>> sentence = {"word": ["Anna", "left"], "label": ["B-PER", "O"], "allowed": ["B-PER", "?"]}
        >>> pseudo_labels(tagger, Corpus.from_sentences([sentence]), 0.5).corpus.columns["allowed"]
        ['B-PER', 'O']
    """
    if not 0 <= min_probability <= 1:
        raise InputError(f"min_probability must be in 0..1, got {min_probability}")
    if not is_incomplete(corpus):
        raise InputError(f"{corpus.name}: no unknown labels; mark them with ?, or label the text with structperc tag")
    tagger.check_probabilistic()
    texts = list(corpus.columns[ALLOWED])
    tagged = tagger.predict(corpus.replace_column(POSSIBLE, texts), confident=True)
    assert tagged.tokens is not None
    sure = [is_label_set(text) and p >= min_probability for text, p in zip(texts, tagged.tokens.tolist(), strict=True)]
    new = [label if take else text for text, label, take in zip(texts, tagged.labels, sure, strict=True)]
    kinds = (parse_tag(tag, tagger.labels.scheme).type or "O" for tag, take in zip(new, sure, strict=True) if take)
    added = dict(Counter(kinds).most_common())
    return PseudoLabels(corpus.replace_column(ALLOWED, new), added, sum(map(is_label_set, new)))


def output_lines(
    tagger: ChainModel, file: str, corpus: Corpus, reading: ReadOptions = DEFAULT_READING
) -> Iterator[str]:
    """Yield the lines of a file of training data with the labels and sets of labels of its corpus, as columns.

    Other fields of a column file and its empty lines stay as they are; tables become columns, the label last.

    Args:
        tagger: The model with which the file was read.
        file: The file.
        corpus: Its corpus, with the column `allowed`.
        reading: The options with which it was read.
    """
    lines = [] if table_format(expand_path(file)) else read_lines(file, reading.encoding)
    roles = column_roles(tagger, lines, file, reading).roles if lines else []
    if GOLD not in roles or corpus.lines is None:
        whole = corpus.replace_column(GOLD, corpus.columns[ALLOWED])
        yield from conll_lines(whole, [*(role for role in corpus.columns if role not in (GOLD, ALLOWED)), GOLD])
        return
    labels = dict(zip(corpus.lines.tolist(), corpus.columns[ALLOWED], strict=True))
    gap = re.compile(r"(\t)" if line_format_of(tagger, lines, reading).separator == "tab" else r"(\s+)")
    for number, line in enumerate(lines[:-1] if not lines[-1] else lines, 1):
        parts = gap.split(line.strip(" ")) if number in labels else [line]
        if number in labels:
            parts[2 * roles.index(GOLD)] = labels[number]
        yield "".join(parts) + "\n"
