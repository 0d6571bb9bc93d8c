"""One search for the n best labellings by local score, and the best by total score among each shorter list of them.

How long the list of candidates should be: scores of the re-scored n' best for several n', from one search.

The scores of lists of candidates as text, and as rows of a CSV file.
"""

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.chain import kbest
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules.encoded import split_batch
from structperc.errors import InputError
from structperc.metrics import SegmentF1, oracle
from structperc.metrics.segments import SegmentScores
from structperc.progress import bar
from structperc.reports.tables import percent, text_table
from structperc.structures import Batch, Candidates
from structperc.taggers.tagger import Tagger

SEARCH, RESCORE = range(2)  # activities


class Stopwatch:
    """Adds up the seconds of several activities; it waits for a GPU to finish before it reads the time."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.seconds, self.last = device, [0.0, 0.0], 0.0

    def start(self) -> None:
        """Begin to count time for the activity that is stopped next."""
        self._wait()
        self.last = time.perf_counter()

    def stop(self, activity: int) -> None:
        """Count the time since the last start or stop for this activity."""
        self._wait()
        now = time.perf_counter()
        self.seconds[activity] += now - self.last
        self.last = now

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


class SearchResult(NamedTuple):
    """The candidates of a mini-batch, as many as the longest list has, and the choice from each list."""

    candidates: Candidates  # best by local score first
    choices: list[Tensor]  # for each length n' (B,): which of the first n' is best by total score


@torch.no_grad()
def search_candidates(tagger: Tagger, batch: Batch, sizes: Sequence[int], watch: Stopwatch) -> SearchResult:
    """Return the candidates and choices of lists of these lengths, in ascending order, from one search."""
    lattice = tagger(batch)
    watch.start()
    candidates = kbest(lattice, sizes[-1])
    watch.stop(SEARCH)
    if tagger.additive:
        total_scores = tagger.total_scores(batch, candidates)
        choices = [total_scores[:, :n].argmax(1) for n in sizes]
    else:  # votes depend on who else is in the list
        choices = [tagger.total_scores(batch, slice_candidates(candidates, 0, n)).argmax(1) for n in sizes]
    watch.stop(RESCORE)
    return SearchResult(candidates, choices)


def slice_candidates(candidates: Candidates, start: int, stop: int) -> Candidates:
    """Return the candidates of the places from `start` (counted from 0) up to, not including, `stop`."""
    return Candidates(*(x[:, start:stop] for x in candidates))


ORACLE_BATCH = 2**20  # sequences * candidates * tokens whose F1 is compared at a time


class LengthScores(NamedTuple):
    """How good lists of n' candidates are; places count from 1."""

    n: int
    chosen: SegmentScores  # of the best by total score, what `Tagger.decode` gives with KBest(n)
    oracle: SegmentScores  # of the best by segment F1, see `oracle`
    gold_in_list: float  # share of the sequences whose gold labelling is in the list
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


def nbest_scores(tagger: Tagger, corpus: Corpus, sizes: Sequence[int], progress: bool = True) -> NBestScores:
    """Return scores of the n' best for each n' of `sizes`; the corpus has labels in the tagger's scheme.

    For each n' the result is that of decoding with KBest(n'), apart from ties: which of several labellings of equal
    local score are the last of a list is not defined. Sequences with fewer than n' labellings have shorter lists.
    Raises InputError for n' < 1, a corpus without labels, and labels without segments.
    """
    sizes = _checked(tagger, corpus, sizes)
    labels = tagger.gold_labels(corpus)
    counts = [_Counts(n, labels) for n in sizes]
    started, watch = time.perf_counter(), Stopwatch(tagger.device)
    with bar(None, "searching", len(corpus), progress) as shown:
        for batch in (part for whole in tagger.batches(corpus) for part in split_batch(whole, sizes[-1])):
            _count(counts, batch, search_candidates(tagger, batch, sizes, watch), labels)
            shown.update(len(batch.rows))
    seconds = Seconds(watch.seconds[SEARCH], watch.seconds[RESCORE], time.perf_counter() - started)
    return NBestScores([one.scores(len(corpus)) for one in counts], len(corpus), seconds)


def _checked(tagger: Tagger, corpus: Corpus, sizes: Sequence[int]) -> list[int]:
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
        self.chosen_places = self.gold_places = self.gold_in_list = 0

    def scores(self, sequences: int) -> LengthScores:
        gold_in_list = self.gold_in_list / max(sequences, 1)
        place = self.gold_places / self.gold_in_list if self.gold_in_list else float("nan")
        chosen = self.chosen_places / max(sequences, 1)
        return LengthScores(self.n, self.chosen.compute(), self.oracle.compute(), gold_in_list, place, chosen)


def _count(counts: list[_Counts], batch: Batch, found: SearchResult, labels: LabelSet) -> None:
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
        gold_in_list = places <= one.n
        one.gold_in_list += int(gold_in_list.sum())
        one.gold_places += int(places[gold_in_list].sum())


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
    best, done = slice_candidates(candidates, 0, 1), 1
    size = max(1, ORACLE_BATCH // max(1, candidates.labels[:, 0].numel()))
    rows = torch.arange(len(batch.lengths), device=batch.lengths.device)
    for n in sizes:
        while done < n:
            stop = min(done + size, n)
            among = Candidates(*map(_concatenate, best, slice_candidates(candidates, done, stop)))
            choice = oracle(among, gold, batch.lengths, labels, batch.sentences)
            best, done = Candidates(*(x[rows, choice].unsqueeze(1) for x in among)), stop
        yield best.labels[:, 0]


def _concatenate(a: Tensor, b: Tensor) -> Tensor:
    return torch.cat([a, b], 1)


N = "n'"
HEADER = ("n", "f1", "precision", "recall", "oracle_f1", "gold_in_list", "gold_place", "chosen_place")


def nbest_lines(lists: NBestScores) -> Iterator[str]:
    """Yield one line for each n', in per cent, and one with the seconds."""
    names = ("F1", "precision", "recall", "oracle F1", "gold in list")
    rows = [[N, *names, "gold's place", "place"], *map(_cells, lists.rows)]
    yield from text_table(rows, ">")
    yield _seconds_line(lists.seconds, lists.rows[-1].n)


def csv_rows(lists: NBestScores) -> Iterator[tuple[float, ...]]:
    """Yield a row of the CSV file for each n'; see HEADER for its columns."""
    return ((row.n, *_shares(row), row.gold_place, row.chosen_place) for row in lists.rows)


def _shares(row: LengthScores) -> tuple[float, ...]:
    return row.chosen.f1, row.chosen.precision, row.chosen.recall, row.oracle.f1, row.gold_in_list


def _cells(row: LengthScores) -> list[str]:
    return [str(row.n), *map(percent, _shares(row)), f"{row.gold_place:.1f}", f"{row.chosen_place:.1f}"]


def _seconds_line(seconds: Seconds, n: int) -> str:
    search, scores = (100 * part / seconds.total for part in seconds[:2])
    return (
        f"seconds for {n} candidates: search {seconds.search:.2f} ({search:.0f} %), "
        f"non-local scores {seconds.nonlocal_scores:.2f} ({scores:.0f} %), in all {seconds.total:.2f}"
    )
