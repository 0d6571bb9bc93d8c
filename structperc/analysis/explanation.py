"""The parts of an explanation: candidates, the counts in which they differ, and the segments that changed.

The candidates of one sequence with their scores, and the counts of non-local features in each: as arrays.

The segments that two labellings of a document read differently, and what gold says there.

Why non-local features changed a decision: the labelling best by local score beside the one best by total score.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

import torch
from torch import Tensor

from structperc.chain import kbest
from structperc.data.corpus import Corpus
from structperc.data.tag_schemes import Span, spans
from structperc.errors import InputError
from structperc.nonlocal_features import NonlocalFeature, find_segments
from structperc.progress import bar
from structperc.structures import Batch, Candidates
from structperc.taggers.lattice_tagger import LatticeTagger

VERDICTS = {"repaired": "repaired", "damaged": "damaged", "changed": "wrong before and after"}


class Candidate(NamedTuple):
    """One labelling of the list, with its scores and its ranks, which count from 1."""

    labels: list[str]  # T names
    local_rank: int  # by local score: the rank before
    rank: int  # by total score: the rank after
    local: float  # local score
    total: float  # local + Explanation.same + its products, in this order
    is_gold: bool


class Term(NamedTuple):
    """A count of a non-local feature in which the candidates differ."""

    name: str  # "phrase(LOC,PER)"
    weight: float
    counts: list[float]  # of each candidate

    @property
    def products(self) -> list[float]:
        """The products weight * count of each candidate: what the feature adds to their total scores."""
        return [self.weight * count for count in self.counts]


class Change(NamedTuple):
    """Neighbouring segments of one sentence that the two decisions read differently; spans count from its start."""

    place: str  # "file:line" of the first token
    words: list[str]  # of the sentence
    before: list[Span]  # chosen by local score
    after: list[Span]  # chosen by total score
    gold: list[Span] | None  # those that overlap; None when gold is not known

    @property
    def extent(self) -> tuple[int, int]:
        """The first token of these segments, and the token after the last one."""
        both = [*self.before, *self.after]
        return min(span.start for span in both), max(span.end for span in both)

    @property
    def verdict(self) -> str:
        """Where gold is known: "repaired" (after is gold), "damaged" (before is gold) or "changed" (neither is)."""
        if self.gold == self.after:
            return "repaired"
        return "damaged" if self.gold == self.before else "changed"


class ChangedSentence(NamedTuple):
    """A sentence of the document, with its segments and what changed in it."""

    words: list[str]
    found: list[Span]  # chosen by total score; spans count from the sentence's start
    changes: list[Change]  # in their order


class Explanation(NamedTuple):
    """The decision on one document.

    The total score of a candidate is local + same + the sum of its products, in double precision; its rank is that
    of the tagger, in single precision, so that totals that differ by rounding alone may seem out of order.
    """

    row: int  # which sequence of the corpus, from 0
    place: str  # "file:line" of its first token
    n: int  # candidates there were, at most as many as asked for
    candidates: list[Candidate]  # by local rank: the local decision, the new one, some others, gold if it is there
    same: float  # what all of them get from counts in which they do not differ
    terms: list[Term]  # what moved the decision most comes first
    sentences: list[ChangedSentence]  # the document

    @property
    def changes(self) -> list[Change]:
        """The changes of all sentences, in their order."""
        return [change for sentence in self.sentences for change in sentence.changes]

    @property
    def before(self) -> int:
        """The number of the candidate that has the best local score."""
        return 0

    @property
    def after(self) -> int:
        """The number of the candidate that has the best total score."""
        return min(range(len(self.candidates)), key=lambda i: self.candidates[i].rank)


class Summary(NamedTuple):
    """How many decisions on a corpus were changed by non-local features, and whether for the better."""

    documents: int
    changed: int
    verdicts: dict[str, int] | None  # number of changes with each verdict; None without gold
    changes: int

    def line(self) -> str:
        """Return the counts as one sentence."""
        text = f"{self.changed} of {self.documents} documents changed, in {self.changes} places"
        if self.verdicts is None:
            return text
        return text + ": " + ", ".join(f"{count} {VERDICTS[name]}" for name, count in self.verdicts.items())


class ScoredCandidates(NamedTuple):
    """The K best labellings of one sequence by local score, in this order."""

    candidates: Candidates  # B = 1; their scores are the local ones
    total_scores: Tensor  # (K,) total scores
    golden: Tensor  # (K,) bool, is it gold; nowhere where gold is not known

    @property
    def n(self) -> int:
        """The number of candidates; places after them are empty."""
        return int(self.candidates.valid.sum())


class FeatureCount(NamedTuple):
    """One count of a non-local feature: its name, its weight, and its value for each candidate."""

    name: str  # "phrase(LOC,PER)"
    weight: float
    values: list[float]  # of each candidate


@torch.no_grad()
def local_candidates(tagger: LatticeTagger, batch: Batch, n: int) -> ScoredCandidates:
    """Return the n best labellings, with their scores, of a mini-batch of one sequence."""
    moved = tagger.transfer_batch_to_device(batch, tagger.device, 0)
    candidates = kbest(tagger(moved), n)
    found, total_scores = tagger.local_candidates(moved, candidates), tagger.total_scores(moved, candidates)[0]
    golden = torch.zeros_like(found.valid[0])
    if batch.gold is not None:
        golden = (found.labels[0] == batch.gold.to(total_scores.device)).all(1) & found.valid[0]
    return ScoredCandidates(found, total_scores, golden)


@torch.no_grad()
def count_features(tagger: LatticeTagger, batch: Batch, labels: Tensor) -> Iterator[FeatureCount]:
    """Yield each count that at least one of the candidates has, feature by feature; labels are (1, K, T), all valid."""
    moved = tagger.transfer_batch_to_device(batch, tagger.device, 0)
    valid = torch.ones(labels.shape[:2], dtype=torch.bool, device=labels.device)
    segments = find_segments(moved, labels, valid, tagger.labels)
    for feature in cast(Iterable[NonlocalFeature], tagger.nonlocal_features):
        counts, names = feature.counts(segments).to_dense().t(), feature.names(tagger.labels.type_names)
        held = counts.any(1).nonzero().squeeze(1)  # of many names a few occur
        rows = zip(held.tolist(), feature.weight[held].tolist(), counts[held].tolist(), strict=True)
        yield from (FeatureCount(names[f], weight, row) for f, weight, row in rows)


def changed_sentences(corpus: Corpus, row: int, before: list[str], after: list[str]) -> Iterator[ChangedSentence]:
    """Yield the sentences of sequence `row` of a corpus, with the changes between two labellings of it.

    `before` and `after` are label names, one for each of the T tokens.
    """
    start, end = int(corpus.starts[row]), int(corpus.starts[row + 1])
    boundaries = corpus.sentences[(corpus.sentences >= start) & (corpus.sentences <= end)].tolist()
    gold = corpus.columns.get("label")
    for a, b in pairwise(boundaries):
        old, new = (spans(labels[a - start : b - start]) for labels in (before, after))
        wanted = None if gold is None else spans(gold[a:b])
        words, changes = list(corpus.columns["word"][a:b]), []
        for region in _regions(set(old) ^ set(new)):
            right = None if wanted is None else _within(wanted, *region)
            place = corpus.where(a + region[0])
            changes.append(Change(place, words, _within(old, *region), _within(new, *region), right))
        yield ChangedSentence(words, new, changes)


def _regions(differing: set[Span]) -> Iterator[tuple[int, int]]:
    """Boundaries of the runs of segments that overlap."""
    ordered = sorted(differing, key=lambda span: span.start)
    while ordered:
        first, stop = ordered[0].start, ordered[0].end
        while ordered and ordered[0].start < stop:
            stop = max(stop, ordered.pop(0).end)
        yield first, stop


def _within(known: list[Span], first: int, stop: int) -> list[Span]:
    return [span for span in known if span.start < stop and span.end > first]


BETWEEN = 3  # further candidates that are shown


def explain(tagger: LatticeTagger, corpus: Corpus, row: int, n: int = 100) -> Explanation:
    """Return what non-local features do to the n best labellings by local score of sequence `row` of a corpus, from 0.

    Raises InputError for n < 1, a row that is not there, and a tagger without non-local features.
    """
    check_explainable(tagger, n)
    if not 0 <= row < len(corpus):
        raise InputError(f"document {row + 1} is not among the {len(corpus)} of {corpus.name}; choose 1..{len(corpus)}")
    batch = tagger.encode(corpus.slice(row, row + 1))[[0]]
    return _explanation(tagger, corpus, row, batch, local_candidates(tagger, batch, n))


def explain_changed(
    tagger: LatticeTagger, corpus: Corpus, n: int = 100, progress: bool = True
) -> Iterator[Explanation]:
    """Yield explanations of those sequences of a corpus on which non-local features change the decision.

    Raises InputError as `explain` does.
    """
    check_explainable(tagger, n)
    rows = tagger.encode(corpus)
    for row in bar(range(len(corpus)), "explaining", show=progress):
        batch = rows[[row]]
        found = local_candidates(tagger, batch, n)
        if int(found.total_scores.argmax()) > 0:
            yield _explanation(tagger, corpus, row, batch, found)


def summarise(explanations: Sequence[Explanation], corpus: Corpus) -> Summary:
    """Return counts over the explanations of all changed decisions of a corpus."""
    changes = [change for one in explanations for change in one.changes]
    verdicts = {verdict: sum(c.verdict == verdict for c in changes) for verdict in VERDICTS}
    known = "label" in corpus.columns
    return Summary(len(corpus), len(explanations), verdicts if known else None, len(changes))


def check_explainable(tagger: LatticeTagger, n: int) -> None:
    """Raise InputError for n < 1, and for a tagger without non-local features or whose scores are votes."""
    if n < 1:
        raise InputError(f"--n must be >= 1, got {n}")
    if not tagger.nonlocal_features:
        raise InputError("the model has no non-local features to explain; train one with model.nonlocal_features")
    if not tagger.additive:
        raise InputError("the model's weight vectors vote, which no sum explains; set ranker.predict: average")


# -- ranking --------------------------------------------------------------------------------------------------


def _explanation(tagger: LatticeTagger, corpus: Corpus, row: int, batch: Batch, found: ScoredCandidates) -> Explanation:
    order = found.total_scores.argsort(descending=True, stable=True).tolist()
    shown = _shown(order[: found.n], found.golden.nonzero().flatten().tolist())
    after = shown.index(order[0])
    same, terms = _terms(count_features(tagger, batch, found.candidates.labels[:, shown]), after)
    candidates = []
    for i, k in enumerate(shown):
        local = float(found.candidates.scores[0, k])
        total = sum((term.products[i] for term in terms), local + same)
        names = tagger.labels.decode(found.candidates.labels[0, k].cpu())
        candidates.append(Candidate(names, k + 1, order.index(k) + 1, local, total, bool(found.golden[k])))
    sentences = list(changed_sentences(corpus, row, candidates[0].labels, candidates[after].labels))
    place = corpus.where(int(corpus.starts[row]))
    return Explanation(row, place, found.n, candidates, same, terms, sentences)


def _shown(order: list[int], golden: list[int]) -> list[int]:
    """Which candidates are shown, of places by total score: first and best, gold, the best ones between these two.

    Where the first stays the best, those that come next.
    """
    best = order[0]
    others = [k for k in order if 0 < k < best] if best else order[1:]
    return sorted({0, best, *others[:BETWEEN], *golden})


def _terms(counts: Iterable[FeatureCount], after: int) -> tuple[float, list[Term]]:
    """-> score of the counts that all candidates have, the others by how much they moved the decision."""
    same, terms = 0.0, []
    for name, weight, values in counts:
        if len(set(values)) == 1:
            same += weight * values[0]
        elif weight:
            terms.append(Term(name, weight, values))
    return same, sorted(terms, key=lambda term: -abs(term.products[after] - term.products[0]))
