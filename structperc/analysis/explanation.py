"""Effect of non-local features on decisions: the best candidate by local score against the best by total score."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

import torch
from torch import Tensor

from structperc.chain import kbest
from structperc.data.corpus import Corpus
from structperc.data.tag_schemes import Span, spans
from structperc.errors import InputError
from structperc.models.base import device_of
from structperc.models.chain_model import ChainModel
from structperc.nonlocal_features import CandidateSegments, NonlocalFeature
from structperc.progress import bar
from structperc.spelling import counted
from structperc.structures import Batch, Candidates, to_device

VERDICTS = {"repaired": "repaired", "damaged": "damaged", "changed": "wrong before and after"}
OTHERS = 3  # further candidates in an explanation


class Candidate(NamedTuple):
    """A label sequence of the n-best list with its scores and its ranks, which count from 1."""

    labels: list[str]  # T names
    local_rank: int  # by local score: the rank before
    rank: int  # by total score: the rank after
    local: float  # local score
    total: float  # local + Explanation.shared_score + its products, in this order
    is_gold: bool


class Term(NamedTuple):
    """A count of a non-local feature."""

    name: str  # "phrase(LOC,PER)"
    weight: float
    counts: list[float]  # count in each candidate

    @property
    def products(self) -> list[float]:
        """The contributions weight * count to the total score of each candidate."""
        return [self.weight * count for count in self.counts]


class Change(NamedTuple):
    """Neighbouring segments of one sentence in which the two decisions differ; spans count from its start."""

    place: str  # "file:line" of the first token
    words: list[str]  # words of the sentence
    before: list[Span]  # chosen by local score
    after: list[Span]  # chosen by total score
    gold: list[Span] | None  # overlapping gold segments; None without gold labels

    @property
    def extent(self) -> tuple[int, int]:
        """The first token of these segments, and the token after the last one."""
        both = [*self.before, *self.after]
        return min(span.start for span in both), max(span.end for span in both)

    @property
    def verdict(self) -> str | None:
        """A key of VERDICTS: "repaired" (correct after), "damaged" (correct before), "changed"; or None if unknown."""
        if self.gold is None:
            return None
        if self.gold == self.after:
            return "repaired"
        return "damaged" if self.gold == self.before else "changed"


class ChangedSentence(NamedTuple):
    """A sentence of the document with its segments and changes."""

    words: list[str]
    found: list[Span]  # chosen by total score; spans count from the sentence's start
    changes: list[Change]


class Explanation(NamedTuple):
    """The decision on one document.

    The total score of a candidate is local + shared_score + the sum of its products, in double precision. Ranks are
    those of the tagger in single precision, so totals that differ only by rounding may seem out of order.
    """

    row: int  # index of the sequence in the corpus, from 0
    place: str  # "file:line" of its first token
    n_candidates: int
    candidates: list[Candidate]  # by local rank: the decisions before and after, some others, the gold one if listed
    shared_score: float  # sum of the terms that are equal for all candidates
    terms: list[Term]  # the other terms; the largest effect on the decision comes first
    sentences: list[ChangedSentence]

    @property
    def changes(self) -> list[Change]:
        """The changes of all sentences, in their order."""
        return [change for sentence in self.sentences for change in sentence.changes]

    @property
    def after(self) -> int:
        """Index of the candidate with the best total score."""
        return min(range(len(self.candidates)), key=lambda i: self.candidates[i].rank)


class Summary(NamedTuple):
    """Numbers of decisions on a corpus that non-local features changed, by verdict."""

    documents: int
    changed: int
    verdicts: dict[str, int] | None  # number of changes with each verdict; None without gold labels
    changes: int

    def line(self) -> str:
        """Return the counts as one sentence."""
        text = f"{self.changed} of {self.documents} documents changed, in {self.changes} places"
        if self.verdicts is None:
            return text
        return text + ": " + ", ".join(f"{count} {VERDICTS[name]}" for name, count in self.verdicts.items())


def explain(tagger: ChainModel, corpus: Corpus, row: int, n: int = 100) -> Explanation:
    """Return the effect of non-local features on the n best candidates by local score of one sequence.

    Args:
        tagger: A tagger with non-local features.
        corpus: Sequences; gold labels are optional.
        row: Index of the sequence in the corpus, from 0.
        n: Length of the n-best list.

    Raises:
        InputError: `n` is below 1, the row is unknown, or the tagger has no non-local features.

    Example:
        >>> import pytorch_lightning as pl
        >>> from structperc import FeatureExtractor, Tagger
        >>> from structperc.chain import KBest
        >>> from structperc.criteria import MarginLoss
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.nonlocal_features import MajorityPhrase
        >>> from structperc.scorers import SparseLinear
        >>> parts = SparseLinear(), MarginLoss(C=1.0), KBest(10)
        >>> tagger = Tagger(FeatureExtractor(["w[0]"]), *parts, nonlocal_features=[MajorityPhrase()], decoder=KBest(10))
        >>> data = Synthetic(train=3, dev=0, test=0, unit="document")
        >>> quiet = dict(logger=False, enable_checkpointing=False)
        >>> trainer = pl.Trainer(max_epochs=1, enable_progress_bar=False, enable_model_summary=False, **quiet)
        >>> trainer.fit(tagger, datamodule=data)
        >>> explanation = explain(tagger, data.corpus("train"), row=0, n=10)
        >>> before, after = explanation.candidates[0], explanation.candidates[explanation.after]
        >>> before.local_rank, after.rank, after.total >= before.total
        (1, 1, True)
    """
    check_explainable(tagger, n)
    if not 0 <= row < len(corpus):
        raise InputError(f"document {row + 1} does not exist: {corpus.name} has {counted(len(corpus), 'document')}")
    batch = tagger.encode(corpus.slice(row, row + 1))[[0]]
    return _explanation(tagger, corpus, row, batch, _scored_candidates(tagger, batch, n))


def explain_changed(tagger: ChainModel, corpus: Corpus, n: int = 100, progress: bool = True) -> Iterator[Explanation]:
    """Yield explanations of the sequences of a corpus whose decision non-local features change.

    Args:
        tagger: A tagger with non-local features.
        corpus: Sequences; gold labels are optional.
        n: Length of the n-best list.
        progress: Show a progress bar.

    Raises:
        InputError: See `explain`.

    Example:
        >>> from structperc import Tagger
        >>> from structperc.data import Synthetic
        >>> tagger = Tagger.load("runs/studies/embedded/local_and_nonlocal/1/model")  # doctest: +SKIP
        >>> explanations = explain_changed(tagger, Synthetic(unit="document").corpus("dev"))  # doctest: +SKIP
        >>> next(explanations).changes[0].verdict  # doctest: +SKIP
        'repaired'
    """
    check_explainable(tagger, n)
    rows = tagger.encode(corpus)
    for row in bar(range(len(corpus)), "explaining", show=progress):
        batch = rows[[row]]
        scored = _scored_candidates(tagger, batch, n)
        if int(scored.totals.argmax()) > 0:
            yield _explanation(tagger, corpus, row, batch, scored)


def summarise(explanations: Sequence[Explanation], corpus: Corpus) -> Summary:
    """Count the changed decisions of a corpus.

    Args:
        explanations: Explanations of all changed decisions, see `explain_changed`.
        corpus: The corpus.

    Returns:
        The numbers of documents and changes, by verdict if there are gold labels.

    Example:
        >>> corpus = Corpus.from_sentences([{"word": ["Anna", "left"]}, {"word": ["Yes"]}])
        >>> summarise([], corpus).line()
        '0 of 2 documents changed, in 0 places'
    """
    changes = [change for explanation in explanations for change in explanation.changes]
    verdicts = {verdict: sum(c.verdict == verdict for c in changes) for verdict in VERDICTS}
    labelled = "label" in corpus.columns
    return Summary(len(corpus), len(explanations), verdicts if labelled else None, len(changes))


def check_explainable(tagger: ChainModel, n: int) -> None:
    """Raise InputError for n < 1, and for a tagger without non-local features or with votes as scores."""
    if n < 1:
        raise InputError(f"the number of candidates must be >= 1, got {n}")
    if not tagger.nonlocal_features:
        raise InputError("the model has no non-local features to explain; train one with model.nonlocal_features")
    if not tagger.additive:
        raise InputError(
            "the model's weight vectors vote, so scores are not sums of terms; set ranker.predict: average"
        )


class _ScoredCandidates(NamedTuple):
    candidates: Candidates  # B = 1, the K best by local score, with local scores
    totals: Tensor  # (K,) total scores
    is_gold: Tensor  # (K,) bool; all False without gold labels


@torch.no_grad()
def _scored_candidates(tagger: ChainModel, batch: Batch, n: int) -> _ScoredCandidates:
    moved = to_device(batch, device_of(tagger))
    candidates = kbest(tagger(moved), n)
    local, totals = tagger.local_candidates(moved, candidates), tagger.total_scores(moved, candidates)[0]
    is_gold = torch.zeros_like(local.valid[0])
    if batch.gold is not None:
        is_gold = (local.labels[0] == batch.gold.to(totals.device)).all(1) & local.valid[0]
    return _ScoredCandidates(local, totals, is_gold)


@torch.no_grad()
def _all_terms(tagger: ChainModel, batch: Batch, labels: Tensor) -> Iterator[Term]:
    """Yield the non-local features that at least one candidate has; labels are (1, K, T), all valid."""
    moved = to_device(batch, device_of(tagger))
    valid = torch.ones(labels.shape[:2], dtype=torch.bool, device=labels.device)
    segments = CandidateSegments(moved, labels, valid, tagger.labels)
    for feature in cast(Iterable[NonlocalFeature], tagger.nonlocal_features):
        counts, names = feature.counts(segments).to_dense().t(), feature.names(tagger.labels.type_names)
        used = counts.any(1).nonzero().squeeze(1)  # few of many names occur
        rows = zip(used.tolist(), feature.weight[used].tolist(), counts[used].tolist(), strict=True)
        yield from (Term(names[f], weight, row) for f, weight, row in rows)


def _terms(terms: Iterable[Term], after: int) -> tuple[float, list[Term]]:
    """Return the sum of the terms that are equal for all candidates, and the other terms by effect on the decision."""
    same, differing = 0.0, []
    for term in terms:
        if len(set(term.counts)) == 1:
            same += term.weight * term.counts[0]
        elif term.weight:
            differing.append(term)
    return same, sorted(differing, key=lambda term: -abs(term.products[after] - term.products[0]))


def _explanation(tagger: ChainModel, corpus: Corpus, row: int, batch: Batch, scored: _ScoredCandidates) -> Explanation:
    n = int(scored.candidates.valid.sum())
    order = scored.totals.argsort(descending=True, stable=True).tolist()
    shown = _shown(order[:n], scored.is_gold.nonzero().flatten().tolist())
    after = shown.index(order[0])
    same, terms = _terms(_all_terms(tagger, batch, scored.candidates.labels[:, shown]), after)
    candidates = []
    for i, k in enumerate(shown):
        local = float(scored.candidates.scores[0, k])
        total = sum((term.products[i] for term in terms), local + same)
        names = tagger.labels.decode(scored.candidates.labels[0, k].cpu())
        candidates.append(Candidate(names, k + 1, order.index(k) + 1, local, total, bool(scored.is_gold[k])))
    first, last = (candidates[k].labels for k in (0, after))
    sentences = list(_changed_sentences(corpus, row, first, last, tagger.labels.scheme))
    return Explanation(row, corpus.where(int(corpus.starts[row])), n, candidates, same, terms, sentences)


def _shown(order: list[int], gold: list[int]) -> list[int]:
    """Return indices of the candidates to show, given all by total score: first, best and gold, some between.

    If the first remains the best, the next best ones are shown.
    """
    best = order[0]
    others = [k for k in order if 0 < k < best] if best else order[1:]
    return sorted({0, best, *others[:OTHERS], *gold})


def _changed_sentences(
    corpus: Corpus, row: int, before: list[str], after: list[str], scheme: str
) -> Iterator[ChangedSentence]:
    start, end = int(corpus.starts[row]), int(corpus.starts[row + 1])
    boundaries = corpus.sentences[(corpus.sentences >= start) & (corpus.sentences <= end)].tolist()
    gold = corpus.columns.get("label")
    for a, b in pairwise(boundaries):
        old, new = (spans(labels[a - start : b - start], scheme) for labels in (before, after))
        wanted = None if gold is None else spans(gold[a:b], scheme)
        words = list(corpus.columns["word"][a:b])
        changes = [
            Change(
                corpus.where(a + first),
                words,
                _overlapping(old, first, stop),
                _overlapping(new, first, stop),
                None if wanted is None else _overlapping(wanted, first, stop),
            )
            for first, stop in _regions(set(old) ^ set(new))
        ]
        yield ChangedSentence(words, new, changes)


def _regions(differing: set[Span]) -> Iterator[tuple[int, int]]:
    ordered = sorted(differing, key=lambda span: span.start)
    while ordered:
        first, stop = ordered[0].start, ordered[0].end
        while ordered and ordered[0].start < stop:
            stop = max(stop, ordered.pop(0).end)
        yield first, stop


def _overlapping(known: list[Span], first: int, stop: int) -> list[Span]:
    return [span for span in known if span.start < stop and span.end > first]
