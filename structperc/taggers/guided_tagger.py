"""Guided learning as a Lightning module: bidirectional tagging whose order of decisions is learned."""

from typing import Any, Self, cast

import torch
from pytorch_lightning.core.optimizer import LightningOptimizer
from torch import Tensor

from structperc.builder import Builder, describe
from structperc.data.corpus import Corpus
from structperc.data.labels import LabelSet
from structperc.data.weights import first_change
from structperc.datamodules.base import BatchForm
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.guided import ContextFeatures, GuidedModel
from structperc.guided.model import GuidedOptimizer, GuidedRule, Order
from structperc.guided.training_arrays import Decisions
from structperc.models.base import flat_values, inference_batch_size
from structperc.models.model_format import required_entries
from structperc.scorers import SparseLinear
from structperc.structures import Batch, FlatBatch
from structperc.taggers.base import BaseTagger
from structperc.taggers.data_requirements import DataRequirements
from structperc.taggers.learning import EpochStatistics

ORDER = "order"  # the column of `GuidedTagger.further_columns`


class GuidedRequirements(DataRequirements):
    """Requirements of guided learning for its data."""

    def check_unit(self, unit: str) -> None:
        """Raise InputError for documents as sequences: guided learning labels single sentences."""
        if unit != "sentence":
            raise InputError(f"GuidedTagger labels sentences: set data.unit: sentence, not {unit}")

    def check_incomplete(self, place: str) -> None:
        """Raise InputError, which begins with `place`, if the rule does not learn from incomplete labels."""
        if not self.tagger.guided.rule.supports_incomplete:
            name = type(self.tagger.guided.rule).__name__
            raise InputError(f"{place}: {name} needs complete labels; set model.rule: structperc.guided.Aggressive")

    def check_weights(self, corpus: Corpus) -> None:
        """Raise InputError for weights that differ within a sentence."""
        if (token := first_change(corpus, corpus.sentences)) is not None:
            raise InputError(f"{corpus.where(token)}: weights differ within a sentence; give a sentence one weight")


class GuidedTagger(BaseTagger):
    """The tagger of guided learning, which labels the easiest tokens first (Shen, Satta & Joshi 2007).

    The model is `GuidedModel`. Node templates of `features` read words, `context` reads labels that are already
    decided. Sentences are learned one after the other, as in the paper: data.batch_size, the number of sentences per
    training step, affects speed only. Averaged weights are evaluated and saved. Labels are chosen one by one: a tag
    scheme is not enforced.

    Args:
        features: Templates and resources; edge templates are not used.
        context: Templates of neighbouring labels.
        beam: Number of states kept for each span of decided tokens; 1 and 3 in the paper.
        order: "easiest", or "left-to-right" for comparison.
        rule: Condition of accepting a decision and of changing the weights; default: `Aggressive`.
        average: Evaluate and save averaged weights.
        beta: Weight of recall in the F score by which models are selected, see `metrics.f_measure`.

    Raises:
        InputError: `beam` is below 1, or `order` is unknown. In training: sequences are documents.

    Example:
        >>> import pytorch_lightning as pl
        >>> from structperc import FeatureExtractor
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.guided import ContextFeatures
        >>> features, context = FeatureExtractor(["w[-1]", "w[0]", "w[1]"]), ContextFeatures(["t[-1]", "t[1]"])
        >>> tagger = GuidedTagger(features, context, beam=1)
        >>> quiet = dict(logger=False, enable_checkpointing=False)
        >>> quiet |= dict(enable_progress_bar=False, enable_model_summary=False)
        >>> pl.Trainer(max_epochs=3, **quiet).fit(tagger, datamodule=Synthetic(train=20, dev=0, test=0))
        >>> tagger.tag([["Shares", "of", "Penus", "Corp.", "fell"]])
        [['O', 'O', 'B-ORG', 'I-ORG', 'O']]
    """

    def __init__(
        self,
        features: FeatureExtractor,
        context: ContextFeatures,
        beam: int = 3,
        order: Order = "easiest",
        rule: GuidedRule | None = None,
        average: bool = True,
        beta: float = 1.0,
    ) -> None:
        super().__init__(features, beta)
        self.guided = GuidedModel(SparseLinear(transitions=False), context, beam, order, rule)
        self.average, self.requirements = average, GuidedRequirements(self)
        self.automatic_optimization = False
        self._counts = EpochStatistics(self.device)  # wrong "tokens" are wrong decisions

    def allocate(self, labels: LabelSet) -> None:
        """Create weights for these labels and the (fitted) features."""
        self.labels, self.fitted = labels, True
        self.guided.allocate(self.features.n_node_features, len(labels))

    @property
    def batch_form(self) -> BatchForm:
        """The form of the mini-batches that the tagger learns from."""
        return "flat"

    @property
    def probabilistic(self) -> bool:
        """False: scores of decisions, made one by one, are not probabilities."""
        return False

    def confidences(self, batch: Batch, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Raise InputError: a guided tagger has no probabilities."""
        raise InputError("a guided tagger has scores, not probabilities; train local features with CRFLoss")

    @torch.no_grad()
    def decode(self, batch: Batch) -> Tensor:
        """Return the labels (B, T) int64 under the current weights."""
        return self.decide(batch).labels

    def decide(self, batch: Batch) -> Decisions:
        """Return the labels of a batch, and the steps in which tokens are decided."""
        if batch.restriction is not None:
            limits = "allowed labels and forbidden spans"
            raise InputError(f"a guided tagger does not support {limits}; use a Tagger, or leave them out")
        return self.guided.decode(batch)

    @torch.no_grad()
    def further_columns(self, corpus: Corpus) -> dict[str, list[str]]:
        """Return the column `order`: the step in which each token is decided, from 1.

        Raises:
            InputError: The corpus already has such a column.
        """
        if ORDER in corpus.columns:
            raise InputError(
                f"{corpus.name}: the column {ORDER!r} exists already; give it another name, or skip it with _"
            )
        batches = self.batches(corpus, inference_batch_size(corpus))
        steps = flat_values(corpus, ((batch.rows, self.decide(batch).order) for batch in batches))
        return {ORDER: [str(step + 1) for step in steps.tolist()]}

    def training_step(self, batch: FlatBatch, batch_idx: int = 0) -> None:
        """Visit the sentences of the batch one after the other, and change the weights where decisions are wrong."""
        optimizer = cast(LightningOptimizer, self.optimizers())
        progress = self.guided.learn(batch, cast(GuidedOptimizer, optimizer.optimizer))
        optimizer.step()
        self._counts.count(progress.updates, progress.errors, progress.decisions)

    def configure_optimizers(self) -> GuidedOptimizer:
        """Return the optimizer that carries out the updates of guided learning and averages the weights."""
        return GuidedOptimizer(self.parameters(), self.average)

    def on_train_epoch_start(self) -> None:
        """Reset the counts of the epoch."""
        self._counts = EpochStatistics(self.device)

    def on_train_batch_end(self, *args: Any) -> None:
        """Stop the clock of the epoch after the last mini-batch."""
        if self.trainer.is_last_batch:
            self._counts.stop_clock()

    def training_error(self) -> float:
        """Return the share of the decisions of this epoch that were wrong."""
        return self._counts.error

    def on_train_epoch_end(self) -> None:
        """Log the epoch's number of updates and its share of wrong decisions, and summarise its duration."""
        self.epoch_summary = self._counts.summary()
        self.log_value("train/updates", float(self._counts.updates))
        self.log_value("train/error", self.training_error(), prog_bar=True)

    def description(self) -> dict[str, Any]:
        """Return the context templates and the options of inference, without training options."""
        return {"context": describe(self.guided.context), "beam": self.guided.beam, "order": self.guided.order}

    @classmethod
    def from_description(cls, description: dict[str, Any], features: FeatureExtractor, build: Builder) -> Self:
        """Return the tagger, without weights, of a `description`."""
        return cls(features, **build.options(cls, required_entries(description, ("context", "beam", "order")), "model"))
