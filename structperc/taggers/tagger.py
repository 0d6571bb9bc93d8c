"""The tagger: a model of label sequences with its criterion, optimizer and training methods, for Lightning."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from structperc.chain import Decoder, KBest
from structperc.criteria import Criterion, Prior
from structperc.data.label_sets import is_incomplete
from structperc.data.text_files import expand_path
from structperc.datamodules.base import BatchForm, SequenceDataModule
from structperc.datamodules.distributed import process_group
from structperc.features import FeatureExtractor
from structperc.metrics.f_measure import check_beta
from structperc.models.base import Model
from structperc.models.chain_model import ChainModel
from structperc.nn.candidate_scorer import ComparedSequences
from structperc.nonlocal_features import NonlocalFeature
from structperc.optim import ParameterGroups
from structperc.optim.averaged_perceptron import AveragedOptimizer
from structperc.optim.base import TrainingProtocol, training_protocol
from structperc.scorers.base import LocalWeights
from structperc.structures import Batch, Candidates, FlatBatch, Scored
from structperc.taggers.base import BaseTagger
from structperc.taggers.callbacks import check_trainer, with_scheduler
from structperc.taggers.contract_checks import check_step_size_rule
from structperc.taggers.data_requirements import TaggerRequirements
from structperc.taggers.defaults import default_optimizer, default_rates
from structperc.taggers.distillation import Teacher
from structperc.taggers.full_batch_likelihood import FullBatchLikelihood, supports_likelihood
from structperc.taggers.initialization import initialize_from
from structperc.taggers.learning import (
    FullBatchTraining,
    GradientTraining,
    SequentialTraining,
    TrainingMethod,
    clip_sparse_gradients,
)
from structperc.taggers.sequential_learning import ParameterAveragingLearner, sequence_learner, sync_count


class Tagger(ChainModel, BaseTagger):
    """A `ChainModel` that a Lightning trainer trains: features, scorer, search, criterion and optimizer.

    Training computes scores, searches candidates, adds non-local scores and applies the criterion. Sizes come from the
    training data or a saved model. The optimizer determines the training method, see `taggers.learning`. `save` writes
    the model. Further arguments, attributes and errors are those of `ChainModel`.

    Args:
        criterion: Training loss of the gold labels and the candidates, and the condition for an update.
        optimizer: Constructor of the optimizer of all parameters of the scorer and the non-local features; by default
            that of the criterion, see `taggers.defaults`.
        prior: Regularisation of all weights, added to the loss of the corpus.
        init_from: Folder of a saved model with the same templates; training starts from its weights. Features
            and labels that only the training data have are added, with weights of zero.
        beta: Weight of recall in the F score by which models are selected, see `metrics.f_measure`.
        lr_scheduler: Learning-rate schedule of torch or of `optim`, applied after steps or epochs.
        teacher: Trained tagger from whose label sequences `DistillationLoss` learns.
        parameter_groups: Learning rates and weight decay by module and layer; by default those of the optimizer. The
            default optimizer has a smaller rate for pretrained encoders.

    Example:
        >>> import pytorch_lightning as pl
        >>> from structperc import FeatureExtractor
        >>> from structperc.criteria import PerceptronLoss
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.scorers import SparseLinear
        >>> tagger = Tagger(FeatureExtractor(["w[-1]", "w[0]", "w[1]"]), SparseLinear(), PerceptronLoss())
        >>> quiet = dict(logger=False, enable_checkpointing=False)
        >>> quiet |= dict(enable_progress_bar=False, enable_model_summary=False)
        >>> pl.Trainer(max_epochs=3, **quiet).fit(tagger, datamodule=Synthetic(train=20, dev=0, test=0))
        >>> tagger.tag([["Shares", "of", "Penus", "Corp.", "fell"]])
        [['O', 'O', 'B-ORG', 'I-ORG', 'O']]
    """

    supports_distributed = True
    uses_candidate_lists = False  # True if global features collect their strings from candidate lists
    corpus_size: int | None = None  # number of sequences that share the prior; None: size of the batch

    def __init__(
        self,
        features: FeatureExtractor | None,
        scorer: LocalWeights,
        criterion: Criterion,
        search: KBest | None = None,
        optimizer: Callable[[Iterable[Any]], Optimizer] | None = None,
        nonlocal_features: Sequence[NonlocalFeature] = (),
        decoder: Decoder | None = None,
        prior: Prior | None = None,
        init_from: str | None = None,
        beta: float = 1.0,
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None,
        teacher: Teacher | None = None,
        parameter_groups: ParameterGroups | None = None,
    ) -> None:
        super().__init__(features, scorer, criterion, search, nonlocal_features, decoder)
        check_beta(beta)
        self.beta = beta
        if optimizer is None:
            optimizer, parameter_groups = default_optimizer(criterion, scorer), parameter_groups or default_rates(self)
        self.optimizer, self.lr_scheduler, self.parameter_groups = optimizer, lr_scheduler, parameter_groups
        self.prior, self.init_from, self.teacher = prior, init_from, teacher
        self.requirements = TaggerRequirements(self)
        self.training_method: TrainingMethod = GradientTraining(self)

    @classmethod
    def saved_class(cls) -> type[Model]:
        """Return `ChainModel`, which loads what a tagger saves; a class derived from `Tagger` saves itself."""
        return ChainModel if cls is Tagger else cls

    def score_batch(self, batch: Batch, candidates: Candidates | None = None) -> Scored:
        """Return the gold labels and the candidates for the criterion, with gradients.

        By default candidates are searched, or are those of the teacher. If the criterion compares sentences, each of
        them is a row.
        """
        compared = self.candidate_scorer.compared_sequences(self(batch), batch)
        if candidates is None and self.teacher is not None:
            candidates = self.teacher.candidates(batch)
        elif candidates is None:
            candidates = self.candidate_scorer.training_candidates(compared)
        return self.candidate_scorer.score(batch, compared, candidates)

    @torch.no_grad()
    def without_cost(self, batch: Batch, scored: Scored) -> Scored:
        """Return the gold labels and the best candidates by score, without the criterion's cost."""
        lattice, gold = scored.lattice, scored.gold
        if self.criterion.augment(lattice, gold) is lattice:
            return scored
        compared = ComparedSequences(lattice, gold, None, scored.allowed)
        return self.candidate_scorer.score(batch, compared, self.candidate_scorer.candidates(lattice))

    def new_optimizer(self) -> Optimizer:
        """Return an optimizer over all parameters."""
        groups = self.parameter_groups
        return self.optimizer(self.parameters()) if groups is None else groups.optimizer(self.optimizer, self)

    def configure_optimizers(self) -> Optimizer | dict[str, Any]:  # type: ignore[override]  # a narrower type
        """Return the optimizer, for a trainer with the schedule of its learning rates if there is one."""
        optimizer = self.new_optimizer()
        if self.attached_trainer is None:
            return optimizer
        self.bind_optimizer(optimizer)
        return optimizer if self.lr_scheduler is None else with_scheduler(self.lr_scheduler, optimizer, self.trainer)

    def bind_optimizer(self, optimizer: Optimizer) -> None:
        """Choose the training method: one sequence at a time if the parts support it, else by gradients.

        Several processes that learn one sequence at a time average their weights. Incomplete labels are learned by
        gradients.
        """
        check_step_size_rule(optimizer)
        trainer = self.attached_trainer
        if trainer is not None:
            check_trainer(optimizer, trainer)
        batches = trainer is not None and (
            trainer.gradient_clip_val
            or trainer.accumulate_grad_batches > 1
            or is_incomplete(self._data.corpus("train"))
        )
        found = None if batches or self.prior is not None else sequence_learner(self, optimizer)
        if found is not None and process_group().size > 1:
            found = ParameterAveragingLearner(
                found, cast(AveragedOptimizer, optimizer), partial(sync_count, self.trainer)
            )
        self.training_method = GradientTraining(self) if found is None else SequentialTraining(self, found)

    def training_protocol(self) -> TrainingProtocol:
        """Return the optimizer's side of the training protocol; its defaults outside of a trainer."""
        made = [] if self.attached_trainer is None else self.trainer.optimizers
        return training_protocol(made[0]) if made else TrainingProtocol()

    @property
    def full_batch(self) -> bool:
        """True if the optimizer makes one step in this epoch."""
        return self.training_method.full_batch

    @property
    def batch_form(self) -> BatchForm:
        """The form of the mini-batches that the tagger learns from."""
        return self.training_method.batch_form

    def on_fit_start(self) -> None:
        """Count the training sequences, each of which has an equal share of the prior; list those of the teacher."""
        super().on_fit_start()
        corpus = self._data.corpus("train")
        self.corpus_size = len(corpus)
        if self.teacher is not None:
            self.teacher.read(ChainModel.load(expand_path(self.teacher.model), str(self.device)), corpus, self.labels)

    def on_train_epoch_start(self) -> None:
        """Begin an epoch with the training method of its optimizer, which `SequentialOptimizers` may change."""
        optimizer = self.training_protocol()
        optimizer.begin_epoch(self.current_epoch)
        if optimizer.full_batch != self.full_batch:
            whole = FullBatchLikelihood if supports_likelihood(self) else FullBatchTraining
            self.training_method = (whole if optimizer.full_batch else GradientTraining)(self)
        self.training_method.begin_epoch()

    def training_step(self, batch: Batch | FlatBatch, batch_idx: int = 0) -> Tensor | None:
        """Learn from a batch as the training method does; return the summed loss, a scalar, if there is one."""
        return self.training_method.step(batch, batch_idx)

    def backward(self, loss: Tensor, *args: Any, **options: Any) -> None:
        """Compute gradients by the training method."""
        self.training_method.backward(loss, *args, **options)

    def optimizer_zero_grad(self, epoch: int, batch_idx: int, optimizer: Optimizer) -> None:
        """Clear the gradients before a step."""
        self.training_method.zero_grad(batch_idx)

    def on_validation_model_zero_grad(self) -> None:
        """Keep the gradients within an epoch: a step may sum those of mini-batches before and after a validation."""

    def optimizer_step(self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None) -> None:
        """Make a step by the training method."""
        self.training_method.optimizer_step(batch_idx, optimizer, optimizer_closure)

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the gradients as the trainer does, and also sparse ones, which it does not support."""
        trained = [p for p in self.parameters() if p.grad is not None]
        if gradient_clip_val and any(cast(Tensor, p.grad).is_sparse for p in trained):
            clip_sparse_gradients(trained, gradient_clip_val, by_value=gradient_clip_algorithm == "value")
        else:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def on_train_batch_end(self, *args: Any) -> None:
        """Sum the counts of all processes at the end of an epoch, and stop its clock."""
        self.training_method.end_batch(self.trainer.is_last_batch)

    def objective(self) -> float:
        """Return the objective of the epoch: exact in full-batch training, else the sum of the losses of its steps."""
        return self.training_method.objective()

    def training_error(self) -> float:
        """Return the share of training tokens with a wrong label in this epoch; NaN without tokens.

        The labels are those of the best candidate by score without cost: a cost favours wrong label sequences.
        """
        return self.training_method.sums.error

    def on_train_epoch_end(self) -> None:
        """Log objective, training error and updates; stop if the optimizer has finished."""
        self.training_method.end_epoch()

    def build_vocabulary(self, data: SequenceDataModule) -> None:
        """Take features and labels from the training data, or from the model with which training starts."""
        if self.init_from is not None:
            initialize_from(self, self.init_from, data)
            return
        train = data.corpus("train")
        self.scorer.check_data(train)
        self.features = data.fit_features(self.features)
        self.scorer.build_vocabulary(self.features.with_documents(train, self.scorer.columns))
        self.allocate(data.label_set())
