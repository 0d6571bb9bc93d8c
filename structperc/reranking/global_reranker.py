"""The re-ranker of Collins 2002: global features of candidates, ranked by boosting or by the voted perceptron."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, cast

import torch
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor
from torch.optim import Optimizer

from structperc.builder import Builder
from structperc.chain import KBest
from structperc.data.json_data import check_value
from structperc.datamodules.base import SequenceDataModule
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import GlobalFeature, find_segments
from structperc.reranking.examples import Examples
from structperc.reranking.jackknife import JackKnife
from structperc.reranking.list_features import Found, ListFeatures, numbered
from structperc.reranking.lists import Correct
from structperc.reranking.local_score import FirstScore
from structperc.reranking.ranker import Ranker
from structperc.reranking.second_model import SecondModel
from structperc.structures import Batch, Candidates
from structperc.taggers.learning import TrainingMethod
from structperc.taggers.model_format import required_entries
from structperc.taggers.saving import describe, described
from structperc.taggers.tagger import Tagger

logger = logging.getLogger("pytorch_lightning.structperc")


class GlobalReranker(SecondModel):
    """Boosting and the voted perceptron over the n best of a first model; Collins 2002.

    total score = w0 * first model's score + weights of the global features that a candidate has, or with votes the
    number of weight vectors that prefer the candidate. "Ranking Algorithms for Named-Entity Extraction: Boosting and
    the Voted Perceptron". The paper's first model is a maximum-entropy tagger (`MEMMLoss`); any tagger will do.

    The strings that features look for are read off the training lists; lists, first models and features then stay as
    they are, and an epoch is the ranker's: so many rounds of boosting, or one pass of the perceptron. Which epoch is
    kept is decided on development data, as of all taggers.

    Args:
        first: the first model, of local features.
        ranker: learns the weights: `Boosting` or `VotedPerceptron`.
        search: its k is n, the number of candidates in training; the paper: 20.
        nonlocal_features: global features, such as `WholeEntity`.
        decoder: its k is the number of candidates everywhere else; by default n.
        jackknife: how the first models are trained.
        correct: which candidate is right where gold is not in the list: "closest", that of highest segment F1, or
            "gold", none: such lists are left out.
        min_sequences: strings that fewer training sequences have in their lists are no features.

    Raises:
        InputError: parts that make no re-ranker.
    """

    saved_parts: ClassVar[tuple[str, ...]] = ("ranker", "search", "decoder", "nonlocal_features")
    uses_candidate_lists = True
    scorer: FirstScore

    def __init__(
        self,
        first: Tagger,
        ranker: Ranker,
        search: KBest,
        nonlocal_features: Sequence[GlobalFeature],
        decoder: KBest | None = None,
        jackknife: JackKnife | None = None,
        correct: Correct = "closest",
        min_sequences: int = 2,
    ) -> None:
        if others := [f for f in nonlocal_features if not isinstance(f, GlobalFeature)]:
            name = type(others[0]).__name__
            raise InputError(f"model.nonlocal_features: {name} counts, a ranker needs global features like WholeEntity")
        if min_sequences < 1:
            raise InputError(f"model.min_sequences must be >= 1, got {min_sequences}")
        super().__init__(
            first,
            FirstScore(),
            ranker.criterion,
            search,
            nonlocal_features,
            decoder=decoder,
            jackknife=jackknife,
            correct=correct,
        )
        self.ranker, self.min_sequences = ranker, min_sequences
        self.automatic_optimization = False
        self.training_method = RankerTraining(self)
        self.list_features: ListFeatures | None = None
        self.examples: Examples | None = None
        self._development: dict[int, Found] = {}

    @property
    def global_features(self) -> list[GlobalFeature]:
        """The non-local features of this re-ranker, all of which are global features."""
        return [cast(GlobalFeature, feature) for feature in self.nonlocal_features]

    # -- lists and their features ----------------------------------------------------------------------------

    def read_text(self, data: SequenceDataModule) -> None:
        """Let features learn from the training text what they ask about words.

        Raises InputError for missing lexicons.
        """
        for feature in self.global_features:
            feature.read(data.corpus("train").columns["word"])

    def read_lists(self, data: SequenceDataModule, progress: bool) -> dict[str, float]:
        """Read the features of the training lists; return the seconds that this took, as "features"."""
        started = time.perf_counter()
        assert self.lists is not None
        rows = self.encode(data.corpus("train"))
        self.list_features = ListFeatures(self.global_features, rows, self.lists, self.labels, self.device, progress)
        self.list_features.learn(self.min_sequences)
        self.examples = self.list_features.examples(self.correct)
        self._forget(self.examples.n_features)
        logger.info("global features: %d", self.examples.n_features)
        return {"features": time.perf_counter() - started}

    def _forget(self, n_features: int) -> None:
        """Leave the ranker as it was made, with so many weights, all zero."""
        state = Builder.like(self.ranker).part(describe(self.ranker), Ranker, "ranker").state_dict()
        self.ranker.load_state_dict({**state, "weights": state["weights"].new_zeros(n_features)})

    @property
    def additive(self) -> bool:
        """Whether the ranker is linear; votes of many weight vectors are no sum of weights."""
        return self.ranker.linear

    def total_scores(self, batch: Batch, candidates: Candidates) -> Tensor:
        """Return the ranker's scores (B, K) float64 of candidates; -inf where not valid."""
        return self.rank(self.found(batch, candidates))

    def found(self, batch: Batch, candidates: Candidates) -> Found:
        """Return the candidates of a batch with the global features they have."""
        segments = find_segments(batch, candidates.labels, candidates.valid, self.labels)
        return Found(candidates, *numbered(self.global_features, segments))

    def rank(self, found: Found) -> Tensor:
        """Return what `total_scores` returns, for candidates whose features are known."""
        candidates = found.candidates
        return self.ranker.total_scores(found.labellings, found.ids, candidates.scores, candidates.valid)

    # -- training --------------------------------------------------------------------------------------------

    def on_fit_start(self) -> None:
        """Give the lists to the ranker, after the state of a checkpoint was restored."""
        if self.examples is None:
            raise InputError("no candidate lists to train on: run `structperc rerank`; in Python train_first(data)")
        self.ranker.start(self.examples)
        self._development = {}

    def new_optimizer(self) -> Optimizer:
        """Return an optimizer whose step writes what the ranker has learned into the parameters."""
        return BatchResult([p for p in self.parameters() if p.requires_grad], self.publish)

    def bind_optimizer(self, optimizer: Optimizer) -> None:
        """Do nothing: the ranker learns."""

    @torch.no_grad()
    def publish(self) -> None:
        """Write the ranker's linear model into the weights of features and first score."""
        for feature, weights in zip(self.global_features, self.ranker.weights.split(self._sizes()), strict=True):
            feature.weight.copy_(weights)
        self.scorer.weight.fill_(self.ranker.first_weight)

    def decode_validation(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the best labels (B, T) int64 of a batch of development data.

        Its candidates and their features stay the same during a fit, so they are found once and kept.
        """
        found = self._development.get(batch_idx) or self.found(batch, self.decoder(self(batch)))
        if self.trainer.state.fn == TrainerFn.FITTING:
            self._development[batch_idx] = found
        rows = torch.arange(len(batch.lengths), device=self.device)
        return found.candidates.labels[rows, self.rank(found).argmax(1)]

    def on_fit_end(self) -> None:
        """Drop the candidates of development data, which are no longer needed."""
        self._development = {}

    # -- checkpoints and saved models ------------------------------------------------------------------------

    def finalize(self) -> None:
        """Forget strings that no weight vector has, and spell the others. Training cannot go on after that."""
        used = self.ranker.used
        for feature, keep in zip(self.global_features, used.split(self._sizes()), strict=True):
            feature.prune(keep)
            if self.list_features is not None:
                feature.strings = self.list_features.spell(feature, feature.keys)
        self.ranker.prune(used)
        self.examples = self.list_features = None

    def spelled(self, ids: Tensor) -> Iterator[tuple[int, str]]:
        """Yield each number of ids (F,), counted over all features as in `Found`, with the string that it stands for.

        This works in training alone, while the lists are there.
        """
        assert self.list_features is not None
        before = 0
        for feature in self.global_features:
            own = ids[(ids >= before) & (ids < before + len(feature.keys))]
            yield from zip(own.tolist(), self.list_features.spell(feature, feature.keys[own - before]), strict=True)
            before += len(feature.keys)

    def _sizes(self) -> list[int]:
        return [len(feature.keys) for feature in self.global_features]

    def numbered_features(self) -> dict[str, Any]:
        """Return, in training, how many strings each feature has, as "strings"; else nothing."""
        return {} if self.examples is None else {"strings": self._sizes()}

    def description(self) -> dict[str, Any]:
        """Return class and options of every part, and the names of strings."""
        return {
            **{part: described(getattr(self, part)) for part in self.saved_parts},
            "strings": [feature.strings for feature in self.global_features],
            "first": self.first.description(),
        }

    @classmethod
    def from_description(
        cls, description: dict[str, Any], features: FeatureExtractor, build: Builder
    ) -> "GlobalReranker":
        """Return the re-ranker, without weights and lists, that `description` described."""
        given = required_entries(description, ("first", "strings"))
        check_value(given["strings"], list[list[str] | None], "strings")
        made = cls(
            Tagger.from_description(given["first"], features, build),
            **build.options(cls, required_entries(description, cls.saved_parts), "model"),
        )
        for feature, strings in zip(made.global_features, given["strings"], strict=True):
            feature.strings = strings
        return made

    def load_state_dict(self, state_dict: Mapping[str, Any], *options: Any, **more: Any) -> Any:
        """Load a state as torch does.

        The names of strings from the description are kept for the strings that it holds.
        """
        names = [feature.strings for feature in self.global_features]
        result = super().load_state_dict(state_dict, *options, **more)
        if sum(self._sizes()) != len(self.ranker.weights):
            raise InputError(f"{len(self.ranker.weights)} weights of the ranker, but {sum(self._sizes())} features")
        for feature, strings in zip(self.global_features, names, strict=True):
            if strings is not None and len(strings) == len(feature.keys):
                feature.strings = strings
        return result


class RankerTraining(TrainingMethod):
    """An epoch of the ranker with the last batch of each epoch; batches are not learned."""

    tagger: GlobalReranker

    def step(self, batch: Batch, batch_idx: int) -> None:
        """Let the ranker do its epoch with the last batch; a run that had ended may be resumed."""
        if self.tagger.trainer.is_last_batch:
            if not self.tagger.ranker.finished:
                self.tagger.ranker.epoch()
            cast(Optimizer, self.tagger.optimizers()).step()

    def end_epoch(self) -> None:
        """Log the ranker's objective; stop, with its reason, when the ranker has finished."""
        ranker = self.tagger.ranker
        self.tagger.log("train/objective", ranker.objective, prog_bar=True)
        self.stop(ranker.finished)


class BatchResult(Optimizer):
    """An optimizer that computes no update: its step writes what was learned elsewhere into the parameters.

    Args:
        params: the parameters.
        publish: writes them.
    """

    def __init__(self, params: Iterable[Tensor], publish: Callable[[], None]) -> None:
        super().__init__(params, {})
        self.publish = publish

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Write the parameters; return what the closure gives, if there is one."""
        loss = None if closure is None else closure()
        self.publish()
        return loss
