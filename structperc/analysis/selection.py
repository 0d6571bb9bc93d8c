"""Choice of the texts to label next: those about which a model is least certain, without near-identical ones."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch

from structperc.chain import entropy, marginals
from structperc.data.corpus import Corpus
from structperc.errors import InputError
from structperc.models.chain_model import ChainModel
from structperc.tagging.reading import TOKENS_FIELD, TagInput
from structperc.tagging.writing import output_lines
from structperc.text.alignment import TokenizedText, join_words

Measure = Literal["entropy", "margin", "change", "random"]


class Selected(NamedTuple):
    """A chosen item and its score, as returned by `select`.

    Example:
        >>> from structperc.analysis.selection import Selected
        >>> Selected(item=3, score=0.5).item
        3
    """

    item: int  # its index in the pool
    score: float  # higher ones are chosen first


def select(
    tagger: ChainModel,
    corpus: Corpus,
    n: int,
    by: Measure = "entropy",
    max_similarity: float = 0.7,
    labelled: Iterable[Sequence[str]] = (),
    counts: Sequence[int] | None = None,
    seed: int = 1,
) -> list[Selected]:
    """Return the items of a pool to label next, without near-identical ones.

    Args:
        tagger: The model trained so far.
        corpus: The pool. Its labels, if any, are not read.
        n: Number of items; fewer are returned if fewer are different enough.
        by: Measure of the use of labels, see `selection_scores`. The score of an item of several sequences is that of
            its whole label sequence.
        max_similarity: Items that are more similar to a chosen or labelled one are left out, see `distinct`; 1 keeps
            all.
        labelled: Words of each item that is labelled already.
        counts: Number of sequences of each item; by default, each sequence is an item.
        seed: Seed of the measure "random".

    Returns:
        The chosen items, by descending score.

    Raises:
        InputError: An unknown measure, one that needs probabilities for a model without, or a number out of range.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.analysis import select
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> pool = [["Anna", "left"], ["Bo", "met", "Jo"], ["Bo", "Met", "Jo"], ["Oslo"]]
        >>> corpus = Corpus.from_sentences([{"word": words} for words in pool])
        >>> len(select(tagger, corpus, 4, labelled=X))  # not the first one, nor both of the next two
        2
    """
    if n < 1:
        raise InputError(f"n must be >= 1, got {n}")
    sequences = np.cumsum([0, *([1] * len(corpus) if counts is None else counts)])
    scores = selection_scores(tagger, corpus, by, seed)
    whole = np.sum if by in ("entropy", "change") else np.max
    bounds = corpus.starts[sequences].tolist()
    items = [corpus.columns["word"][a:b] for a, b in pairwise(bounds)]
    values = [float(whole(scores[a:b])) if items[i] else 0.0 for i, (a, b) in enumerate(pairwise(sequences.tolist()))]
    order = [i for i in np.argsort(-np.array(values), kind="stable").tolist() if items[i]]
    return [Selected(i, values[i]) for i in distinct(items, order, n, max_similarity, labelled)]


@torch.no_grad()
def selection_scores(tagger: ChainModel, corpus: Corpus, by: Measure, seed: int = 1) -> np.ndarray:
    """Return for each sequence of a corpus how much its labels would be worth, by a measure.

    "entropy": the entropy of the label sequence given the words (Settles & Craven 2008, sequence entropy; exact, not of
    the n best). "margin": minus the difference of the scores of the two best label sequences, for all models.
    "change": the expected squared length of the gradient of the log-likelihood by the scores of labels at tokens,

        E_y |d log p(y | x) / d scores|^2 = sum over t of (1 - sum over labels of p(y_t | x)^2),

    as in the expected gradient length of Settles & Craven 2008. Differs: gradient by scores instead of weights, its
    square, and an exact expectation. "random": random numbers.

    Args:
        tagger: The model.
        corpus: S sequences.
        by: The measure.
        seed: Seed of "random".

    Returns:
        Scores (S,) float64, high for sequences to be labelled first.

    Raises:
        InputError: An unknown measure, or "entropy" or "change" for a model without probabilities.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.analysis.selection import selection_scores
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger(max_iterations=5).fit(X, y).tagger_
        >>> corpus = Corpus.from_sentences([{"word": ["Anna", "left"]}, {"word": ["Bo", "met", "Jo"]}])
        >>> known, new = selection_scores(tagger, corpus, "entropy")
        >>> bool(known < new)
        True
    """
    if by not in get_args(Measure):
        raise InputError(f"by must be one of {', '.join(get_args(Measure))}, not {by!r}")
    scores = np.zeros(len(corpus))
    if by == "random":
        return np.random.default_rng(seed).random(len(corpus))
    if by == "margin":
        for row, best in enumerate(tagger.kbest(corpus, 2)):
            scores[row] = best[1].score - best[0].score if len(best) == 2 else -np.inf
        return scores
    if not tagger.probabilistic:
        advice = "use margin, or train with CRFLoss (structperc init --learner crf)"
        raise InputError(f"by {by}: this model has no probabilities; {advice}")
    for batch in tagger.batches(corpus):
        lattice = tagger.scaled(tagger(batch))
        values = entropy(lattice) if by == "entropy" else _expected_change(marginals(lattice), batch.lengths)
        scores[batch.rows.cpu().numpy()] = values.cpu().numpy()
    return scores


def _expected_change(table: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return lengths - table.square().sum((1, 2))  # marginals are 0 in the padding


def distinct(
    items: Sequence[Sequence[str]],
    order: Iterable[int],
    n: int,
    max_similarity: float,
    labelled: Iterable[Sequence[str]] = (),
) -> list[int]:
    """Return the first n items in an order that are not near-identical to one before them.

    The similarity of two items is the share of their distinct words that both have (Jaccard), in lower case and with 0
    for every digit. Only items that share one of their rarest words are compared (prefix filtering, Chaudhuri et al.
    2006), which is exact.

    Args:
        items: Words of each item.
        order: Indices of items, those to be taken first at the beginning.
        n: Number of items to return.
        max_similarity: The highest similarity of two items, 0 to 1.
        labelled: Words of further items, as if they were taken before.

    Returns:
        Indices of items, at most n.

    Raises:
        InputError: `max_similarity` is not in 0..1.

    Example:
        >>> from structperc.analysis.selection import distinct
        >>> distinct([["Oslo", "1996-08-30"], ["OSLO", "1996-08-31"], ["Rome", "1996-08-30"]], [0, 1, 2], 2, 0.5)
        [0, 2]
    """
    if not 0 <= max_similarity <= 1:
        raise InputError(f"max_similarity must be in 0..1, got {max_similarity}")
    labelled_words = [_normal_words(item) for item in labelled]
    item_words = [_normal_words(item) for item in items]
    frequency = Counter(word for words in (*labelled_words, *item_words) for word in words)
    by_word: dict[str, list[set[str]]] = defaultdict(list)

    def add(words: set[str]) -> bool:
        """Add an item unless a similar one is there."""
        sure = int(max_similarity * len(words))  # a similar item has more than so many of the words
        rare = sorted(words, key=lambda word: (frequency[word], word))[: len(words) - sure]
        if any(len(words & other) > max_similarity * len(words | other) for word in rare for other in by_word[word]):
            return False
        for word in rare:
            by_word[word].append(words)
        return True

    for labelled_item in labelled_words:
        add(labelled_item)
    chosen: list[int] = []
    for i in order:
        if len(chosen) == n:
            break
        if add(item_words[i]):
            chosen.append(i)
    return chosen


def item_counts(given: TagInput) -> list[int]:
    """Return the number of sequences of each item of a pool: a line of JSON lines, otherwise a sequence."""
    if given.plan.form != "jsonl":
        return [1] * len(given.corpus)
    return [min(1, n) if given.plan.unit == "document" else n for n in (len(text.sentences) - 1 for text in given.own)]


def selected_lines(tagger: ChainModel, given: TagInput, chosen: Iterable[Selected]) -> Iterator[str]:
    """Yield chosen items as JSON lines with the predictions of the tagger, in the form of `structperc tag`.

    Further fields are `selection_score` and, unless the input is JSON lines, `source` with the place of the item.
    Fields of JSON lines with an empty list are left out: annotation tools would read them in place of the predictions.

    Args:
        tagger: The tagger.
        given: The pool.
        chosen: Items of the pool, in the order of the output.
    """
    corpus, form = given.corpus, given.plan.form
    sequences = np.cumsum([0, *item_counts(given)])
    tokens = corpus.starts[sequences]
    parts = tagger.predict(corpus, tagger.probabilistic).split(np.diff(tokens).tolist())
    whole = given.plan.unit == "document"
    texts = given.own if form == "jsonl" or whole else [part for text in given.own for part in _sentence_texts(text)]
    for item, score in chosen:
        record: dict[str, Any] = {"source": corpus.where(int(tokens[item]))}
        if form == "jsonl":
            record = {name: value for name, value in given.records[item].items() if value != []}
        if form == "columns":
            part = corpus.slice(int(sequences[item]), int(sequences[item + 1]))
            text = join_words(part.sentences_of(part.columns["word"]))
            record |= {TOKENS_FIELD: text.words}
        else:
            text = texts[item]
        record["selection_score"] = round(score, 6)
        item_input = given._replace(plan=given.plan._replace(form="jsonl", prefix=""), own=[text], records=[record])
        yield from output_lines(item_input, parts[item], tagger.labels, "jsonl")


def _sentence_texts(text: TokenizedText) -> Iterator[TokenizedText]:
    """Yield each sentence as a text of its own."""
    for first, last in pairwise(text.sentences):
        (start, _), (_, end) = text.tokens[first], text.tokens[last - 1]
        tokens = [(a - start, b - start) for a, b in text.tokens[first:last]]
        yield TokenizedText(text.text[start:end], tokens, [0, last - first])


def _normal_words(words: Iterable[str]) -> set[str]:
    return {re.sub(r"\d", "0", word.lower()) for word in words}
