"""The tagger: features, scorer, search, criterion and optimizer composed into one LightningModule."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from structperc.batching.processes import share
from structperc.batching.sequence_data import SequenceData
from structperc.chain import KBest, sentences
from structperc.criteria import Criterion, Prior, compared, no_candidates, some_of
from structperc.errors import InputError, InvalidScore
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import NonlocalFeature
from structperc.online import SequenceLearner
from structperc.optim import AveragedOptimizer, Perceptron
from structperc.scorers import Scorer
from structperc.structures import Batch, Candidates, Lattice, Scored, real_tokens
from structperc.taggers.builder import Builder
from structperc.taggers.description import described
from structperc.taggers.first_calls import check_pace
from structperc.taggers.lattice_tagger import LatticeTagger
from structperc.taggers.loss_tagger import LossTagger
from structperc.taggers.mixing import MixedLearner, mixtures_due
from structperc.taggers.model_files import required_entries
from structperc.taggers.online import online_learner
from structperc.taggers.scoring import OwnLattice
from structperc.taggers.start import start_from


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
        gamma: of the F score by which models are looked at, see `metrics.f_measure`.
        lr_scheduler: changes the optimizer's learning rates after steps or epochs; one of torch's or of `optim`.
    """

    trained_together = True
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
        gamma: float = 1.0,
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None,
    ) -> None:
        super().__init__(features, scorer, criterion, search, nonlocal_features, decoder or KBest(1), gamma)
        if search.k < criterion.rivals_needed:
            name, needed = type(criterion).__name__, criterion.rivals_needed
            raise InputError(f"model.search.k is {search.k}, but {name} compares gold with rivals: set it >= {needed}")
        if nonlocal_features and criterion.unit == "sentence":
            raise InputError("model.criterion.unit is sentence, but non-local features compare sentences: leave it out")
        self.optimizer, self.lr_scheduler = optimizer, lr_scheduler
        self.prior, self.init_from = prior, init_from
        self.start_sums()

    def make_scoring(self) -> OwnLattice:
        """Return the scores in the lattice of the scorer, plus those of the non-local features."""
        features = [feature for feature in self.nonlocal_features if isinstance(feature, NonlocalFeature)]
        return OwnLattice(self.scorer, self.constraints, self.criterion, features, self.labels)

    def scored(self, batch: Batch, candidates: Candidates | None = None) -> Scored:
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
    def without_cost(self, batch: Batch, scored: Scored) -> Scored:
        """Return gold and the candidates that are best by score alone; no second search where there is no cost."""
        lattice, gold = scored.lattice, scored.gold
        if self.criterion.augment(lattice, gold) is lattice:
            return scored
        return self._scored(batch, lattice, gold, self._searched_for(lattice))

    def _scored(self, batch: Batch, lattice: Lattice, gold: Tensor, candidates: Candidates) -> Scored:
        if self.criterion.unit == "sentence":
            return compared(lattice, gold, candidates)
        return self.score(batch, lattice, candidates)

    def _searched_for(self, lattice: Lattice) -> Candidates:
        """Return what the criterion is given: no candidate where scores are invalid, so that its loss tells."""
        if not self.criterion.rivals_needed:
            return no_candidates(lattice)
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
        scored = compared(lattice, batch.gold, candidates)._replace(starts=batch.first)
        if not self.nonlocal_features:
            return scored
        labels = torch.cat([batch.gold[:, None], candidates.labels], 1)
        more = self.nonlocal_scores(batch, labels, nn.functional.pad(candidates.valid, (1, 0), value=True))
        return scored._replace(gold_nonlocal=more[:, 0], candidate_nonlocal=more[:, 1:])

    def new_optimizer(self) -> Optimizer:
        """Return an optimizer over all parameters."""
        return self.optimizer(self.parameters())

    def learn_with(self, optimizer: Optimizer, data: SequenceData) -> None:
        """Learn sequence by sequence where that is possible with an optimizer, and tell the data in which order.

        Several processes mix what they learn so.
        """
        check_pace(optimizer)
        self.online = None if self._needs_gradients() else self.learner(optimizer)
        if self.online is not None and share().processes > 1:
            due = partial(mixtures_due, self.trainer)
            self.online = MixedLearner(self.online, cast(AveragedOptimizer, optimizer), due)
        data.one_by_one = self.online is not None

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
            scored = self.score(batch, lattice, candidates)
            return scored, scored
        both = Candidates(*(torch.cat(pair, 1) for pair in zip(candidates, free, strict=True)))
        scored, k = self.score(batch, lattice, both), candidates.valid.shape[1]
        return some_of(scored, slice(0, k)), some_of(scored, slice(k, None))

    def _needs_gradients(self) -> bool:
        """Whether something beside the optimizer's step asks for the gradients of whole mini-batches."""
        trainer = self._trainer
        if trainer is not None and (trainer.gradient_clip_val or trainer.accumulate_grad_batches > 1):
            return True
        return self.prior is not None

    # -- sizes and names -------------------------------------------------------------------------------------

    def learn_sizes(self, data: SequenceData) -> None:
        """Take features and labels from the training data, or from the model where training starts."""
        if self.init_from is not None:
            start_from(self, self.init_from, data)
            return
        train = data.corpus("train")
        self.scorer.learn(train)
        self.features = data.learned(self.features)
        self.allocate(data.label_set())

    def check_data(self, data: SequenceData, stage: str) -> None:
        """Accept any data: a tagger has no demands beside those of `check_unit`."""

    def settle(self) -> None:
        """Do nothing: the weights are ready to be saved when training is over."""

    def further_vocabulary(self) -> dict[str, Any]:
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
