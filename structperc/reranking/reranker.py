"""The re-ranker: a first model lists candidates, a second model with non-local features chooses among them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pytorch_lightning.utilities import move_data_to_device
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from structperc.builder import Builder
from structperc.chain import KBest
from structperc.criteria import Criterion
from structperc.data.labels import LabelSet
from structperc.datamodules.base import SequenceDataModule
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import NonlocalFeature, nonlocal_scores
from structperc.optim import Perceptron
from structperc.reranking.jackknife import JackKnife
from structperc.reranking.list_features import Correct
from structperc.reranking.local_score import LocalScore
from structperc.reranking.second_model import FirstLattice, SecondModel
from structperc.structures import Batch, Candidates, Scored
from structperc.taggers.learning import LossTagger
from structperc.taggers.model_format import required_entries
from structperc.taggers.serialization import described
from structperc.taggers.tagger import Tagger


class Reranker(LossTagger, SecondModel):
    """Re-ranking 1 and 2 of Kazama & Torisawa 2007, §6.3: a tagger whose candidates are those of another one.

    total score = local score (`scorer`) + non-local score, compared among the candidates of the first model alone.

    Args:
        first: the first model, of local features.
        scorer: the local score: `FirstScore` (re-ranking 1), `LocalFeatures` (re-ranking 2) or a
            `LocalSum` of both.
        criterion: compares gold with the candidates of a list; the paper: Margin.
        search: its k is n, the number of candidates in training.
        nonlocal_features: what is counted in whole labellings.
        optimizer: made for the parameters of the second model.
        decoder: its k is n', the number of candidates everywhere else; by default n.
        jackknife: how the first models are trained.
        correct: what rivals are compared with where gold is not in the list: "closest", the candidate of highest
            segment F1 (Collins 2002, Ranking Algorithms for Named-Entity Extraction), or "gold" all the same. As gold
            is outside of a list because the first model scores it low, "gold" teaches re-ranking 1 to distrust that
            score.
        lr_scheduler: changes the optimizer's learning rates after steps or epochs.

    Raises:
        InputError: parts that make no re-ranker.
    """

    saved_parts = Tagger.saved_parts
    scorer: LocalScore

    def __init__(
        self,
        first: Tagger,
        scorer: LocalScore,
        criterion: Criterion,
        search: KBest,
        nonlocal_features: Sequence[NonlocalFeature],
        optimizer: Callable[[Iterable[Any]], Optimizer] = Perceptron,
        decoder: KBest | None = None,
        jackknife: JackKnife | None = None,
        correct: Correct = "closest",
        lr_scheduler: Callable[[Optimizer], LRScheduler] | None = None,
    ) -> None:
        super().__init__(first, scorer, criterion, search, nonlocal_features, decoder, jackknife, correct)
        self.optimizer, self.lr_scheduler, self.prior = optimizer, lr_scheduler, None
        self.start_sums()

    def make_scoring(self) -> "ListScores":
        """Return the second model's scores of the first model's lists."""
        self.fix_first()
        features = [feature for feature in self.nonlocal_features if isinstance(feature, NonlocalFeature)]
        return ListScores(self.first, self.scorer, self.labels, features)

    # -- the architecture ------------------------------------------------------------------------------------

    def score_batch(self, batch: Batch, candidates: Candidates | None = None) -> Scored:
        """Return the correct labellings and the candidates of the lists of a batch, which are always given."""
        assert self.lists is not None
        return self.score_list(batch, move_data_to_device(self.lists.cut(batch.rows.cpu()), self.device))

    def without_cost(self, batch: Batch, score_batch: Scored) -> Scored:
        """Return what is given: lists are searched without a cost."""
        return score_batch

    def new_optimizer(self) -> Optimizer:
        """Return an optimizer over the second model's parameters."""
        return self.optimizer([p for p in self.parameters() if p.requires_grad])

    def bind_optimizer(self, optimizer: Optimizer, data: SequenceDataModule) -> None:
        """Do nothing: the lists of candidates are learned by gradients, whatever the optimizer."""

    # -- what lists teach beside weights ---------------------------------------------------------------------

    def read_text(self, data: SequenceDataModule) -> None:
        """Do nothing: such a second model learns nothing from text."""

    def read_lists(self, data: SequenceDataModule, progress: bool) -> dict[str, float]:
        """Return no times: nothing is read off the lists before training."""
        return {}

    def numbered_features(self) -> dict[str, Any]:
        """Return nothing: no features are numbered by what the lists hold."""
        return {}

    def finalize(self) -> None:
        """Do nothing: the weights are ready to be saved when training is over."""

    # -- saved models ----------------------------------------------------------------------------------------

    def description(self) -> dict[str, Any]:
        """Return class and options of every part of both models, as plain JSON types."""
        own = {part: described(getattr(self, part)) for part in self.saved_parts}
        return {**own, "first": self.first.description()}

    @classmethod
    def from_description(cls, description: dict[str, Any], features: FeatureExtractor, build: Builder) -> "Reranker":
        """Return the re-ranker, without weights and lists, that `description` described."""
        first = Tagger.from_description(required_entries(description, ["first"])["first"], features, build)
        return cls(first, **build.options(cls, required_entries(description, cls.saved_parts), "model"))


class ListScores(FirstLattice):
    """The candidates of a first model: total score = the second model's local score + non-local scores.

    Args:
        first: the first model.
        scorer: the second model's local score.
        labels: the labels of both.
        nonlocal_features: what is counted in whole labellings.
    """

    def __init__(
        self, first: Tagger, scorer: LocalScore, labels: LabelSet, nonlocal_features: Iterable[NonlocalFeature]
    ) -> None:
        super().__init__(first, scorer, labels)
        self.nonlocal_features = list(nonlocal_features)

    @property
    def additive(self) -> bool:
        """True: the local score and the non-local scores are both sums of weights."""
        return True

    def total_scores(self, batch: Batch, candidates: Candidates) -> Tensor:
        """Return the total scores (B, K) of candidates, in their order; -inf where not valid."""
        more = nonlocal_scores(self.nonlocal_features, batch, candidates.labels, candidates.valid, self.labels)
        return self.local_candidates(batch, candidates).scores + more
