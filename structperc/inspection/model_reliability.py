"""The reliability of saved models: whether their confidence in what they predict is their accuracy, in bins."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from structperc.chain import Segments
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.metrics import Calibration, Reliability, segment_confidence, token_confidence
from structperc.metrics.segments import opened_segments
from structperc.metrics.sentences import SentenceBoundaries
from structperc.progress import bar
from structperc.structures import Batch, real_tokens
from structperc.taggers.lattice_tagger import LatticeTagger


class ModelReliability(NamedTuple):
    """The reliability of one model; `segments` is None when its labels are no segments."""

    name: str
    tokens: Reliability
    segments: Reliability | None

    @property
    def levels(self) -> list[tuple[str, Reliability]]:
        """The pairs (name, Reliability) of tokens and, if there are any, of segments."""
        return [("tokens", self.tokens)] + ([] if self.segments is None else [("segments", self.segments)])


def reliability(
    tagger: LatticeTagger, corpus: Corpus, bins: int = 10, name: str = "model", progress: bool = True
) -> ModelReliability:
    """Return confidence against accuracy of predicted labels and segments; labels are in the tagger's scheme.

    Confidence is a probability of p(y | x) = exp(s(y) - log Z): that of the predicted label of a token, and that a
    labelling has exactly the predicted segment (see `segment_confidence`), which is right when gold has the same
    one. Criteria other than likelihood do not train p to be a probability, and `Tagger.marginals` refuses it for
    such models. Here it is computed for all, since how far it is from one is what shall be seen.

    Raises InputError for a model with non-local features or a re-ranker, whose scores have no sum over all labellings,
    a corpus without labels, and bins < 1.
    """
    _check(tagger, corpus)
    tokens, segments, labels = Calibration(bins), Calibration(bins), tagger.gold_labels(corpus)
    total = -(-len(corpus) // 64)
    for batch in bar(tagger.batches(corpus), f"scoring {name}", total, progress):
        for metric, counted in zip((tokens, segments), _counted(tagger, batch, labels), strict=True):
            metric.update(*(part.cpu() for part in counted))
    found = None if tagger.labels.scheme == "none" else segments.compute()
    return ModelReliability(name, tokens.compute(), found)


# -- counting -------------------------------------------------------------------------------------------------


def _check(tagger: LatticeTagger, corpus: Corpus) -> None:
    if tagger.nonlocal_features:
        why = "there is no sum over all labellings to make its scores probabilities"
        raise InputError(f"the model has non-local features: {why}; give a model of local features")
    if "label" not in corpus.columns:
        raise InputError(f"{corpus.name}: there are no gold labels; give a column 'label'")


@torch.no_grad()
def _counted(tagger: LatticeTagger, batch: Batch, names: LabelSet) -> Iterator[tuple[Tensor, Tensor]]:
    """-> (confidence (n,), right (n,) bool) of the batch's tokens, then of its predicted segments, if there are any.

    names: those by which gold is numbered.
    """
    assert batch.gold is not None
    lattice = tagger(batch)
    labels = tagger.decoder(lattice).labels[:, 0]
    real = real_tokens(batch.lengths, labels.shape[1])
    yield token_confidence(lattice, labels)[real], (labels == batch.gold)[real]
    boundaries = SentenceBoundaries(real, batch.first, batch.last)
    found, gold = (opened_segments(ids, boundaries, names) for ids in (labels, batch.gold))
    rows, starts = (found.kind >= 0).nonzero(as_tuple=True)
    segments = Segments(rows, starts, found.end[rows, starts] + 1)
    right = (found.kind == gold.kind) & (found.end == gold.end)
    yield segment_confidence(lattice, labels, segments, boundaries, tagger.labels), right[rows, starts]
