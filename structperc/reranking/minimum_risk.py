"""Minimum Bayes risk over candidate lists: the candidate of least expected cost, by one model or by several."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.chain import KBest, path_score
from structperc.data.corpus import Corpus
from structperc.datamodules.encoded import split_batch
from structperc.errors import InputError
from structperc.predictor.base import Sentence, corpus_from_sentences
from structperc.reranking.candidate_cost import CandidateCost, SegmentCost
from structperc.structures import Batch, Candidates
from structperc.taggers.base import flat_labels, inference_batch_size
from structperc.taggers.tagger import Tagger


class Weighed(NamedTuple):
    """The candidates of B sequences that some models list together, each labelling once."""

    labels: Tensor  # (B, K, T) int64
    probabilities: Tensor  # (B, K) float64, of the models together; 0 where not valid
    valid: Tensor  # (B, K) bool


class MinimumRisk:
    """Labels text by several taggers, or by one: of all they list, what is least wrong on the average.

    Every tagger lists the candidates of `search`, and scores those that the others list, too. Its probabilities are
    the softmax of its total scores / temperature over all of them; those of the taggers are averaged. The labelling
    chosen is the candidate y of least expected cost, sum over y' of p(y') cost(y, y') (Kumar & Byrne 2004 for
    translation; Goel & Byrne 2000 for speech). As the temperature of a single tagger falls to 0, that is the best by
    total score; scores that are no log-probabilities, such as those of perceptrons, ask for one that fits their size.

    Any tagger that searches will do, re-rankers among them; all have the same labels, and were trained on sequences of
    the same unit.

    Args:
        taggers: one or more.
        search: what each of them lists.
        cost: what a candidate costs where another is right; by default 1 - F1 of segments.
        temperature: one for all taggers, or one for each.

    Raises:
        InputError: no tagger, taggers of other labels or units, a temperature that is not positive, or not one for
            each tagger.
    """

    def __init__(
        self,
        taggers: Sequence[Tagger],
        search: KBest,
        cost: CandidateCost | None = None,
        temperature: float | Sequence[float] = 1.0,
    ) -> None:
        self.temperatures = list(temperature) if isinstance(temperature, Sequence) else [temperature] * len(taggers)
        _check(taggers, self.temperatures)
        self.taggers, self.search, self.cost = list(taggers), search, cost or SegmentCost()
        self.labels, self.unit = taggers[0].labels, taggers[0].unit

    # -- text ------------------------------------------------------------------------------------------------

    def tag(self, sentences: Iterable[Sentence], documents: Iterable[int] | None = None) -> list[list[str]]:
        """Return the labels of each sentence, as names; arguments as of `Tagger.tag`."""
        return self.label(corpus_from_sentences(sentences, documents))

    def label(self, corpus: Corpus) -> list[list[str]]:
        """Return the labels of each sentence of a corpus, as names."""
        chosen = ((batches[0].rows, self.decode(batches)) for batches in self.batches(corpus))
        return corpus.sentences_of(flat_labels(corpus, self.labels, chosen))

    def batches(self, corpus: Corpus) -> Iterator[list[Batch]]:
        """Yield mini-batches of a corpus, each as every tagger reads it."""
        size = inference_batch_size(corpus)
        for whole in zip(*(tagger.batches(corpus, size) for tagger in self.taggers), strict=True):
            k = self.search.k * len(self.taggers)
            yield from map(list, zip(*(split_batch(batch, k) for batch in whole), strict=True))

    # -- one batch -------------------------------------------------------------------------------------------

    def decode(self, batches: Sequence[Batch]) -> Tensor:
        """Return the labels (B, T) int64 of least expected cost for the sequences of a batch, as each tagger reads it.

        Of equal costs it is the candidate of highest probability.
        """
        found = self.weighed(batches)
        chosen = least_risk(found, self.cost(batches[0], found.labels, self.labels))
        return found.labels[torch.arange(len(chosen), device=chosen.device), chosen]

    @torch.no_grad()
    def weighed(self, batches: Sequence[Batch]) -> Weighed:
        """Return what the taggers list for the sequences of a batch, with their probabilities."""
        lattices = [tagger(batch) for tagger, batch in zip(self.taggers, batches, strict=True)]
        labels, valid = union([self.search(lattice) for lattice in lattices])
        total = torch.zeros(valid.shape, dtype=torch.float64, device=valid.device)
        for tagger, batch, lattice, temperature in zip(self.taggers, batches, lattices, self.temperatures, strict=True):
            local = path_score(lattice, labels).where(valid, -torch.inf)
            scores = tagger.total_scores(batch, Candidates(labels, local, valid)).double()
            total += (scores / temperature).masked_fill(~valid, -torch.inf).softmax(1)
        return Weighed(labels, total / len(self.taggers), valid)


def union(lists: Sequence[Candidates]) -> tuple[Tensor, Tensor]:
    """Return the labellings (B, K, T) of all lists, one list after the other, and which are valid (B, K) bool.

    Of equal labellings of a sequence the first alone is valid.
    """
    labels, valid = (torch.cat([getattr(one, name) for one in lists], 1) for name in ("labels", "valid"))
    for k in range(lists[0].labels.shape[1], labels.shape[1]):  # no list has equal ones of its own
        seen = ((labels[:, :k] == labels[:, k : k + 1]).all(2) & valid[:, :k]).any(1)
        valid[:, k] &= ~seen
    return labels, valid


def least_risk(found: Weighed, costs: Tensor) -> Tensor:
    """Return the candidate of least expected cost (B,) int64, from the costs (B, K, K) of a `CandidateCost`.

    Of equal ones it is that of highest probability, then the first.
    """
    risks = (costs * found.probabilities.unsqueeze(1)).sum(2).masked_fill(~found.valid, torch.inf)
    least = risks == risks.amin(1, keepdim=True)
    return found.probabilities.masked_fill(~least, -1).argmax(1)


def _check(taggers: Sequence[Tagger], temperatures: Sequence[float]) -> None:
    """Raise InputError for what cannot decide together."""
    if not taggers:
        raise InputError("MinimumRisk: there is no tagger; give at least one")
    if len(temperatures) != len(taggers):
        raise InputError(f"MinimumRisk: {len(temperatures)} temperatures for {len(taggers)} taggers; give one for each")
    if not all(temperature > 0 for temperature in temperatures):
        raise InputError(f"MinimumRisk: a temperature must be > 0, got {min(temperatures)}")
    first = taggers[0]
    for number, tagger in enumerate(taggers, 1):
        if (tagger.labels.names, tagger.labels.scheme) != (first.labels.names, first.labels.scheme):
            raise InputError(f"MinimumRisk: tagger {number} has other labels than the first; train both on the same")
        if tagger.unit != first.unit:
            raise InputError(f"MinimumRisk: tagger {number} reads {tagger.unit}s, the first one {first.unit}s")
