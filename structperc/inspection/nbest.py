"""How long the list of candidates should be: scores of the re-scored n' best for several n', from one search.

Table 3 of Kazama & Torisawa (2007) gives F1 for n' from 20 to 6400. The n' best by local score are the first n' of
any longer list, so the longest is searched and its non-local scores are computed once. Votes are counted anew.
"""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.batching.parts import parts
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.inspection.candidate_search import RESCORE, SEARCH, Searched, Watch, searched, some
from structperc.metrics import SegmentF1, oracle
from structperc.metrics.segments import SegmentScores
from structperc.progress import bar
from structperc.structures import Batch, Candidates
from structperc.taggers.lattice_tagger import LatticeTagger

COMPARED = 2**20  # sequences * candidates * tokens whose F1 is compared at a time


class LengthScores(NamedTuple):
    """How good lists of n' candidates are; places count from 1."""

    n: int
    chosen: SegmentScores  # of the best by total score, what `Tagger.decode` gives with KBest(n)
    oracle: SegmentScores  # of the best by segment F1, see `oracle`
    held: float  # share of the sequences whose gold labelling is in the list
    gold_place: float  # its mean place where it is; NaN where it never is
    chosen_place: float  # mean place by local score of what is chosen


class Seconds(NamedTuple):
    """The seconds that `nbest_scores` spent on search, non-local scores and in total."""

    search: float
    nonlocal_scores: float
    total: float  # with feature sums and the counting of scores


class NBestScores(NamedTuple):
    """Scores for several n', ascending, of a corpus of so many sequences."""

    rows: list[LengthScores]
    sequences: int
    seconds: Seconds


def nbest_scores(tagger: LatticeTagger, corpus: Corpus, sizes: Sequence[int], progress: bool = True) -> NBestScores:
    """Return scores of the n' best for each n' of `sizes`; the corpus has labels in the tagger's scheme.

    For each n' the result is that of decoding with KBest(n'), apart from ties: which of several labellings of equal
    local score are the last of a list is not defined. Sequences with fewer than n' labellings have shorter lists.
    Raises InputError for n' < 1, a corpus without labels, and labels without segments.
    """
    sizes = _checked(tagger, corpus, sizes)
    labels = tagger.gold_labels(corpus)
    counts = [_Counts(n, labels) for n in sizes]
    started, watch = time.perf_counter(), Watch(tagger.device)
    with bar(None, "searching", len(corpus), progress) as shown:
        for batch in (part for whole in tagger.batches(corpus) for part in parts(whole, sizes[-1])):
            _count(counts, batch, searched(tagger, batch, sizes, watch), labels)
            shown.update(len(batch.rows))
    seconds = Seconds(watch.seconds[SEARCH], watch.seconds[RESCORE], time.perf_counter() - started)
    return NBestScores([one.scores(len(corpus)) for one in counts], len(corpus), seconds)


def _checked(tagger: LatticeTagger, corpus: Corpus, sizes: Sequence[int]) -> list[int]:
    if not sizes or min(sizes) < 1:
        raise InputError(f"--n must be >= 1, got {' '.join(map(str, sizes)) or 'nothing'}")
    if tagger.labels.scheme == "none":
        raise InputError("the model's labels have no segments, which is what candidates are compared by")
    if "label" not in corpus.columns:
        raise InputError(f"{corpus.name}: there are no gold labels; give a column 'label'")
    return sorted(set(sizes))


# -- counts ---------------------------------------------------------------------------------------------------


class _Counts:
    """What is summed over batches for one n'."""

    def __init__(self, n: int, labels: LabelSet) -> None:
        self.n = n
        self.chosen, self.oracle = SegmentF1(labels), SegmentF1(labels)
        self.chosen_places = self.gold_places = self.held = 0

    def scores(self, sequences: int) -> LengthScores:
        held = self.held / max(sequences, 1)
        place = self.gold_places / self.held if self.held else float("nan")
        chosen = self.chosen_places / max(sequences, 1)
        return LengthScores(self.n, self.chosen.compute(), self.oracle.compute(), held, place, chosen)


def _count(counts: list[_Counts], batch: Batch, found: Searched, labels: LabelSet) -> None:
    assert batch.gold is not None
    candidates, choices = found
    gold, lengths, sentences = (x.cpu() for x in (batch.gold, batch.lengths, batch.sentences))
    rows = torch.arange(len(gold), device=candidates.labels.device)
    places = _gold_places(candidates, batch.gold)
    oracles = _oracles([one.n for one in counts], batch, batch.gold, candidates, labels)
    for one, choice, best in zip(counts, choices, oracles, strict=True):
        one.chosen.update(candidates.labels[rows, choice].cpu(), gold, lengths, sentences)
        one.oracle.update(best.cpu(), gold, lengths, sentences)
        one.chosen_places += int((choice + 1).sum())
        held = places <= one.n
        one.held += int(held.sum())
        one.gold_places += int(places[held].sum())


def _gold_places(candidates: Candidates, gold: Tensor) -> Tensor:
    """-> (B,) from 1; K + 1 where gold is no candidate. All labellings are 0 in the padding."""
    same = (candidates.labels == gold.unsqueeze(1)).all(2) & candidates.valid
    return torch.where(same.any(1), same.byte().argmax(1), same.shape[1]) + 1


def _oracles(
    sizes: list[int], batch: Batch, gold: Tensor, candidates: Candidates, labels: LabelSet
) -> Iterator[Tensor]:
    """-> for each n' the labelling (B, T) of best F1 among the first n'.

    The best so far stands before the next candidates: where they are equal it is the better ranked one.
    """
    best, done = some(candidates, 0, 1), 1
    size = max(1, COMPARED // max(1, candidates.labels[:, 0].numel()))
    rows = torch.arange(len(batch.lengths), device=batch.lengths.device)
    for n in sizes:
        while done < n:
            stop = min(done + size, n)
            among = Candidates(*map(_joined, best, some(candidates, done, stop)))
            choice = oracle(among, gold, batch.lengths, labels, batch.sentences)
            best, done = Candidates(*(x[rows, choice].unsqueeze(1) for x in among)), stop
        yield best.labels[:, 0]


def _joined(a: Tensor, b: Tensor) -> Tensor:
    return torch.cat([a, b], 1)
