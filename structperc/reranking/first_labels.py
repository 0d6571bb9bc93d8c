"""The labels of a first model as an attribute for templates."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import torch

from structperc.builder import Builder
from structperc.constructors import CLASS, OPTIONS, STATE, class_path_of
from structperc.data.corpus import Corpus, Factorized, factorize
from structperc.data.json_data import check_value
from structperc.data.scheme_detection import legal_schemes
from structperc.datamodules.distributed import process_group
from structperc.errors import InputError, errors_at
from structperc.features import DocumentAttribute
from structperc.features.documents import DocumentExtent, Lookup, PartBuilder
from structperc.reranking.jackknife import JackKnife, TrainingPart, corpus_digest, untrained_description
from structperc.taggers.tagger import Tagger

TRAINING = "training_labels"  # the entry of a saved model for the labels of its training data


class FirstLabels(DocumentAttribute):
    """The labels of a first model as an attribute: stacked, or two-stage, models (Krishnan & Manning 2006).

    Templates use the labels directly, and `TokenMajority`, `EntityMajority` and `SuperentityMajority` count them. In
    the training data each document is labelled by a first model that was trained without it; other text is labelled by
    a first model that was trained on all documents, see `JackKnife`. The first model is saved with the model that uses
    it, together with the labels of the training data, so that another training on the same data can start from that
    model.

    Args:
        first: The first model, without non-local features. None: that of a saved model.
        jackknife: Trains and caches the first models.
        batch_size: Number of sequences per training step, as in the data section of a configuration.
        seed: Seed of the order of the training data.

    Raises:
        InputError: The first model has non-local features or `init_from`, or a number is too small.

    Example:
        >>> from structperc import FeatureExtractor, Tagger
        >>> from structperc.criteria import PerceptronLoss
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.scorers import SparseLinear
        >>> corpus = Synthetic(train=2, dev=0, test=0).corpus("train")
        >>> first = Tagger(FeatureExtractor(["w[0]"]), SparseLinear(), PerceptronLoss())
        >>> attribute = FirstLabels(first, JackKnife(folds=2, epochs=1, cache="lists"))
        >>> features = FeatureExtractor(["w[0]", "first[0]", "first[1]"], documents={"first": attribute})
        >>> features.fit(corpus)  # doctest: +SKIP
        >>> [name for name in features.index.names("node") if "first[0]" in name][:3]  # doctest: +SKIP
        ['first[0]=O', 'first[0]=B-ORG', 'first[0]=I-ORG']
    """

    def __init__(
        self,
        first: Tagger | None = None,
        jackknife: JackKnife | None = None,
        batch_size: int | None = None,
        seed: int = 1,
    ) -> None:
        if first is not None and (len(first.nonlocal_features) or first.init_from is not None):
            raise InputError("FirstLabels: the first model must have no nonlocal_features and no init_from")
        TrainingPart(Corpus.from_sentences([]), batch_size=batch_size, seed=seed)  # checks the numbers
        self.first, self.jackknife = first, jackknife or JackKnife()
        self.batch_size, self.seed = batch_size, seed
        self.attributes = () if first is None else tuple(first.columns)
        self.within = _within(first)
        self._training: tuple[Corpus, list[str]] | None = None  # the training data and its labels
        self._last: tuple[Corpus, Tagger, Factorized] | None = None  # the last labels; templates and scorers read them
        self._saved: _TrainingLabels | None = None  # the same labels in a saved model

    def fit(self, corpus: Corpus) -> Self:
        """Return a copy with first models that are trained on a corpus, or loaded from the cache.

        Raises:
            InputError: The corpus has no labels, or fewer documents than folds; there are several processes; or there
                is no first model.
        """
        if self.first is None:
            raise InputError("FirstLabels: missing first model to train; set first")
        if "label" not in corpus.columns:
            raise InputError(f"{corpus.name}: missing gold labels for training a first model")
        if process_group().size > 1:
            raise InputError("FirstLabels: several processes cannot train first models: set trainer.devices: 1")
        whole = len(corpus) == len(corpus.sentences) - 1
        fitting: Iterable[Any] = legal_schemes(corpus.sentences_of(corpus.columns["label"]))
        data = TrainingPart(
            corpus,
            unit="sentence" if whole else "document",
            scheme=next(iter(fitting), "none"),
            batch_size=self.batch_size,
            seed=self.seed,
        )
        models = self.jackknife(self.first, data, 1)
        known = copy.copy(self)
        known.first = models.tagger
        labels = models.lists.labels[:, 0].contiguous().numpy()
        known._saved = _TrainingLabels(_digest(corpus, known._roles), labels)
        known._training = corpus, models.tagger.labels.decode(labels)
        return known

    def transform(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the label of each token.

        Raises:
            InputError: The first model is not trained.
        """
        if self.first is None or not self.first.fitted:
            raise InputError("FirstLabels: the first model is not trained; fit the features first")
        if self._training is not None and corpus is self._training[0]:
            return factorize(self._training[1])
        last = self._last
        if last is None or last[0] is not corpus or last[1] is not self.first:
            sequences = corpus.by_sentence() if self.first.unit == "sentence" else corpus  # the unit of its training
            self._last = last = corpus, self.first, factorize(self.first.predict(sequences).labels)
        return last[2]

    def resume_fit(self, corpus: Corpus) -> Self:
        """Return a copy with the saved labels of the training data.

        Raises:
            InputError: The training data are different, or the model has no saved labels.
        """
        if self._saved is None or self.first is None:
            raise InputError("the model has no saved labels of its training data; train it again")
        if _digest(corpus, self._roles) != self._saved.digest:
            raise InputError(
                f"{corpus.name} is not the training data of its first model (expected {len(self._saved.labels):,} "
                f"tokens, got {corpus.tokens:,}); use the same training data, or remove model.init_from"
            )
        known = copy.copy(self)
        known._training = corpus, self.first.labels.decode(self._saved.labels.tolist())
        return known

    @property
    def _roles(self) -> list[str]:
        """The columns of training data that determine the labels of first models."""
        return [*self.attributes, "label"]

    # -- saved models ----------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the trained first model, or its configuration before training."""
        entry = {CLASS: class_path_of(type(self)), OPTIONS: {}}
        if self.first is None or not self.first.fitted:
            untrained = self.first and [untrained_description(self.first), self.first.features.state_dict_json()]
            return {**entry, OPTIONS: {"first": untrained, "batch_size": self.batch_size, "seed": self.seed}}
        learned = self.first.to_state()[0]
        return {**entry, STATE: learned if self._saved is None else {**learned, TRAINING: self._saved.digest}}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return weights and features of the trained first model, and the labels of the training data."""
        if self.first is None or not self.first.fitted:
            return {}
        arrays = {name: tensor.numpy() for name, tensor in self.first.to_state()[1].items()}
        return arrays if self._saved is None else {**arrays, TRAINING: self._saved.labels}

    def load_state(self, learned: Any, arrays: Mapping[str, np.ndarray], build: PartBuilder, place: str) -> None:
        """Load the first model and the labels of its training data.

        Raises:
            InputError: A value is invalid.
        """
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items() if name != TRAINING}
        with errors_at(place):
            check_value(learned, dict[str, Any], STATE)
            self.first = Tagger.from_state(learned, tensors, Builder(build.trusted))
            self._saved = _check_training_labels(learned.get(TRAINING), arrays.get(TRAINING), len(self.first.labels))
        self.attributes = tuple(self.first.columns)
        self.within = _within(self.first)


class _TrainingLabels(NamedTuple):
    """The labels of the training data, each document by a first model that was trained without it."""

    digest: str  # checksum of the training data
    labels: np.ndarray  # (N,) integers, ids of the first model's labels


def _check_training_labels(digest: Any, labels: np.ndarray | None, L: int) -> _TrainingLabels | None:
    """Return the labels of the training data in a saved model; None for a model without any."""
    if digest is None and labels is None:
        return None
    check_value(digest, str, TRAINING)
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise InputError(f"{TRAINING} must have one integer for each token")
    if not 0 <= labels.min(initial=0) <= labels.max(initial=0) < L:
        raise InputError(f"{TRAINING}: labels must be in 0..{L - 1}")
    return _TrainingLabels(digest, labels)


def _digest(corpus: Corpus, roles: Iterable[str]) -> str:
    """Return a checksum of columns of a corpus that is the same for sequences of sentences and of documents."""
    documents = np.repeat(corpus.documents, corpus.lengths)
    return corpus_digest(corpus, roles, [corpus.sentences, np.flatnonzero(np.diff(documents))])


def _within(first: Tagger | None) -> DocumentExtent:
    """Return the extent of text that determines the labels of a first model."""
    return "corpus" if first is not None and first.features.extent == "corpus" else "document"
