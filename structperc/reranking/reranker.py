"""The re-ranker: a first model lists candidates, a second model with non-local features chooses among them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pytorch_lightning.utilities import move_data_to_device
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from structperc.builder import Builder
from structperc.chain import KBest
from structperc.criteria import Criterion
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import NonlocalFeature
from structperc.optim import Perceptron
from structperc.reranking.jackknife import JackKnife
from structperc.reranking.lists import Correct
from structperc.reranking.local_score import LocalScore
from structperc.reranking.second_model import SecondModel
from structperc.structures import Batch, Candidates, Scored
from structperc.taggers.model_format import required_entries
from structperc.taggers.saving import described
from structperc.taggers.tagger import Tagger


class Reranker(SecondModel):
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
        super().__init__(
            first, scorer, criterion, search, nonlocal_features, decoder, jackknife, correct, optimizer, lr_scheduler
        )

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
