"""The start of a training from the weights of a saved model.

The tagger: features, scorer, search, criterion and optimizer composed into one LightningModule.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from structperc.builder import Builder
from structperc.chain import KBest, sentences
from structperc.criteria import Criterion, Prior, empty_candidates, score_candidates, slice_candidates
from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.distributed import share
from structperc.encoders import TextModule
from structperc.errors import InputError, InvalidScore
from structperc.features import FeatureExtractor
from structperc.features.templates import template_name
from structperc.nonlocal_features import NonlocalFeature
from structperc.online import SequenceLearner
from structperc.optim import AveragedOptimizer, Perceptron
from structperc.scorers import Scorer
from structperc.structures import Batch, Candidates, Lattice, Scored, real_tokens
from structperc.taggers.contract_checks import check_step_size_rule
from structperc.taggers.lattice_tagger import LatticeScoring, LatticeTagger
from structperc.taggers.learning import LossTagger
from structperc.taggers.model_format import required_entries
from structperc.taggers.sequential_learning import ParameterAveragingLearner, online_learner, sync_count
from structperc.taggers.serialization import described


def initialize_from(tagger: LatticeTagger, folder: str, data: SequenceDataModule) -> None:
    """Give a tagger without weights the features, labels and weights of a saved model, to be trained with data.

    The saved model may name classes of this library and of the modules that the tagger's own classes are from. Weights
    that only the tagger has, such as those of non-local features, stay at zero. Raises InputError when there is no
    model, or it was trained with other templates, sequences or tag scheme, or has weights that the tagger does not
    have, or has labels of a first model for other training data. A model of sentences whose templates look no farther
    is good for documents, too.
    """
    known_parts = Builder.like(tagger, *tagger.features.foreign)
    try:
        saved = type(tagger).load(folder, trusted=known_parts.trusted)
    except InputError as error:
        raise InputError(f"model.init_from: {error}") from None
    for kind in ("node", "edge"):
        own, other = ([template_name(t) for t in x.features.templates(kind)] for x in (tagger, saved))
        if own != other:
            raise InputError(f"model.init_from: {folder} was trained with other {kind} templates; use those")
    if saved.features.hash_bits != tagger.features.hash_bits:
        bits = "null" if saved.features.hash_bits is None else saved.features.hash_bits
        raise InputError(f"model.init_from: {folder} numbers features otherwise; set features.hash_bits: {bits}")
    if saved.unit != tagger.unit and not (saved.unit == "sentence" and saved.features.within == "sentence"):
        raise InputError(f"model.init_from: {folder} was trained on {saved.unit}s; set data.unit: {saved.unit}")
    if saved.labels.scheme != data.scheme:
        raise InputError(f"model.init_from: {folder} has {saved.labels.scheme} labels; set data.scheme to that")
    try:
        saved.features.start(data.corpus("train"))
    except InputError as error:
        raise InputError(f"model.init_from: {folder}: {error}") from None
    tagger.features = saved.features
    for module, known in zip(tagger.scorer.modules(), saved.scorer.modules(), strict=False):
        if isinstance(module, TextModule) and isinstance(known, type(module)):
            module.load_state(known.learned())
    tagger.allocate(saved.labels)
    weights = dict(tagger.named_parameters())
    with torch.no_grad():
        for name, p in saved.named_parameters():
            if name not in weights or weights[name].shape != p.shape:
                raise InputError(f"model.init_from: {folder} has weights {name}, which this model has not")
            weights[name].copy_(p)


class Tagger(LossTagger):
    """score -> search -> re-score -> criterion, one optimizer. Sizes come from the training data or a saved model.

    `Tagger.load` takes the models of re-rankers, too: they label and list as a tagger does.

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
        beta: of the F score by which models are looked at, see `metrics.segments`.
        lr_scheduler: changes the optimizer's learning rates after steps or epochs; one of torch's or of `optim`.
    """

    supports_distributed = True
    loads: ClassVar[tuple[type, ...]] = (LatticeTagger,)
    saved_parts: ClassVar[tuple[str, ...]] = ("scorer", "criterion", "search", "decoder", "nonlocal_features")
    scorer: Scorer

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
        beta: float = 1.0,
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None,
    ) -> None:
        super().__init__(features, scorer, criterion, search, nonlocal_features, decoder or KBest(1), beta)
        if search.k < criterion.min_candidates:
            name, needed = type(criterion).__name__, criterion.min_candidates
            raise InputError(f"model.search.k is {search.k}, but {name} compares gold with rivals: set it >= {needed}")
        if nonlocal_features and criterion.unit == "sentence":
            raise InputError("model.criterion.unit is sentence, but non-local features compare sentences: leave it out")
        self.optimizer, self.lr_scheduler = optimizer, lr_scheduler
        self.prior, self.init_from = prior, init_from
        self.start_sums()

    def make_scoring(self) -> LatticeScoring:
        """Return the scores in the lattice of the scorer, plus those of the non-local features."""
        features = [feature for feature in self.nonlocal_features if isinstance(feature, NonlocalFeature)]
        return LatticeScoring(self.scorer, self.constraints, self.criterion, features, self.labels)

    def score_batch(self, batch: Batch, candidates: Candidates | None = None) -> Scored:
        """Return gold and the candidates that the criterion compares, if it compares any.

        Those not given are searched for. Where the criterion compares sentences, each of them is a row.
        """
        assert batch.gold is not None
        lattice, gold = self(batch), batch.gold
        if self.criterion.unit == "sentence":
            lattice, places = sentences(lattice, batch.first)
            gold = gold.flatten()[places].where(real_tokens(lattice.lengths, places.shape[1]), 0)
        if candidates is None:
            with torch.no_grad():
                candidates = self._searched_for(self.criterion.augment(lattice, gold))
        return self._scored(batch, lattice, gold, candidates)

    @torch.no_grad()
    def without_cost(self, batch: Batch, score_batch: Scored) -> Scored:
        """Return gold and the candidates that are best by score alone; no second search where there is no cost."""
        lattice, gold = score_batch.lattice, score_batch.gold
        if self.criterion.augment(lattice, gold) is lattice:
            return score_batch
        return self._scored(batch, lattice, gold, self._searched_for(lattice))

    def _scored(self, batch: Batch, lattice: Lattice, gold: Tensor, candidates: Candidates) -> Scored:
        if self.criterion.unit == "sentence":
            return score_candidates(lattice, gold, candidates)
        return self.score(batch, lattice, candidates)

    def _searched_for(self, lattice: Lattice) -> Candidates:
        """Return what the criterion is given: no candidate where scores are invalid, so that its loss tells."""
        if not self.criterion.min_candidates:
            return empty_candidates(lattice)
        try:
            return self.search(lattice)
        except InvalidScore:
            B, T, _ = lattice.unary.shape
            k = self.search.k
            nothing = lattice.unary.new_full((B, k), -torch.inf)
            return Candidates(lattice.lengths.new_zeros(B, k, T), nothing, nothing > -torch.inf)

    def score(self, batch: Batch, lattice: Lattice, candidates: Candidates) -> Scored:
        """Return gold and candidates under the current weights, with gradients.

        Gold is scored as one more candidate.
        """
        assert batch.gold is not None
        score_batch = score_candidates(lattice, batch.gold, candidates)._replace(starts=batch.first)
        if not self.nonlocal_features:
            return score_batch
        labels = torch.cat([batch.gold[:, None], candidates.labels], 1)
        more = self.nonlocal_scores(batch, labels, nn.functional.pad(candidates.valid, (1, 0), value=True))
        return score_batch._replace(gold_nonlocal=more[:, 0], candidate_nonlocal=more[:, 1:])

    def new_optimizer(self) -> Optimizer:
        """Return an optimizer over all parameters."""
        return self.optimizer(self.parameters())

    def bind_optimizer(self, optimizer: Optimizer, data: SequenceDataModule) -> None:
        """Learn sequence by sequence where that is possible with an optimizer, and tell the data in which order.

        Several processes mix what they learn so.
        """
        check_step_size_rule(optimizer)
        self.online = None if self._needs_gradients() else self.learner(optimizer)
        if self.online is not None and share().processes > 1:
            due = partial(sync_count, self.trainer)
            self.online = ParameterAveragingLearner(self.online, cast(AveragedOptimizer, optimizer), due)
        data.sequential = self.online is not None

    def learner(self, optimizer: Optimizer) -> SequenceLearner | None:
        """Return what learns sequence by sequence with an optimizer of the parameters; None where nothing does."""
        further = list(self.nonlocal_features.parameters())
        return online_learner(self.scorer, self.constraints, self.criterion, optimizer, further, self._compared)

    def _compared(self, batch: Batch) -> tuple[Scored, Scored]:
        """Gold and candidates, with gradients of the non-local weights alone; the same without the criterion's cost.

        Both lists are scored in one go: most of that work is for what all labellings of a sequence have in common.
        """
        assert batch.gold is not None
        with torch.no_grad():
            lattice = self(batch)
            searched = self.criterion.augment(lattice, batch.gold)
            candidates = self._searched_for(searched)
            free = candidates if searched is lattice else self._searched_for(lattice)
        if free is candidates:
            score_batch = self.score(batch, lattice, candidates)
            return score_batch, score_batch
        both = Candidates(*(torch.cat(pair, 1) for pair in zip(candidates, free, strict=True)))
        score_batch, k = self.score(batch, lattice, both), candidates.valid.shape[1]
        return slice_candidates(score_batch, slice(0, k)), slice_candidates(score_batch, slice(k, None))

    def _needs_gradients(self) -> bool:
        """Whether something beside the optimizer's step asks for the gradients of whole mini-batches."""
        trainer = self._trainer
        if trainer is not None and (trainer.gradient_clip_val or trainer.accumulate_grad_batches > 1):
            return True
        return self.prior is not None

    # -- sizes and names -------------------------------------------------------------------------------------

    def build_vocabulary(self, data: SequenceDataModule) -> None:
        """Take features and labels from the training data, or from the model where training starts."""
        if self.init_from is not None:
            initialize_from(self, self.init_from, data)
            return
        train = data.corpus("train")
        self.scorer.learn(train)
        self.features = data.fit_features(self.features)
        self.allocate(data.label_set())

    def check_data(self, data: SequenceDataModule, stage: str) -> None:
        """Accept any data: a tagger has no demands beside those of `check_unit`."""

    def finalize(self) -> None:
        """Do nothing: the weights are ready to be saved when training is over."""

    def extra_vocabulary(self) -> dict[str, Any]:
        """Return nothing: weights of a tagger need agree on labels and features alone."""
        return {}

    # -- saved models ----------------------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """Return class and options of every part but the features, as plain JSON types."""
        return {part: described(getattr(self, part)) for part in self.saved_parts}

    @classmethod
    def from_description(cls, description: dict[str, Any], features: FeatureExtractor, build: Builder) -> "Tagger":
        """Return the tagger, without weights, that `description` described."""
        return cls(features=features, **build.options(cls, required_entries(description, cls.saved_parts), "model"))
