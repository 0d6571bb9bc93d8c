"""Quality of n-best lists: scores of the n' best, re-scored, for several lengths n', from one search.

Table 3 of Kazama & Torisawa (2007) gives F1 for n' from 20 to 6400. The n' best by local score are the first n' of any
longer list, so the longest is searched and its non-local scores are computed once. Votes are counted for each list.
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
from structperc.metrics import SegmentF1
from structperc.metrics.counts import oracle
from structperc.metrics.f_measure import SegmentScores
from structperc.models.chain_model import ChainModel
from structperc.progress import bar
from structperc.reports.tables import percent, text_table
from structperc.structures import Batch, Candidates

ORACLE_BATCH = 2**20  # sequences * candidates * tokens whose F1 is compared at a time


class LengthScores(NamedTuple):
    """The quality of lists of n' candidates; ranks count from 1."""

    n: int
    chosen: SegmentScores  # scores of the best by total score, as by `ChainModel.decode` with KBest(n)
    oracle: SegmentScores  # scores of the best by segment F1, see `oracle`
    gold_in_list: float  # share of the sequences whose gold labels are in the list
    gold_place: float  # mean rank of the gold labels in the lists that contain them; NaN if none does
    chosen_place: float  # mean rank by local score of the choice

    @property
    def shares(self) -> tuple[float, ...]:
        """F1, precision and recall of the choice, F1 of the oracle, and the share of lists with the gold labels."""
        return self.chosen.f1, self.chosen.precision, self.chosen.recall, self.oracle.f1, self.gold_in_list


class Seconds(NamedTuple):
    """The seconds that `nbest_scores` spent on search, non-local scores and in total."""

    search: float
    nonlocal_scores: float
    total: float  # including feature sums and metrics


class NBestScores(NamedTuple):
    """Scores for several n', ascending."""

    rows: list[LengthScores]
    sequences: int
    seconds: Seconds


def nbest_scores(tagger: ChainModel, corpus: Corpus, sizes: Sequence[int], progress: bool = True) -> NBestScores:
    """Score the n' best candidates for each n' of `sizes`, from one search.

    For each n' the result is that of decoding with KBest(n'), except for ties: the order of label sequences of equal
    local score is undefined. Sequences with fewer than n' label sequences have shorter lists.

    Args:
        tagger: A tagger of segments.
        corpus: Sentences with gold labels in the tagger's scheme.
        sizes: Lengths n' of the lists.
        progress: Show a progress bar.

    Returns:
        The scores for each n', ascending, and the seconds of the search.

    Raises:
        InputError: A size is below 1, the corpus has no labels, or the labels are not segments.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger("averaged_perceptron", random_state=1).fit(X, y).tagger_
        >>> corpus = Corpus.from_sentences([{"word": ["Oslo", "left"], "label": ["B-LOC", "O"]}])
        >>> lists = nbest_scores(tagger, corpus, [1, 20], progress=False)
        >>> [(row.n, row.gold_in_list) for row in lists.rows]
        [(1, 0.0), (20, 1.0)]
    """
    if not sizes or min(sizes) < 1:
        raise InputError(f"the lengths of candidate lists must be >= 1, got {' '.join(map(str, sizes)) or 'nothing'}")
    if tagger.labels.scheme == "none":
        raise InputError("the model's labels have no segments, and candidates are compared by segment F1")
    if "label" not in corpus.columns:
        raise InputError(f"{corpus.name}: there are no gold labels; give a column 'label'")
    sizes = sorted(set(sizes))
    labels = tagger.gold_labels(corpus)
    counts = [_LengthTotals(n, labels) for n in sizes]
    for metric in (metric for lengths in counts for metric in (lengths.chosen, lengths.oracle)):
        metric.add_missed([span.type for span in corpus.dropped])
    started, search, rescoring = time.perf_counter(), 0.0, 0.0
    with bar(None, "searching", len(corpus), progress) as shown:
        for batch in (part for whole in tagger.batches(corpus) for part in split_batch(whole, sizes[-1])):
            candidates, choices, seconds = _search(tagger, batch, sizes)
            search, rescoring = search + seconds[0], rescoring + seconds[1]
            assert batch.gold is not None
            gold = batch.gold.cpu(), batch.lengths.cpu(), batch.sentences.cpu()
            places = _gold_places(candidates, batch.gold)
            oracles = _oracles(sizes, batch, batch.gold, candidates, labels)
            for totals, choice, best in zip(counts, choices, oracles, strict=True):
                totals.update(candidates, choice, best, places, gold)
            shown.update(len(batch.rows))
    total = time.perf_counter() - started
    return NBestScores([size.scores(len(corpus)) for size in counts], len(corpus), Seconds(search, rescoring, total))


@torch.no_grad()
def _search(
    tagger: ChainModel, batch: Batch, sizes: Sequence[int]
) -> tuple[Candidates, list[Tensor], tuple[float, float]]:
    """Return the longest list; for each n' (B,) the best by total score; seconds of search and of scores."""
    lattice = tagger(batch)
    started = _clock(batch.lengths.device)
    candidates = kbest(lattice, sizes[-1])
    searched = _clock(batch.lengths.device)
    if tagger.additive:
        totals = tagger.total_scores(batch, candidates)
        choices = [totals[:, :n].argmax(1) for n in sizes]
    else:  # votes depend on the other candidates of a list
        choices = [tagger.total_scores(batch, _slice(candidates, 0, n)).argmax(1) for n in sizes]
    return candidates, choices, (searched - started, _clock(batch.lengths.device) - searched)


def _clock(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def _slice(candidates: Candidates, start: int, stop: int) -> Candidates:
    return Candidates(*(x[:, start:stop] for x in candidates))


class _LengthTotals:
    """Sums over batches for one n'."""

    def __init__(self, n: int, labels: LabelSet) -> None:
        self.n = n
        self.chosen, self.oracle = SegmentF1(labels), SegmentF1(labels)
        self.chosen_places = self.gold_places = self.gold_in_list = 0

    def update(
        self, candidates: Candidates, choice: Tensor, best: Tensor, places: Tensor, gold: tuple[Tensor, Tensor, Tensor]
    ) -> None:
        """Add a batch: choice (B,), labels (B, T) of best F1, ranks (B,) of gold labels, and inputs of `SegmentF1`."""
        rows = torch.arange(len(choice), device=candidates.labels.device)
        self.chosen.update(candidates.labels[rows, choice].cpu(), *gold)
        self.oracle.update(best.cpu(), *gold)
        self.chosen_places += int((choice + 1).sum())
        listed = places <= self.n
        self.gold_in_list += int(listed.sum())
        self.gold_places += int(places[listed].sum())

    def scores(self, sequences: int) -> LengthScores:
        gold_in_list = self.gold_in_list / max(sequences, 1)
        place = self.gold_places / self.gold_in_list if self.gold_in_list else float("nan")
        chosen = self.chosen_places / max(sequences, 1)
        return LengthScores(self.n, self.chosen.compute(), self.oracle.compute(), gold_in_list, place, chosen)


def _gold_places(candidates: Candidates, gold: Tensor) -> Tensor:
    """Return the ranks (B,) of the gold labels, from 1; K + 1 if they are not a candidate.

    All labels are 0 in the padding.
    """
    same = (candidates.labels == gold.unsqueeze(1)).all(2) & candidates.valid
    return torch.where(same.any(1), same.byte().argmax(1), same.shape[1]) + 1


def _oracles(
    sizes: list[int], batch: Batch, gold: Tensor, candidates: Candidates, labels: LabelSet
) -> Iterator[Tensor]:
    """Yield for each n' the label sequences (B, T) of best F1 among the first n'.

    The best so far comes before the next candidates, so ties go to the better ranked one.
    """
    best, done = _slice(candidates, 0, 1), 1
    size = max(1, ORACLE_BATCH // max(1, candidates.labels[:, 0].numel()))
    rows = torch.arange(len(batch.lengths), device=batch.lengths.device)
    for n in sizes:
        while done < n:
            stop = min(done + size, n)
            among = Candidates(*(torch.cat(pair, 1) for pair in zip(best, _slice(candidates, done, stop), strict=True)))
            choice = oracle(among, gold, batch.lengths, labels, batch.sentences)
            best, done = Candidates(*(x[rows, choice].unsqueeze(1) for x in among)), stop
        yield best.labels[:, 0]


HEADER = ("n", "f1", "precision", "recall", "oracle_f1", "gold_in_list", "gold_place", "chosen_place")


def nbest_lines(lists: NBestScores) -> Iterator[str]:
    r"""Yield one line for each n', in per cent, and one with the seconds.

    Args:
        lists: Scores of several n', see `nbest_scores`.

    Example:
        >>> from structperc import Corpus
        >>> from structperc.sklearn import SequenceTagger
        >>> X, y = [["Anna", "left"], ["She", "saw", "Oslo"]], [["B-PER", "O"], ["O", "O", "B-LOC"]]
        >>> tagger = SequenceTagger("averaged_perceptron", random_state=1).fit(X, y).tagger_
        >>> corpus = Corpus.from_sentences([{"word": words, "label": labels} for words, labels in zip(X, y)])
        >>> print(*nbest_lines(nbest_scores(tagger, corpus, [1, 5], progress=False)), sep="\n")
        n'      F1  precision  recall  oracle F1  gold in list  gold's place  place
         1  100.00     100.00  100.00     100.00        100.00           1.0    1.0
         5  100.00     100.00  100.00     100.00        100.00           1.0    1.0
        seconds for 5 candidates: search ...
    """
    rows = [["n'", "F1", "precision", "recall", "oracle F1", "gold in list", "gold's place", "place"]]
    for row in lists.rows:
        rows.append([str(row.n), *map(percent, row.shares), f"{row.gold_place:.1f}", f"{row.chosen_place:.1f}"])
    yield from text_table(rows, ">")
    seconds = lists.seconds
    search, scores = (100 * part / seconds.total for part in seconds[:2])
    yield (
        f"seconds for {lists.rows[-1].n} candidates: search {seconds.search:.2f} ({search:.0f} %), "
        f"non-local scores {seconds.nonlocal_scores:.2f} ({scores:.0f} %), in all {seconds.total:.2f}"
    )


def csv_rows(lists: NBestScores) -> Iterator[tuple[float, ...]]:
    """Yield a row of the CSV file for each n'; see HEADER for its columns."""
    return ((row.n, *row.shares, row.gold_place, row.chosen_place) for row in lists.rows)
