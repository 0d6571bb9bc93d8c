"""The labels of a first model as an attribute for the templates of a second one."""

import copy
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import torch

from structperc.builder import Builder
from structperc.constructors import CLASS, LEARNED, OPTIONS, class_path_of
from structperc.data.corpus import Corpus, Factorized, factorize
from structperc.data.json_data import check_value
from structperc.data.scheme_detection import legal_schemes
from structperc.data.tag_schemes import Scheme
from structperc.datamodules.distributed import share
from structperc.errors import InputError
from structperc.features import DocumentAttribute
from structperc.features.documents import Extent, Lookup, PartBuilder
from structperc.reranking.jackknife import JackKnife, TrainingPart
from structperc.reranking.list_cache import unlearned_description
from structperc.taggers.tagger import Tagger

TRAINING = "training_labels"  # the entry of a saved model for the labels of its training data


class FirstLabels(DocumentAttribute):
    """The label that a first model gives each token: stacked, or two-stage, models (Krishnan & Manning 2006).

    Templates have it as it stands, and `TokenMajority`, `EntityMajority` and `SuperentityMajority` count it. The
    training data are labelled by first models that have not seen their documents, all other text by one that was
    trained on all of them, see `JackKnife`. It is part of the model that reads it, and is saved with it, and so are the
    labels of the training data: another training on the same data can start from that model.

    Args:
        first: the first model, of local features. None: that of a saved model, which is read with it.
        jackknife: how the first models are trained; its cache keeps them for other second models.
        batch_size: sequences per step of their training, as in the data of a configuration.
        seed: of the order in which they see the training data.

    Raises:
        InputError: a first model with non-local features or one that starts from another; a number is too small.
    """

    def __init__(
        self,
        first: Tagger | None = None,
        jackknife: JackKnife | None = None,
        batch_size: int | None = None,
        seed: int = 1,
    ) -> None:
        if first is not None and (len(first.nonlocal_features) or first.init_from is not None):
            raise InputError("FirstLabels: the first model has local features and starts anew in each fold")
        TrainingPart(Corpus.from_sentences([]), batch_size=batch_size, seed=seed)  # which checks the numbers
        self.first, self.jackknife = first, jackknife or JackKnife()
        self.batch_size, self.seed = batch_size, seed
        self.attributes = () if first is None else tuple(first.features.columns)
        self.within = _within(first)
        self._training: tuple[Corpus, list[str]] | None = None  # whose labels are those of models that had not seen it
        self._kept: _TrainingLabels | None = None  # the same labels as a saved model has them

    def learn(self, corpus: Corpus) -> Self:
        """Return a copy with first models that are trained on a corpus, or taken from the cache.

        Raises InputError for a corpus without labels or with fewer documents than folds, for several processes, and
        where there is no configuration of a first model.
        """
        if self.first is None:
            raise InputError("FirstLabels: there is no first model to train; name it under first")
        if "label" not in corpus.columns:
            raise InputError(f"{corpus.name}: there are no gold labels, which a first model learns")
        if share().processes > 1:
            raise InputError("FirstLabels: first models are trained by one process: set trainer.devices: 1")
        whole = len(corpus) == len(corpus.sentences) - 1
        data = TrainingPart(
            corpus,
            unit="sentence" if whole else "document",
            scheme=_scheme(corpus),
            batch_size=self.batch_size,
            seed=self.seed,
        )
        models = self.jackknife(self.first, data, 1)
        known = copy.copy(self)
        known.first = models.tagger
        labels = models.lists.labels[:, 0].contiguous().numpy()
        known._kept = _TrainingLabels(_digest(corpus, known._roles), labels)
        known._training = corpus, models.tagger.labels.decode(labels)
        return known

    def read(self, corpus: Corpus, lookup: Lookup) -> Factorized:
        """Return the label of each token. Raises InputError for a first model that was not trained."""
        if self.first is None or not self.first.fitted:
            raise InputError("FirstLabels: the first model is not trained; fit the features that it belongs to")
        if self._training is not None and corpus is self._training[0]:
            return factorize(self._training[1])
        own = corpus.by_sentence() if self.first.unit == "sentence" else corpus  # as the first model was trained
        return factorize(self.first.predict(own).labels)

    def start(self, corpus: Corpus) -> Self:
        """Return a copy that reads the labels of models that have not seen their documents in the training data.

        Raises InputError for other training data than those of the saved model, and for a model without such labels.
        """
        if self._kept is None or self.first is None:
            raise InputError("the labels that its training data have are not saved with it; train that model again")
        if _digest(corpus, self._roles) != self._kept.digest:
            raise InputError(
                f"{corpus.name} is not what its first model was trained on ({len(self._kept.labels):,} tokens, here "
                f"{corpus.tokens:,}); use the same training data, or leave out model.init_from"
            )
        known = copy.copy(self)
        known._training = corpus, self.first.labels.decode(self._kept.labels.tolist())
        return known

    @property
    def _roles(self) -> list[str]:
        """The columns of training data on which the labels of its first models depend."""
        return [*self.attributes, "label"]

    # -- saved models ----------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the trained first model, or before that what it is."""
        told = {CLASS: class_path_of(type(self)), OPTIONS: {}}
        if self.first is None or not self.first.fitted:
            own = self.first and [unlearned_description(self.first), self.first.features.state_dict_json()]
            return {**told, OPTIONS: {"first": own, "batch_size": self.batch_size, "seed": self.seed}}
        learned = self.first.to_state()[0]
        return {**told, LEARNED: learned if self._kept is None else {**learned, TRAINING: self._kept.digest}}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return weights and features of the trained first model, and the labels of the training data."""
        if self.first is None or not self.first.fitted:
            return {}
        own = {name: tensor.numpy() for name, tensor in self.first.to_state()[1].items()}
        return own if self._kept is None else {**own, TRAINING: self._kept.labels}

    def load_state(self, learned: Any, arrays: Mapping[str, np.ndarray], build: PartBuilder, place: str) -> None:
        """Take back the first model and the labels of its training data. Raises InputError for anything else."""
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items() if name != TRAINING}
        try:
            check_value(learned, dict[str, Any], LEARNED)
            self.first = Tagger.from_state(learned, tensors, Builder(build.trusted))
            self._kept = _kept_labels(learned.get(TRAINING), arrays.get(TRAINING), len(self.first.labels))
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
        self.attributes = tuple(self.first.features.columns)
        self.within = _within(self.first)


class _TrainingLabels(NamedTuple):
    """The labels of training data by first models that have not seen them."""

    digest: str  # of the training data
    labels: np.ndarray  # (N,) integers, ids of the first model's labels


def _kept_labels(digest: Any, labels: np.ndarray | None, L: int) -> _TrainingLabels | None:
    """Return the labels of the training data as a saved model has them; None for a model without any."""
    if digest is None and labels is None:
        return None
    check_value(digest, str, TRAINING)
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise InputError(f"{TRAINING} must be the integers of a label for each token")
    if not 0 <= labels.min(initial=0) <= labels.max(initial=0) < L:
        raise InputError(f"{TRAINING}: a label is below 0 or above {L - 1}")
    return _TrainingLabels(digest, labels)


def _digest(corpus: Corpus, roles: Iterable[str]) -> str:
    """Return a checksum of columns of a corpus and of the boundaries of its sentences and documents.

    It does not depend on whether sequences are sentences or documents.
    """
    total = hashlib.sha256()
    for role in sorted(set(roles)):
        values = factorize(corpus.columns.get(role, []))
        total.update(f"{role}\0{chr(0).join(values.distinct)}\0".encode("utf-8", "surrogatepass"))
        total.update(values.numbers.astype(np.int32).tobytes())
    documents = np.repeat(corpus.documents, corpus.lengths)
    for boundaries in (corpus.sentences, np.flatnonzero(np.diff(documents))):
        total.update(np.asarray(boundaries, np.int64).tobytes())
    return total.hexdigest()


def _within(first: Tagger | None) -> Extent:
    """What decides the labels of a first model."""
    return "corpus" if first is not None and first.features.extent == "corpus" else "document"


def _scheme(corpus: Corpus) -> Scheme:
    """The tag scheme of the labels of a corpus, "none" if they are no segments."""
    fitting: Iterable[Any] = legal_schemes(corpus.sentences_of(corpus.columns["label"]))
    return next(iter(fitting), "none")
