"""The re-ranker of Collins 2002: global features of candidates, ranked by boosting or by the voted perceptron."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self, cast

import torch
from pytorch_lightning.trainer.states import TrainerFn
from torch import Tensor
from torch.optim import Optimizer

from structperc.builder import Builder, describe
from structperc.chain import KBest
from structperc.criteria.base import is_allowed
from structperc.data.corpus import Corpus
from structperc.data.json_data import check_value
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import convert
from structperc.data.weights import sequence_weights
from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.encoded import EncodedCorpus
from structperc.datamodules.sampler import LengthBatchSampler
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics.counts import oracle
from structperc.models.model_format import required_entries
from structperc.nonlocal_features import CandidateSegments, GlobalFeature
from structperc.nonlocal_features.global_feature import Vocabulary, format_strings
from structperc.progress import bar
from structperc.reranking.candidate_lists import CandidateLists, Correct, ListBatch, closest_allowed
from structperc.reranking.jackknife import JackKnife
from structperc.reranking.local_score import FirstScore
from structperc.reranking.ranker import Examples, Ranker
from structperc.reranking.reranker import Reranker, RerankerRequirements
from structperc.structures import Batch, Candidates, to_device
from structperc.taggers.base import BaseTagger
from structperc.taggers.learning import TrainingMethod
from structperc.taggers.tagger import Tagger

BATCH = 64  # sequences at a time

logger = logging.getLogger("pytorch_lightning.structperc")


class GlobalRerankerRequirements(RerankerRequirements):
    """Requirements of a ranker of candidate lists for its data."""

    def check_incomplete(self, place: str) -> None:
        """Raise InputError, which begins with `place`, if the target must be the gold labels."""
        self.check_target(place)

    def check_weights(self, corpus: Corpus) -> None:
        """Raise InputError for weights within sequences, or for a ranker that does not learn from weights."""
        if not self.tagger.ranker.supports_weights:
            name = type(self.tagger.ranker).__name__
            raise InputError(f"{corpus.name}: {name} has no weights; leave weight out of data.columns")
        super().check_weights(corpus)


class GlobalReranker(Reranker):
    """A re-ranker with global features, learned by boosting or the voted perceptron. Collins 2002.

    "Ranking Algorithms for Named-Entity Extraction: Boosting and the Voted Perceptron". The total score is w0 * score
    of the first model + the weights of the global features of a candidate; with votes it is the number of weight
    vectors that prefer the candidate. The paper's first model is a maximum-entropy tagger (`MEMMLoss`); any tagger can
    be used.

    The strings of global features are collected from the training lists. Then lists, first models and features are
    fixed, and an epoch is one epoch of the ranker: a number of rounds of boosting, or one pass of the perceptron. The
    best epoch is selected on development data, as for all taggers.

    Args:
        first: The first model, without non-local features.
        ranker: Learns the weights: `Boosting` or `VotedPerceptron`.
        search: KBest(n), where n is the number of candidates in training; 20 in the paper.
        nonlocal_features: Global features, such as `WholeEntity`.
        decoder: KBest(n'), where n' is the number of candidates in inference; default: n.
        jackknife: Trains the first models.
        correct: The correct candidate if the gold labels are not in the list: "closest", that of highest segment F1;
            with "gold" such lists are ignored. With incomplete labels it must be "closest": the best allowed candidate
            of the first model, or that with the fewest labels that are not allowed.
        min_sequences: Strings that occur in the lists of fewer training sequences are ignored.

    Raises:
        InputError: The combination of parts is invalid.

    Example:
        >>> import pytorch_lightning as pl
        >>> from structperc import FeatureExtractor, Tagger
        >>> from structperc.chain import KBest
        >>> from structperc.criteria import MEMMLoss
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.scorers import SparseLinear
        >>> from structperc.nonlocal_features import WholeEntity
        >>> from structperc.reranking import Boosting
        >>> data = Synthetic(train=2, dev=0, test=0)
        >>> first = Tagger(FeatureExtractor(["w[0]"]), SparseLinear(), MEMMLoss())
        >>> plan = JackKnife(folds=2, epochs=1, cache="lists")
        >>> model = GlobalReranker(first, Boosting(rounds=5, w0=1.0), KBest(5), [WholeEntity()], jackknife=plan)
        >>> _ = model.train_first(data, enable_progress_bar=False)  # doctest: +SKIP
        >>> quiet = dict(logger=False, enable_checkpointing=False)
        >>> quiet |= dict(enable_progress_bar=False, enable_model_summary=False)
        >>> pl.Trainer(max_epochs=1, **quiet).fit(model, datamodule=data)  # doctest: +SKIP
        >>> len(model.ranker.chosen)  # rounds of boosting  # doctest: +SKIP
        5
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
            raise InputError(
                f"model.nonlocal_features: {name} is not a global feature; use features such as WholeEntity"
            )
        if min_sequences < 1:
            raise InputError(f"model.min_sequences must be >= 1, got {min_sequences}")
        parts = first, FirstScore(), ranker.criterion, search, nonlocal_features
        super().__init__(*parts, decoder=decoder, jackknife=jackknife, correct=correct)
        self.ranker, self.min_sequences = ranker, min_sequences
        self.automatic_optimization = False
        self.requirements = GlobalRerankerRequirements(self)
        self.training_method = RankerTraining(self)
        self.list_features: ListFeatures | None = None
        self.examples: Examples | None = None
        self._development: dict[int, CandidateFeatures] = {}

    @property
    def global_features(self) -> list[GlobalFeature]:
        """The non-local features of this re-ranker, all of which are global features."""
        return [cast(GlobalFeature, feature) for feature in self.nonlocal_features]

    # -- lists and their features ----------------------------------------------------------------------------

    def train_first(self, data: SequenceDataModule, **options: Any) -> dict[str, float]:
        """Train the first models, as `Reranker.train_first` does, and collect the features of their lists.

        Returns:
            The seconds by "folds", "first model" and "features".

        Raises:
            InputError: The data is unsuitable, or a lexicon is missing.
        """
        for feature in self.global_features:
            feature.collect_lexicon(data.corpus("train").columns["word"])
        seconds = super().train_first(data, **options)
        progress = options.get("enable_progress_bar") is not False  # None, as in a trainer's options, is true
        started = time.perf_counter()
        self._fit_lists(data, progress)
        return {**seconds, "features": time.perf_counter() - started}

    def _fit_lists(self, data: SequenceDataModule, progress: bool) -> None:
        """Collect the features of the training lists, and reset the ranker."""
        rows, lists = self.encode(data.corpus("train")), self.require_lists()
        self.list_features = ListFeatures(self.global_features, rows, lists, self.labels, self.device, progress)
        self.list_features.set_vocabularies(self.min_sequences)
        self.examples = self.list_features.examples(self.correct)
        if (weights := sequence_weights(data.corpus("train"))) is not None:
            self.examples = self.examples._replace(weights=torch.from_numpy(weights).double())
        state = Builder.trusting(self.ranker).part(describe(self.ranker), Ranker, "ranker").state_dict()
        weights = state["weights"].new_zeros(self.examples.n_features)
        self.ranker.load_state_dict({**state, "weights": weights})
        logger.info("global features: %d", self.examples.n_features)

    @property
    def additive(self) -> bool:
        """True for a linear ranker; votes of many weight vectors are not a sum of weights."""
        return self.ranker.linear

    def total_scores(self, batch: Batch, candidates: Candidates) -> Tensor:
        """Return the ranker's scores (B, K) float64 of candidates; -inf where not valid."""
        return self.rank(self.find_features(batch, candidates))

    def find_features(self, batch: Batch, candidates: Candidates) -> "CandidateFeatures":
        """Return the candidates of a batch with their global features."""
        segments = CandidateSegments(batch, candidates.labels, candidates.valid, self.labels)
        return CandidateFeatures(candidates, *feature_ids(self.global_features, segments))

    def rank(self, found: "CandidateFeatures") -> Tensor:
        """Return the `total_scores` (B, K) of candidates whose features are known."""
        candidates = found.candidates
        return self.ranker.total_scores(found.candidate_ids, found.ids, candidates.scores, candidates.valid)

    # -- training --------------------------------------------------------------------------------------------

    def on_fit_start(self) -> None:
        """Start the ranker with its examples, after the state of a checkpoint was restored."""
        BaseTagger.on_fit_start(self)
        if self.examples is None:
            raise InputError("no candidate lists to train on: run `structperc rerank`; in Python train_first(data)")
        self.ranker.start(self.examples)
        self._development = {}

    def new_optimizer(self) -> Optimizer:
        """Return an optimizer whose step writes the ranker's weights into the parameters."""
        return RankerOptimizer([p for p in self.parameters() if p.requires_grad], self.write_weights)

    def bind_optimizer(self, optimizer: Optimizer) -> None:
        """No-op: weights are learned by the ranker."""

    @torch.no_grad()
    def write_weights(self) -> None:
        """Write the ranker's linear model into the weights of the features and of the first score."""
        for feature, weights in zip(self.global_features, self.ranker.weights.split(self._sizes()), strict=True):
            feature.weight.copy_(weights)
        self.scorer.weight.fill_(self.ranker.first_weight)

    def decode_validation(self, batch: Batch, batch_idx: int) -> Tensor:
        """Return the best labels (B, T) int64 of a batch of development data.

        Candidates and their features are cached: they do not change during a fit.
        """
        found = self._development.get(batch_idx) or self.find_features(batch, self.decoder(self(batch)))
        if self.trainer.state.fn == TrainerFn.FITTING:
            self._development[batch_idx] = found
        rows = torch.arange(len(batch.lengths), device=self.device)
        return found.candidates.labels[rows, self.rank(found).argmax(1)]

    def on_fit_end(self) -> None:
        """Clear the cached candidates of development data."""
        self._development = {}

    # -- vocabulary, checkpoints and saved models ------------------------------------------------------------

    def finalize(self) -> None:
        """Remove strings without weights, and store the names of the others. Training cannot be resumed afterwards."""
        used = self.ranker.used_mask
        for feature, keep in zip(self.global_features, used.split(self._sizes()), strict=True):
            feature.prune(keep)
            if self.list_features is not None:
                feature.strings = self.list_features.format_strings(feature, feature.keys)
        self.ranker.prune(used)
        self.examples = self.list_features = None

    def feature_strings(self, ids: Tensor) -> Iterator[tuple[int, str]]:
        """Yield feature ids (F,), as in `CandidateFeatures`, with their strings; only during training."""
        assert self.list_features is not None
        before = 0
        for feature in self.global_features:
            own = ids[(ids >= before) & (ids < before + len(feature.keys))]
            yield from zip(
                own.tolist(), self.list_features.format_strings(feature, feature.keys[own - before]), strict=True
            )
            before += len(feature.keys)

    def _sizes(self) -> list[int]:
        return [len(feature.keys) for feature in self.global_features]

    def extra_vocabulary(self) -> dict[str, Any]:
        """Return the fingerprint of the lists and, during training, the number of strings of each feature."""
        strings = {} if self.examples is None else {"strings": self._sizes()}
        return {**super().extra_vocabulary(), **strings}

    def description(self) -> dict[str, Any]:
        """Return class and options of every part, and the names of strings."""
        strings = [feature.strings for feature in self.global_features]
        return {**super().description(), "strings": strings}

    @classmethod
    def from_description(cls, description: dict[str, Any], features: FeatureExtractor, build: Builder) -> Self:
        """Return the re-ranker, without weights and lists, of a `description`."""
        strings = required_entries(description, ["strings"])["strings"]
        check_value(strings, list[list[str] | None], "strings")
        made = super().from_description(description, features, build)
        for feature, own in zip(made.global_features, strings, strict=True):
            feature.strings = own
        return made

    def load_state_dict(self, state_dict: Mapping[str, Any], *options: Any, **more: Any) -> Any:
        """Load a state as torch does; keep the names of strings from the description."""
        names = [feature.strings for feature in self.global_features]
        result = super().load_state_dict(state_dict, *options, **more)
        if sum(self._sizes()) != len(self.ranker.weights):
            raise InputError(f"{len(self.ranker.weights)} weights of the ranker, but {sum(self._sizes())} features")
        for feature, strings in zip(self.global_features, names, strict=True):
            if strings is not None and len(strings) == len(feature.keys):
                feature.strings = strings
        return result


class RankerTraining(TrainingMethod):
    """Runs one epoch of the ranker with the last batch of each epoch; other batches are ignored."""

    tagger: GlobalReranker

    def step(self, batch: Batch, batch_idx: int) -> None:
        """Run an epoch of the ranker with the last batch, unless the ranker has stopped."""
        if self.tagger.trainer.is_last_batch:
            if not self.tagger.ranker.stop_reason:
                self.tagger.ranker.epoch()
            cast(Optimizer, self.tagger.optimizers()).step()

    def end_epoch(self) -> None:
        """Log the ranker's objective; stop training, with its reason, if the ranker has stopped."""
        ranker = self.tagger.ranker
        self.tagger.log_value("train/objective", ranker.objective, prog_bar=True)
        self.stop(ranker.stop_reason)


class RankerOptimizer(Optimizer):
    """An optimizer whose step writes the weights of a ranker into the parameters, so that trainers count epochs.

    Args:
        params: The parameters of the re-ranker.
        write: Writes the weights.
    """

    def __init__(self, params: Iterable[Tensor], write: Callable[[], None]) -> None:
        super().__init__(params, {})
        self.write = write

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Write the parameters; return the loss of the closure if there is one."""
        loss = None if closure is None else closure()
        self.write()
        return loss


class CandidateFeatures(NamedTuple):
    """The candidates of a batch and their global features, numbered over all features in turn."""

    candidates: Candidates  # with the scores of the first model
    candidate_ids: Tensor  # (N,) int64, b * K + k
    ids: Tensor  # (N,) int64


class ListFeatures:
    """Collects the global features of the candidate lists of a corpus.

    Args:
        features: Global features whose lexicons are collected; their vocabularies become the strings of the lists.
        rows: The encoded corpus.
        lists: The candidate list of each sequence of the corpus.
        labels: The label set of the lists.
        device: Device on which segments are searched.
        progress: Show progress bars.
    """

    def __init__(
        self,
        features: Sequence[GlobalFeature],
        rows: EncodedCorpus,
        lists: CandidateLists,
        labels: LabelSet,
        device: torch.device,
        progress: bool = True,
    ) -> None:
        self.features, self.rows, self.lists, self.labels = features, rows, lists, labels
        self.device, self.progress = device, progress
        self.vocabularies = [Vocabulary() for _ in features]

    def set_vocabularies(self, min_sequences: int) -> None:
        """Set the vocabularies to the strings in the lists of at least `min_sequences` sequences; weights are zero."""
        for batch, listed, segments in self._parts("collecting strings"):
            for feature, vocabulary in zip(self.features, self.vocabularies, strict=True):
                vocabulary.add(feature.occurrences(segments), batch.rows, listed.candidates.valid.shape[1])
        for feature, vocabulary in zip(self.features, self.vocabularies, strict=True):
            feature.set_vocabulary(vocabulary.keys(min_sequences))

    def examples(self, correct: Correct) -> Examples:
        """Return the ranker's examples in the order of the corpus, without features shared by a whole list."""
        parts, rows = [], []
        n_features = sum(len(feature.keys) for feature in self.features)
        for batch, listed, segments in self._parts("reading lists"):
            candidates = listed.candidates
            right, valid = compared_candidates(batch, candidates, self.labels, correct)
            found = feature_ids(self.features, segments)
            examples = Examples.from_pairs(*found, candidates.scores, valid, right, n_features)
            parts.append(examples.drop_shared())
            rows.append(batch.rows)
        return Examples.concat(parts).take(torch.cat(rows).argsort())

    def format_strings(self, feature: GlobalFeature, keys: Tensor) -> list[str]:
        """Return the strings of keys (F,) from the lists, including keys that are too rare for features."""
        vocabulary = self.vocabularies[list(self.features).index(feature)]

        def labels(row: int, k: int) -> list[str]:
            start, end = self.lists.starts[row : row + 2].tolist()
            names = self.labels.decode(self.lists.labels[start:end, k].long())
            return convert(names, "IO", "IOB2") if self.labels.scheme == "IO" else names  # features read prefixes

        return format_strings(feature, vocabulary.examples(keys), self.rows.corpus, labels, self.labels.type_names)

    def _parts(self, activity: str) -> Iterator[tuple[Batch, ListBatch, CandidateSegments]]:
        """Yield batches, their lists and the segments of the candidates, long sequences first."""
        order = LengthBatchSampler(self.rows.corpus.lengths, BATCH, shuffle=False)
        with bar(None, activity, len(self.rows), self.progress) as shown:
            for chosen in order:
                batch = to_device(self.rows[chosen], self.device)
                listed = to_device(self.lists.batch(torch.tensor(chosen)), self.device)
                candidates = listed.candidates
                yield batch, listed, CandidateSegments(batch, candidates.labels, candidates.valid, self.labels)
                shown.update(len(chosen))


def compared_candidates(
    batch: Batch, candidates: Candidates, labels: LabelSet, correct: Correct
) -> tuple[Tensor, Tensor]:
    """Return the correct candidate (B,) int64 of each list, and which candidates are compared (B, K) bool.

    If the gold labels are not in the list, the correct one is the closest, or -1 if `correct` is "gold". With
    incomplete labels it is the best allowed candidate of the first model, or that with the fewest labels that are not
    allowed; other allowed candidates are not compared with it.
    """
    assert batch.gold is not None
    valid = candidates.valid
    if batch.allowed is not None:
        closest = closest_allowed(candidates, batch.allowed)
        others = is_allowed(candidates.labels, batch.allowed).all(2).scatter(1, closest[:, None], False)
        return closest, valid & ~others
    if correct == "closest":
        return oracle(candidates, batch.gold, batch.lengths, labels, batch.sentences), valid
    golden = (candidates.labels == batch.gold.unsqueeze(1)).all(2) & valid
    return torch.where(golden.any(1), golden.byte().argmax(1), -1), valid


def feature_ids(features: Sequence[GlobalFeature], segments: CandidateSegments) -> tuple[Tensor, Tensor]:
    """Return candidates b * K + k (N,) and their features (N,), numbered over all features in turn."""
    candidate_ids, ids, before = [], [], 0
    for feature in features:
        who, what = feature.feature_ids(segments)
        candidate_ids.append(who)
        ids.append(what + before)
        before += len(feature.keys)
    return torch.cat(candidate_ids), torch.cat(ids)
