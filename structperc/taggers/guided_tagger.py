"""Guided learning as a Lightning module: bidirectional tagging whose order of decisions is learned."""

from collections.abc import Iterable
from typing import Any, cast

import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from torch import Tensor

from structperc.builder import Builder
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.datamodules.base import SequenceDataModule
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.guided import ContextFeatures, GuidedModel, GuidedOptimizer, UpdateRule
from structperc.guided.model import Order
from structperc.ragged import Ragged
from structperc.scorers import SparseLinear
from structperc.structures import Batch
from structperc.taggers.base import BaseTagger, flat_values
from structperc.taggers.learning import EpochClock
from structperc.taggers.model_format import required_entries
from structperc.taggers.serialization import describe

ORDER = "order"  # the column of `GuidedTagger.add_columns`


class GuidedTagger(BaseTagger):
    """The tagger of Shen, Satta & Joshi 2007; see `GuidedModel`.

    Node templates of `features` see words alone, `context` sees labels that are decided already. Sentences are learned
    one after the other, as in the paper: data.batch_size, how many of them are learned in one step of training, is a
    matter of speed alone. Averaged weights are what is looked at and saved. Labels are chosen one by one: a tag scheme
    is not enforced.

    Args:
        features: templates and resources; edge templates are not used.
        context: templates of neighbouring labels.
        beam: states kept of each span of decided tokens; the paper has 1 and 3.
        order: "easiest", or "left-to-right" for comparison.
        rule: when learning accepts a decision and when it changes the weights; by default `Aggressive`.
        average: whether averaged weights are served.
        beta: of the F score by which models are looked at, see `metrics.segments`.

    Raises:
        InputError: beam < 1, an unknown order; in training, sequences that are documents.
    """

    def __init__(
        self,
        features: FeatureExtractor,
        context: ContextFeatures,
        beam: int = 3,
        order: Order = "easiest",
        rule: UpdateRule | None = None,
        average: bool = True,
        beta: float = 1.0,
    ) -> None:
        super().__init__(features, beta)
        self.guided = GuidedModel(SparseLinear(transitions=False), context, beam, order, rule)
        self.average = average
        self.automatic_optimization = False
        self._start_counts()

    def allocate(self, labels: LabelSet) -> None:
        """Create weights for these labels and the (fitted) features."""
        self.labels, self.fitted = labels, True
        self.guided.allocate(self.features.n_node_features, len(labels))

    def inputs(self, corpus: Corpus) -> list[Ragged]:
        """Return no inputs: a guided tagger reads feature ids alone."""
        return []

    def build_vocabulary(self, data: SequenceDataModule) -> None:
        """Take features and labels from the training data, and create the weights."""
        self.features = data.fit_features(self.features)
        self.allocate(data.label_set())

    def check_data(self, data: SequenceDataModule, stage: str) -> None:
        """Accept any data: `check_unit` says all there is to say about them."""

    def finalize(self) -> None:
        """Do nothing: the weights are ready to be saved when training is over."""

    def extra_vocabulary(self) -> dict[str, Any]:
        """Return nothing: weights of a guided tagger need agree on labels and features alone."""
        return {}

    def check_unit(self, unit: str) -> None:
        """Raise InputError for documents as sequences: guided learning labels each sentence by itself."""
        if unit != "sentence":
            raise InputError(f"GuidedTagger labels sentences: set data.unit: sentence, not {unit}")

    @property
    def probabilistic(self) -> bool:
        """False: scores of decisions, made one by one, are no probabilities."""
        return False

    def confidences(self, batch: Batch, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Raise InputError: there are none."""
        raise InputError("a guided tagger has scores, not probabilities; train local features with Likelihood")

    @torch.no_grad()
    def decode(self, batch: Batch) -> Tensor:
        """Return the labels (B, T) int64 that inference gives under the present weights."""
        return self.guided.decode(batch).labels

    def decode_validation(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the labels (B, T) int64 that inference gives for a batch of development data."""
        return self.decode(batch)

    def predict_batch(self, batch: Batch) -> tuple[Tensor, ...]:
        """Return the labels (B, T) int64 and the steps (B, T) in which tokens were decided."""
        found = self.guided.decode(batch)
        return found.labels, found.order

    def add_columns(self, corpus: Corpus, parts: Iterable[tuple[Tensor, ...]]) -> Corpus:
        """Return the corpus with a column `order`: the step in which each token was decided, from 1.

        Raises InputError for a corpus that has such a column already.
        """
        if ORDER in corpus.columns:
            raise InputError(f"{corpus.name}: there is a column {ORDER!r} already; name it otherwise, _ skips it")
        orders = ((rows, order) for rows, _, order in parts)
        return corpus.replace_column(ORDER, [str(step + 1) for step in flat_values(corpus, orders).tolist()])

    def training_step(self, batch: Batch, batch_idx: int = 0) -> None:
        """Visit the sentences of the batch one after the other, and change the weights where decisions are wrong."""
        optimizer = cast(LightningOptimizer, self.optimizers())
        progress = self.guided.learn(batch, cast(GuidedOptimizer, optimizer.optimizer))
        optimizer.step()
        self._updates += progress.updates
        self._decisions += progress.decisions
        self._errors += progress.errors

    def configure_optimizers(self) -> GuidedOptimizer:
        """Return the optimizer that carries out the updates of guided learning and averages the weights."""
        return GuidedOptimizer(self.parameters(), self.average)

    def _start_counts(self) -> None:
        self._updates = self._decisions = self._errors = 0

    def on_fit_start(self) -> None:
        """Ask for sentences in an order that does not depend on the size of mini-batches."""
        self.trainer.datamodule.sequential = True  # type: ignore[attr-defined]

    def on_train_epoch_start(self) -> None:
        """Set the counts of the epoch to zero."""
        self._start_counts()
        self._clock = EpochClock()

    def on_train_batch_end(self, *args: Any) -> None:
        """Stop the clock of the epoch after the last mini-batch."""
        if self.trainer.is_last_batch:
            self._clock.stop()

    def training_error(self) -> float:
        """Return the share of the decisions of this epoch that were wrong."""
        return self._errors / max(1, self._decisions)

    def on_train_epoch_end(self) -> None:
        """Log the epoch's number of updates and its share of wrong decisions, and note how long it took."""
        self.epoch_summary = self._clock.told(self._updates)
        self.log("train/updates", float(self._updates))
        self.log("train/error", self.training_error(), prog_bar=True)

    def description(self) -> dict[str, Any]:
        """Return the context templates and what inference needs; how the tagger was trained is not kept."""
        return {"context": describe(self.guided.context), "beam": self.guided.beam, "order": self.guided.order}

    @classmethod
    def from_description(
        cls, description: dict[str, Any], features: FeatureExtractor, build: Builder
    ) -> "GuidedTagger":
        """Return the tagger, without weights, that `description` described."""
        return cls(features, **build.options(cls, required_entries(description, ("context", "beam", "order")), "model"))
