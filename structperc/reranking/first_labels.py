"""The labels of a first model as an attribute for the templates of a second one."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
import torch

from structperc.batching.processes import share
from structperc.data.corpus import Corpus
from structperc.data.distinct import DistinctStrings, number_strings
from structperc.data.schemes import fitting_schemes
from structperc.data.tags import Scheme
from structperc.errors import InputError
from structperc.features import DocumentAttribute
from structperc.features.documents import Extent, Lookup, PartBuilder
from structperc.public_names import CLASS, LEARNED, OPTIONS, path_of
from structperc.reranking.jackknife import JackKnife, TrainingPart
from structperc.reranking.list_cache import unlearned_description
from structperc.taggers.builder import Builder
from structperc.taggers.tagger import Tagger


class FirstLabels(DocumentAttribute):
    """The label that a first model gives each token: stacked, or two-stage, models (Krishnan & Manning 2006).

    Templates have it as it stands, and `TokenMajority`, `EntityMajority` and `SuperentityMajority` count it. The
    training data are labelled by first models that have not seen their documents, all other text by one that was
    trained on all of them, see `JackKnife`. It is part of the model that reads it, and is saved with it.

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
        known._training = corpus, models.tagger.labels.decode(models.lists.labels[:, 0])
        return known

    def read(self, corpus: Corpus, lookup: Lookup) -> DistinctStrings:
        """Return the label of each token. Raises InputError for a first model that was not trained."""
        if self.first is None or not self.first.fitted:
            raise InputError("FirstLabels: the first model is not trained; fit the features that it belongs to")
        if self._training is not None and corpus is self._training[0]:
            return number_strings(self._training[1])
        return number_strings([label for labels in self.first.label(corpus) for label in labels])

    def check_start(self) -> None:
        """Raise InputError: the labels of training data must be those of models that have not seen them."""
        raise InputError("its first model has seen the training data; train a new model, without init_from")

    # -- saved models ----------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the trained first model, or before that what it is."""
        told = {CLASS: path_of(type(self)), OPTIONS: {}}
        if self.first is None or not self.first.fitted:
            own = self.first and [unlearned_description(self.first), self.first.features.state_dict_json()]
            return {**told, OPTIONS: {"first": own, "batch_size": self.batch_size, "seed": self.seed}}
        return {**told, LEARNED: self.first.to_state()[0]}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return weights and features of the trained first model."""
        if self.first is None or not self.first.fitted:
            return {}
        return {name: tensor.numpy() for name, tensor in self.first.to_state()[1].items()}

    def relearn(self, learned: Any, arrays: Mapping[str, np.ndarray], build: PartBuilder, place: str) -> None:
        """Take back the first model. Raises InputError for anything else."""
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        try:
            self.first = Tagger.from_state(learned, tensors, Builder(build.trusted))
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
        self.attributes = tuple(self.first.features.columns)
        self.within = _within(self.first)


def _within(first: Tagger | None) -> Extent:
    """What decides the labels of a first model."""
    return "corpus" if first is not None and first.features.extent == "corpus" else "document"


def _scheme(corpus: Corpus) -> Scheme:
    """The tag scheme of the labels of a corpus, "none" if they are no segments."""
    fitting: Iterable[Any] = fitting_schemes(corpus.sentences_of(corpus.columns["label"]))
    return next(iter(fitting), "none")
