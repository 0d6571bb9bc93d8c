"""The re-ranker of Collins 2002: global features of candidates, ranked by boosting or by the voted perceptron."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, cast

import torch
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor
from torch.optim import Optimizer

from structperc.batching.sequence_data import SequenceData
from structperc.chain import KBest
from structperc.data.typed import check_value
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import GlobalFeature, find_segments
from structperc.reranking.examples import Examples
from structperc.reranking.jackknife import JackKnife
from structperc.reranking.list_features import Correct, ListFeatures, numbered
from structperc.reranking.local_score import FirstScore
from structperc.reranking.ranker import Ranker
from structperc.reranking.reranker import Reranker
from structperc.structures import Batch, Candidates
from structperc.taggers.builder import Builder, entries
from structperc.taggers.description import describe, described
from structperc.taggers.tagger import Tagger

logger = logging.getLogger("pytorch_lightning.structperc")


class Found(NamedTuple):
    """Candidates of a batch and the global features they have, numbered over all features one after the other."""

    candidates: Candidates  # scores are the first model's
    labellings: Tensor  # (N,) int64, b * K + k
    ids: Tensor  # (N,) int64


class GlobalReranker(Reranker):
    """Boosting and the voted perceptron over the n best of a first model; Collins 2002.

    total score = w0 * first model's score + weights of the global features that a candidate has, or with votes the
    number of weight vectors that prefer the candidate. "Ranking Algorithms for Named-Entity Extraction: Boosting and
    the Voted Perceptron". The paper's first model is a maximum-entropy tagger (`LocalLikelihood`); any tagger will do.

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
    reads_lists = True

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
        self.list_features: ListFeatures | None = None
        self.examples: Examples | None = None
        self._development: dict[int, Found] = {}

    @property
    def global_features(self) -> list[GlobalFeature]:
        """The features, as what they are."""
        return [cast(GlobalFeature, feature) for feature in self.nonlocal_features]

    # -- lists and their features ----------------------------------------------------------------------------

    def train_first(self, data: SequenceData, **options: Any) -> dict[str, float]:
        """As of every re-ranker, then read the features of the lists; seconds of that are "features"."""
        for feature in self.global_features:
            feature.read(data.corpus("train").columns["word"])  # files of lexicons may be missing
        seconds = super().train_first(data, **options)
        started = time.perf_counter()
        assert self.lists is not None
        progress = options.get("enable_progress_bar") is not False  # which may be None, as in a trainer's options
        rows = self.encode(data.corpus("train"))
        self.list_features = ListFeatures(self.global_features, rows, self.lists, self.labels, self.device, progress)
        self.list_features.learn(self.min_sequences)
        self.examples = self.list_features.examples(self.correct)
        self._forget(self.examples.n_features)
        logger.info("global features: %d", self.examples.n_features)
        return {**seconds, "features": time.perf_counter() - started}

    def _forget(self, n_features: int) -> None:
        """Leave the ranker as it was made, with so many weights, all zero."""
        state = Builder.like(self.ranker).part(describe(self.ranker), Ranker, "ranker").state_dict()
        self.ranker.load_state_dict({**state, "weights": state["weights"].new_zeros(n_features)})

    # -- the architecture ------------------------------------------------------------------------------------

    def found(self, batch: Batch, candidates: Candidates) -> Found:
        """The global features of the first model's candidates of a batch."""
        segments = find_segments(batch, candidates.labels, candidates.valid, self.labels)
        return Found(candidates, *numbered(self.global_features, segments))

    def totals(self, batch: Batch, candidates: Candidates) -> Tensor:
        """-> (B, K) float64, as the ranker scores candidates; -inf where not valid."""
        return self._rank(self.found(batch, candidates))

    def _rank(self, found: Found) -> Tensor:
        candidates = found.candidates
        return self.ranker.totals(found.labellings, found.ids, candidates.scores, candidates.valid)

    @property
    def additive(self) -> bool:
        """Not where weight vectors vote."""
        return self.ranker.linear

    # -- training --------------------------------------------------------------------------------------------

    def on_fit_start(self) -> None:
        """The ranker gets the lists, after the state of a checkpoint was restored."""
        if self.examples is None:
            raise InputError("no candidate lists to train on: run `structperc rerank`; in Python train_first(data)")
        self.ranker.start(self.examples)
        self._development = {}

    def training_step(self, batch: Batch, batch_idx: int = 0) -> None:  # type: ignore[override]
        """An epoch is the ranker's own work, done with the last batch; a run that had ended may be resumed."""
        if self.trainer.is_last_batch:
            if not self.ranker.finished:
                self.ranker.epoch()
            cast(Optimizer, self.optimizers()).step()

    def configure_optimizers(self) -> Optimizer:
        """Its step shows in the parameters what the ranker has learned."""
        return Learned([p for p in self.parameters() if p.requires_grad], self.publish)

    @torch.no_grad()
    def publish(self) -> None:
        """Write the ranker's linear model into the weights of features and first score."""
        for feature, weights in zip(self.global_features, self.ranker.weights.split(self._sizes()), strict=True):
            feature.weight.copy_(weights)
        cast(FirstScore, self.scorer).weight.fill_(self.ranker.first_weight)

    def on_train_epoch_end(self) -> None:
        """Logs the ranker's objective; stops when the ranker has finished, and says why."""
        self.log("train/objective", self.ranker.objective, prog_bar=True)
        if self.ranker.finished:
            logger.info("epoch %d: %s", self.current_epoch + 1, self.ranker.finished)
            self.trainer.should_stop = True

    def validation_step(self, batch: Batch, batch_idx: int = 0) -> None:
        """Counts for the scores. In a fit candidates and what they have stay the same, and are found once."""
        found = self._development.get(batch_idx) or self.found(batch, self.decoder(self(batch)))
        if self.trainer.state.fn == TrainerFn.FITTING:
            self._development[batch_idx] = found
        rows = torch.arange(len(batch.lengths), device=self.device)
        best = found.candidates.labels[rows, self._rank(found).argmax(1)]
        self.evaluation.update(best, batch.gold, batch.lengths, batch.sentences)

    def on_fit_end(self) -> None:
        """Development data are no longer needed."""
        self._development = {}

    # -- checkpoints and saved models ------------------------------------------------------------------------

    def settle(self) -> None:
        """Forget strings that no weight vector has, and spell the others. Training cannot go on after that."""
        used = self.ranker.used
        for feature, keep in zip(self.global_features, used.split(self._sizes()), strict=True):
            feature.prune(keep)
            if self.list_features is not None:
                feature.strings = self.list_features.spell(feature, feature.keys)
        self.ranker.prune(used)
        self.examples = self.list_features = None

    def spelled(self, ids: Tensor) -> Iterator[tuple[int, str]]:
        """Numbers (F,) over all features, as in `Found` -> each with its string; of a re-ranker in training."""
        assert self.list_features is not None
        before = 0
        for feature in self.global_features:
            own = ids[(ids >= before) & (ids < before + len(feature.keys))]
            yield from zip(own.tolist(), self.list_features.spell(feature, feature.keys[own - before]), strict=True)
            before += len(feature.keys)

    def _sizes(self) -> list[int]:
        return [len(feature.keys) for feature in self.global_features]

    def vocabulary(self) -> dict[str, Any]:
        """As of re-rankers; in training also how many strings each feature has."""
        strings = {} if self.examples is None else {"strings": self._sizes()}
        return {**super().vocabulary(), **strings}

    def description(self) -> dict[str, Any]:
        """Class and options of every part, and the names of strings."""
        return {
            **{part: described(getattr(self, part)) for part in self.saved_parts},
            "strings": [feature.strings for feature in self.global_features],
            "first": self.first.description(),
        }

    @classmethod
    def from_description(
        cls, description: dict[str, Any], features: FeatureExtractor, build: Builder
    ) -> "GlobalReranker":
        """The re-ranker, without weights and lists, that `description` described."""
        given = entries(description, ("first", "strings"))
        check_value(given["strings"], list[list[str] | None], "strings")
        made = cls(
            Tagger.from_description(given["first"], features, build),
            **build.options(cls, entries(description, cls.saved_parts), "model"),
        )
        for feature, strings in zip(made.global_features, given["strings"], strict=True):
            feature.strings = strings
        return made

    def load_state_dict(self, state_dict: Mapping[str, Any], *options: Any, **more: Any) -> Any:
        """As torch's. Names that came with the description are those of the strings that come now."""
        names = [feature.strings for feature in self.global_features]
        result = super().load_state_dict(state_dict, *options, **more)
        if sum(self._sizes()) != len(self.ranker.weights):
            raise InputError(f"{len(self.ranker.weights)} weights of the ranker, but {sum(self._sizes())} features")
        for feature, strings in zip(self.global_features, names, strict=True):
            if strings is not None and len(strings) == len(feature.keys):
                feature.strings = strings
        return result


class Learned(Optimizer):
    """Moves nothing by itself: a step has what was learned elsewhere written into the parameters.

    Args:
        params: the parameters.
        publish: writes them.
    """

    def __init__(self, params: Iterable[Tensor], publish: Callable[[], None]) -> None:
        super().__init__(params, {})
        self.publish = publish

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Write the parameters; -> what the closure gives, if there is one."""
        loss = None if closure is None else closure()
        self.publish()
        return loss
