"""The tagger: features, scorer, search, criterion and optimizer composed into one LightningModule."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from structperc.batching.parts import parts
from structperc.batching.processes import summed
from structperc.batching.sequence_data import SequenceData
from structperc.chain import KBest, constrain, path_score
from structperc.criteria import Criterion, Prior
from structperc.criteria.base import best
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.features import FeatureExtractor, Ragged
from structperc.nonlocal_features import GlobalFeature, NonlocalFeature, find_segments
from structperc.optim import Perceptron
from structperc.scorers import Scorer
from structperc.structures import Batch, Candidates, Lattice, Scored
from structperc.taggers.builder import Builder, entries
from structperc.taggers.description import described
from structperc.taggers.inference import LatticeInference
from structperc.taggers.objective import Objective
from structperc.taggers.sequence_tagger import SequenceTagger
from structperc.taggers.start import start_from


class Tagger(Objective, LatticeInference, SequenceTagger):
    """score -> search -> re-score -> criterion, one optimizer. Sizes come from the training data or a saved model.

    Args:
        features: templates and resources; its index is built from the training data. None where the scorer reads words
            through an encoder alone.
        scorer: batch -> Lattice.
        criterion: what is compared and when it asks for an update.
        search: Lattice -> Candidates for training; KBest(n) with n at least what the criterion needs.
        optimizer: made for the parameters of the scorer and of the non-local features.
        nonlocal_features: what is counted in whole labellings; their scores are added to those of the lattice.
        decoder: Lattice -> Candidates for everything but training, KBest(n'), of which the best by total score is
            taken. By default the best labelling alone; with non-local features set n' to 100 or more.
        prior: added to the losses of the corpus, over all weights.
        init_from: folder of a saved model with the same templates; training starts from its weights, with its
            features and labels.
        gamma: of the F score by which models are looked at, see `metrics.f_measure`.
    """

    trained_together = True
    saved_parts: ClassVar[tuple[str, ...]] = ("scorer", "criterion", "search", "decoder", "nonlocal_features")
    reads_lists = False  # whether global features find their strings in candidate lists
    start: Tensor  # (L,) bool, masks of the tag scheme
    transition: Tensor  # (L, L)
    end: Tensor  # (L,)

    def __init__(
        self,
        features: FeatureExtractor | None,
        scorer: Scorer,
        criterion: Criterion,
        search: KBest,
        optimizer: Callable[[Iterable[Any]], Optimizer] = Perceptron,
        nonlocal_features: Sequence[NonlocalFeature] = (),
        decoder: KBest | None = None,
        prior: Prior | None = None,
        init_from: str | None = None,
        gamma: float = 1.0,
    ) -> None:
        super().__init__(features, gamma)
        if search.k < criterion.rivals_needed:
            name, needed = type(criterion).__name__, criterion.rivals_needed
            raise InputError(f"model.search.k is {search.k}, but {name} compares gold with rivals: set it >= {needed}")
        self.scorer, self.criterion, self.search = scorer, criterion, search
        self.optimizer = optimizer
        self.nonlocal_features = nn.ModuleList(nonlocal_features)
        self.decoder = decoder or KBest(1)
        self.prior, self.init_from = prior, init_from
        self._start_counts()

    # -- the architecture ------------------------------------------------------------------------------------

    def forward(self, batch: Batch) -> Lattice:
        """-> Lattice as the criterion reads it, with everything the tag scheme forbids at -inf.

        No segment crosses the boundary of a sentence.
        """
        lattice = constrain(self.scorer(batch), self.start, self.transition, self.end, batch.first, batch.last)
        return self.criterion.reads(lattice)

    def training_step(self, batch: Batch, batch_idx: int = 0) -> Tensor:
        """-> the summed loss of the batch."""
        scored = self.scored(batch, self.searched(batch_idx))
        with torch.autocast(self.device.type, enabled=False):  # the scorer alone may run in half precision
            losses, acts = self.criterion.judge(scored)
        self.count(scored, acts)
        return self.add(losses, batch, batch_idx)

    def scored(self, batch: Batch, candidates: Candidates | None = None) -> Scored:
        """Gold and candidates that the criterion compares, if it compares any; searched for unless they are given."""
        assert batch.gold is not None
        lattice = self(batch)
        if candidates is None:
            search = self.search if self.criterion.rivals_needed else no_candidates
            with torch.no_grad():
                candidates = search(self.criterion.augment(lattice, batch.gold))
        return self.score(batch, lattice, candidates)

    def score(self, batch: Batch, lattice: Lattice, candidates: Candidates) -> Scored:
        """Gold and candidates under the current weights, with gradients; gold is scored as one more candidate."""
        assert batch.gold is not None
        labels = torch.cat([batch.gold[:, None], candidates.labels], 1)
        valid = nn.functional.pad(candidates.valid, (1, 0), value=True)
        own, more = path_score(lattice, labels), self.nonlocal_scores(batch, labels, valid)
        return Scored(lattice, batch.gold, candidates, own[:, 0], own[:, 1:], more[:, 0], more[:, 1:], batch.first)

    def nonlocal_scores(self, batch: Batch, labels: Tensor, valid: Tensor) -> Tensor:
        """labels (B, K, T) int64, valid (B, K) bool -> (B, K), summed over all non-local features."""
        scores = valid.new_zeros(valid.shape, dtype=torch.float32)
        if not self.nonlocal_features:
            return scores
        segments = find_segments(batch, labels, valid, self.labels)
        return scores + sum(feature(segments) for feature in self.nonlocal_features)

    def rated(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Candidates, in their order, with the local scores that count: here those by which they were found."""
        return candidates

    def totals(self, batch: Batch, candidates: Candidates) -> Tensor:
        """-> (B, K) total scores of candidates, in their order; -inf where not valid."""
        return self.rated(batch, candidates).scores + self.nonlocal_scores(batch, candidates.labels, candidates.valid)

    def rescored(self, batch: Batch, candidates: Candidates) -> Candidates:
        """Candidates with total scores, best first by those; equal totals keep the order they had."""
        if not self.nonlocal_features:
            return candidates
        scores, order = self.totals(batch, candidates).sort(dim=1, descending=True, stable=True)
        labels = candidates.labels.gather(1, order[:, :, None].expand_as(candidates.labels))
        return Candidates(labels, scores, candidates.valid.gather(1, order))

    @torch.no_grad()
    def decode(self, batch: Batch) -> Tensor:
        """-> best labels (B, T) by total score among the decoder's candidates."""
        found = [self._decode(part) for part in parts(batch, self.decoder.k)]
        T = batch.sentences.shape[1]
        return torch.cat([nn.functional.pad(labels, (0, T - labels.shape[1])) for labels in found])

    def _decode(self, batch: Batch) -> Tensor:
        candidates = self.decoder(self(batch))
        if not self.nonlocal_features:
            return candidates.labels[:, 0]
        total = self.totals(batch, candidates)
        return candidates.labels[torch.arange(len(total), device=total.device), total.argmax(1)]

    @property
    def probabilistic(self) -> bool:
        """Whether exp(score - log Z) is a probability: trained by likelihood, local features alone."""
        return self.criterion.probabilistic and not self.nonlocal_features

    @property
    def additive(self) -> bool:
        """Whether a total score is the sum of the weights of what a labelling has."""
        return True

    def configure_optimizers(self) -> Optimizer:
        """The optimizer over all parameters."""
        return self.optimizer(self.parameters())

    # -- sizes and names -------------------------------------------------------------------------------------

    def allocate(self, labels: LabelSet) -> None:
        """Create weights and constraint masks for these labels and the (fitted) features."""
        self.labels, self.fitted = labels, True
        self.scorer.allocate(self.features.n_node_features, self.features.n_edge_features, len(labels))
        self.criterion.allocate(labels)
        for feature in self.nonlocal_features:
            cast(NonlocalFeature, feature).allocate(labels)
        for name, mask in (("start", labels.start), ("transition", labels.transition), ("end", labels.end)):
            self.register_buffer(name, mask, persistent=False)

    def setup(self, stage: str) -> None:
        """As of all taggers; sequences that share a prior are counted."""
        super().setup(stage)
        data: SequenceData = self.trainer.datamodule  # type: ignore[attr-defined]
        self.corpus_size = len(data.corpus("train")) if stage == "fit" else None

    def learn_sizes(self, data: SequenceData) -> None:
        """Features and labels are those of the training data, or of the model where training starts."""
        if self.init_from is not None:
            start_from(self, self.init_from, data.scheme)
        else:
            self.reader.learn(data.corpus("train"))
            super().learn_sizes(data)

    @property
    def reader(self) -> Scorer:
        """The scorer that reads text beside feature ids."""
        return self.scorer

    def inputs(self, corpus: Corpus) -> list[Ragged]:
        """What the scorer reads of a corpus beside feature ids."""
        return self.reader.read(corpus)

    def check_unit(self, unit: str) -> None:
        """InputError for non-local features that find nothing to compare."""
        for feature in self.nonlocal_features:
            name = type(feature).__name__
            if feature.needs_documents and unit == "sentence":
                raise InputError(f"{name} compares the sentences of a document: set data.unit: document")
            if isinstance(feature, GlobalFeature) and not self.reads_lists:
                raise InputError(f"{name} takes its strings from candidate lists: rerank with a GlobalReranker")

    # -- saved models ----------------------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """Class and options of every part but the features, as plain JSON types."""
        return {part: described(getattr(self, part)) for part in self.saved_parts}

    @classmethod
    def from_description(cls, description: dict[str, Any], features: FeatureExtractor, build: Builder) -> "Tagger":
        """The tagger, without weights, that `description` described."""
        return cls(features=features, **build.options(cls, entries(description, cls.saved_parts), "model"))

    # -- what is watched -------------------------------------------------------------------------------------

    def on_train_epoch_start(self) -> None:
        """Sums and counts of an epoch start at zero."""
        super().on_train_epoch_start()
        self._start_counts()

    def _start_counts(self) -> None:
        self._updates, self._wrong, self._tokens = torch.zeros(3, dtype=torch.int64, device=self.device).unbind()

    def count(self, scored: Scored, acts: Tensor) -> None:
        """Updates, wrong tokens of the best candidate and tokens of this step."""
        self._updates += acts.sum()
        if not self.criterion.rivals_needed:
            return
        self._wrong += (self._chosen(scored) != scored.gold).sum()  # both are 0 in the padding
        self._tokens += scored.lattice.lengths.sum()

    def on_train_batch_end(self, *args: Any) -> None:
        """At the end of an epoch the counts are those of all processes."""
        if self.trainer.is_last_batch:
            counts = summed(torch.stack([self._updates, self._wrong, self._tokens]))
            self._updates, self._wrong, self._tokens = counts.unbind()

    def _chosen(self, scored: Scored) -> Tensor:
        labels, valid = scored.candidates.labels, scored.candidates.valid
        if not self.nonlocal_features:
            return labels[:, 0]
        return labels[torch.arange(len(labels), device=labels.device), best(scored, valid)]

    def training_error(self) -> float:
        """Share of training tokens that the best candidate got wrong in this epoch; NaN when none was searched."""
        return int(self._wrong) / int(self._tokens) if self._tokens else math.nan

    def on_train_epoch_end(self) -> None:
        """Logs the objective, the epoch's training error and number of updated sequences."""
        super().on_train_epoch_end()
        self.log("train/updates", float(self._updates))
        if self.criterion.rivals_needed:
            self.log("train/error", self.training_error(), prog_bar=True)


def no_candidates(lattice: Lattice) -> Candidates:
    """An empty list for each sequence: for criteria that compare gold with all labellings at once."""
    B, T, _ = lattice.unary.shape
    none = lattice.unary.new_zeros(B, 0)
    return Candidates(lattice.lengths.new_zeros(B, 0, T), none, none.bool())
