"""Whether the confidence of saved models is that of their accuracy: probabilities of what they predict, in bins."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.chain import Segments
from structperc.data.corpus import Corpus
from structperc.data.reading import Reading
from structperc.errors import InputError
from structperc.inspection.reading import read_gold
from structperc.inspection.reliability_figure import plot_reliability
from structperc.metrics import Calibration, Reliability, segment_confidence, token_confidence
from structperc.metrics.segments import opened_segments
from structperc.metrics.sentences import SentenceBoundaries
from structperc.progress import bar
from structperc.reports.writing import check_figure, check_targets, write_csv, write_figure
from structperc.structures import Batch, real_tokens
from structperc.taggers.tagger import Tagger
from structperc.training.predictions import short_names


class ModelReliability(NamedTuple):
    """Of one model; segments is None when its labels are no segments."""

    name: str
    tokens: Reliability
    segments: Reliability | None

    @property
    def levels(self) -> list[tuple[str, Reliability]]:
        """(name, Reliability) of what there is."""
        return [("tokens", self.tokens)] + ([] if self.segments is None else [("segments", self.segments)])


def reliability(
    tagger: Tagger, corpus: Corpus, bins: int = 10, name: str = "model", progress: bool = True
) -> ModelReliability:
    """Confidence against accuracy of predicted labels and segments; the corpus has labels in the tagger's scheme.

    Confidence is a probability of p(y | x) = exp(s(y) - log Z): that of the predicted label of a token, and that a
    labelling has exactly the predicted segment (see `segment_confidence`), which is right when gold has the same
    one. Criteria other than likelihood do not train p to be a probability, and `Tagger.marginals` refuses it for
    such models. Here it is computed for all, since how far it is from one is what shall be seen.

    InputError for a model with non-local features or a re-ranker, whose scores have no sum over all labellings,
    a corpus without labels, and bins < 1.
    """
    _check(tagger, corpus)
    tokens, segments = Calibration(bins), Calibration(bins)
    total = -(-len(corpus) // 64)
    for batch in bar(tagger.batches(corpus), f"scoring {name}", total, progress):
        for metric, counted in zip((tokens, segments), _counted(tagger, batch), strict=True):
            metric.update(*(part.cpu() for part in counted))
    found = None if tagger.labels.scheme == "none" else segments.compute()
    return ModelReliability(name, tokens.compute(), found)


def reliability_file(
    models: Sequence[str],
    file: str,
    bins: int,
    reading: Reading,
    plot: str | None,
    csv: str | None,
    trusted: Sequence[str] = (),
) -> str:
    """Text of `reliability` of saved models on one file with gold labels; figure and table go to files.

    InputError as of its parts.
    """
    check_figure(plot)
    check_targets(csv)
    found = []
    for model, name in zip(models, short_names(models), strict=True):
        tagger = Tagger.load(model, trusted=trusted)
        found.append(reliability(tagger, read_gold(tagger, file, reading), bins, name))
    if plot:
        write_figure(plot, plot_reliability([(one.name, one.levels) for one in found]))
    if csv:
        write_csv(csv, ("model", "of", "low", "high", "n", "confidence", "accuracy"), _rows(found))
    return "\n".join(reliability_lines(found))


# -- counting -------------------------------------------------------------------------------------------------


def _check(tagger: Tagger, corpus: Corpus) -> None:
    if tagger.nonlocal_features:
        why = "there is no sum over all labellings to make its scores probabilities"
        raise InputError(f"the model has non-local features: {why}; give a model of local features")
    if "label" not in corpus.columns:
        raise InputError(f"{corpus.name}: there are no gold labels; give a column 'label'")


@torch.no_grad()
def _counted(tagger: Tagger, batch: Batch) -> Iterator[tuple[Tensor, Tensor]]:
    """-> (confidence (n,), right (n,) bool) of the batch's tokens, then of its predicted segments, if there are any."""
    assert batch.gold is not None
    lattice = tagger(batch)
    labels = tagger.decoder(lattice).labels[:, 0]
    real = real_tokens(batch.lengths, labels.shape[1])
    yield token_confidence(lattice, labels)[real], (labels == batch.gold)[real]
    boundaries = SentenceBoundaries(real, batch.first, batch.last)
    found, gold = (opened_segments(ids, boundaries, tagger.labels) for ids in (labels, batch.gold))
    rows, starts = (found.kind >= 0).nonzero(as_tuple=True)
    segments = Segments(rows, starts, found.end[rows, starts] + 1)
    right = (found.kind == gold.kind) & (found.end == gold.end)
    yield segment_confidence(lattice, labels, segments, boundaries, tagger.labels), right[rows, starts]


# -- text -----------------------------------------------------------------------------------------------------


def reliability_lines(found: Sequence[ModelReliability]) -> Iterator[str]:
    """A line of sums for each model, in per cent, then its bins."""
    width = max(5, *(len(one.name) for one in found)) + 2
    heads = ("n", "accuracy", "confidence", "ECE", "Brier")
    yield f"{'model':<{width}}{'of':<10}" + "".join(f"{head:>12}" for head in heads)
    for one in found:
        for level, result in one.levels:
            shares = (result.all.accuracy, result.all.confidence, result.ece, result.brier)
            yield f"{one.name:<{width}}{level:<10}{result.all.n:>12}" + "".join(f"{100 * s:>12.2f}" for s in shares)
    for one in found:
        for level, result in one.levels:
            yield ""
            yield f"{one.name}: {level}"
            yield from _bin_lines(result)


def _bin_lines(result: Reliability) -> Iterator[str]:
    yield f"{'confidence':<14}{'n':>10}{'mean':>12}{'accuracy':>12}"
    for one in result.bins:
        shares = f"{100 * one.confidence:>12.2f}{100 * one.accuracy:>12.2f}" if one.n else ""
        yield f"{one.low:.2f} .. {one.high:.2f}  {one.n:>10}{shares}"


def _rows(found: Sequence[ModelReliability]) -> Iterator[tuple[object, ...]]:
    for one in found:
        for level, result in one.levels:
            for b in result.bins:
                yield one.name, level, b.low, b.high, b.n, b.confidence, b.accuracy
