"""The scikit-learn estimator."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import cached_property, partial
from inspect import signature
from itertools import chain
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from structperc.analysis.weight_ranking import WeightGroups, weights
from structperc.criteria.costs import Costs
from structperc.data.scheme_detection import NO_SEGMENT, check_labels, detect_scheme, fit_scheme
from structperc.data.tag_schemes import SCHEMES, make_label, parse_tag, spans
from structperc.data.weights import WEIGHT
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics import segment_f1_score
from structperc.scorers import SparseLinear
from structperc.sklearn.algorithms import Hyperparameters, check_options, get_algorithm
from structperc.sklearn.fitting import InMemoryData, fit_tagger, state_of, tagger_of
from structperc.sklearn.named_weights import NamedWeights
from structperc.sklearn.sentences import (
    FEATURES,
    FORMS,
    LABEL,
    ParsedSentences,
    SentenceList,
    parse_sentences,
    read_labels,
    read_weights,
)
from structperc.spelling import counted
from structperc.taggers import Tagger

AUTO = "auto"
CACHED = ("state_features_", "transition_features_")
DEV = "give [X_dev] and [y_dev]"
NAMES_OR_WORDS = ("words", "features")  # one sentence of lists of feature names looks like sentences of words


class SequenceTagger(BaseEstimator):
    """A sequence tagger as a scikit-learn estimator.

    X is a list of sentences, all of one form: lists of words; dicts of columns, such as {"word": [...], "pos": [...]};
    or, as in python-crfsuite, a dict of features or a list of feature names for each token, see `features_of`.
    Features of words and columns are extracted by templates. y is a list of lists of labels, which are strings.

    Args:
        algorithm: "crf" or "lbfgs" (CRF negative log-likelihood), "softmax_margin" (a CRF with costs),
            "averaged_perceptron" or "ap", "margin" (margin perceptron), "passive_aggressive" (PA-I), or a function that
            returns a `structperc.Tagger` for a `structperc.FeatureExtractor`.
        C: Variance of the prior `|w|^2 / (2C)` of a CRF; margin of "margin"; aggressiveness of "passive_aggressive".
        c1: Adds `c1 |w|_1` to the objective of a CRF, so that many weights are 0.
        c2: Prior `c2 |w|^2` of a CRF as in crfsuite, instead of C; 0: no prior.
        cost: Cost of each wrong token, or `structperc.criteria.TokenCosts` or `SegmentCosts`; for "passive_aggressive"
            and "softmax_margin".
        max_iterations: Maximum number of passes over the training data; None: 10, or 1000 for a CRF, which stops
            earlier at convergence.
        templates: Name of a set of templates, or a list of template items; for words and columns.
        cutoff: Minimum number of occurrences of a feature in the training data.
        hash_bits: Use at most 2**hash_bits hashes as feature ids; None: use a vocabulary of features.
        all_possible_states: Train a CRF with weights for all pairs of feature and label, also for those that do not
            occur together in the training data; takes several times as long.
        scheme: Tag scheme of the labels: IOB1, IOB2, IOBES, BILOU or IO: only legal label sequences are predicted;
            "none" for labels that are not segments; "auto": the scheme of the labels of the training data.
        random_state: Seed of the order of sentences: an integer, a `numpy.random.RandomState` or None.
        verbose: Show a progress bar and messages in training.

    Attributes:
        tagger_: The `structperc.Tagger`.
        classes_: Names of the labels in the order of their ids.
        scheme_: Tag scheme of the labels.
        n_iter_: Number of passes over the training data.
        dev_score_: `score` of X_dev and y_dev, if they are given to `fit`.

    Raises:
        TypeError: A parameter is unknown; the message has advice for those of `sklearn_crfsuite.CRF`.

    Example:
        >>> X = [["Anna", "left"], ["She", "saw", "Oslo"], ["Oslo", "wins"]]
        >>> y = [["B-PER", "O"], ["O", "O", "B-LOC"], ["B-LOC", "O"]]
        >>> model = SequenceTagger(max_iterations=10).fit(X, y)
        >>> model.predict([["She", "left", "Oslo"]])
        [['O', 'O', 'B-LOC']]
        >>> model.score(X, y), model.scheme_
        (1.0, 'IOB2')
    """

    def __init__(
        self,
        algorithm: str | Callable[[FeatureExtractor], Tagger] = "crf",
        C: float = 1.0,
        c1: float = 0.0,
        c2: float | None = None,
        cost: float | Costs = 1.0,
        max_iterations: int | None = None,
        templates: str | Sequence[Any] = "entities",
        cutoff: int = 1,
        scheme: str = AUTO,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        hash_bits: int | None = None,
        all_possible_states: bool = False,
        **others: Any,
    ) -> None:
        check_options(others, [name for name in signature(type(self)).parameters if name != "others"])
        self.algorithm = algorithm
        self.C = C
        self.c1 = c1
        self.c2 = c2
        self.cost = cost
        self.max_iterations = max_iterations
        self.templates = templates
        self.cutoff = cutoff
        self.scheme = scheme
        self.random_state = random_state
        self.verbose = verbose
        self.hash_bits = hash_bits
        self.all_possible_states = all_possible_states

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Sequence[str]],
        X_dev: Iterable[Any] | None = None,
        y_dev: Iterable[Sequence[str]] | None = None,
        sample_weight: Sequence[float] | np.ndarray | None = None,
    ) -> Self:
        """Train a tagger.

        Args:
            X: Sentences.
            y: Labels of each sentence.
            X_dev: Further sentences, which are scored after training, see `dev_score_`; as in sklearn-crfsuite they do
                not affect training.
            y_dev: Labels of X_dev.
            sample_weight: Weight of each sentence, which multiplies its loss, or its step in online learning; searches
                and cross-validation divide the weights with the sentences.

        Returns:
            The estimator.

        Raises:
            InputError: An option or the data is invalid.
        """
        sentences = parse_sentences(X, "give [X] and [y]")
        labels = read_labels(y, sentences.lengths)
        dev = None if X_dev is None and y_dev is None else _read_dev(X_dev, y_dev)
        if sentences.form is None:
            raise InputError("X has no tokens; give sentences with labels")
        weights = None if sample_weight is None else read_weights(sample_weight, sentences)
        numbers = Hyperparameters(self.C, self.c1, deepcopy(self.cost), self.c2, not self.all_possible_states)
        algorithm = get_algorithm(self.algorithm, numbers)
        iterations = algorithm.iterations if self.max_iterations is None else self.max_iterations
        if iterations < 1:
            raise InputError(f"max_iterations must be >= 1, got {iterations}")
        if all(label == "O" for own in labels for label in own):
            warnings.warn(f"y: {NO_SEGMENT}", stacklevel=2)
        scheme, seed = self._select_scheme(labels), check_random_state(self.random_state).randint(2**31 - 1)
        corpus = sentences.corpus.replace_column(LABEL, list(chain.from_iterable(labels)))
        if weights is not None:
            corpus = corpus.replace_column(WEIGHT, np.repeat(weights, sentences.lengths).tolist())
        if 0 in sentences.lengths:
            corpus = corpus.subset(corpus.lengths > 0)
        data = InMemoryData(corpus, scheme=scheme, seed=int(seed), **algorithm.data)
        extractor = partial(FeatureExtractor, cutoff=self.cutoff, progress=False, hash_bits=self.hash_bits)
        if sentences.form == "features":
            features = extractor(weighted_column=FEATURES)
        else:
            features = extractor([self.templates] if isinstance(self.templates, str) else list(self.templates))
        tagger = algorithm.make(features)
        options = {"verbose": bool(self.verbose), "metrics": callable(self.algorithm)}
        self.tagger_, self.n_iter_ = fit_tagger(tagger, data, iterations, int(seed), **options)
        self.classes_, self.scheme_, self._form = list(self.tagger_.labels.names), scheme, sentences.form
        for name in CACHED:
            self.__dict__.pop(name, None)
        if dev is not None:
            self.dev_score_ = self._score(self._same_form(dev[0], "X_dev", DEV), dev[1])
        return self

    def predict(self, X: Iterable[Any]) -> list[list[str]]:
        """Return the labels of each sentence."""
        sentences = self._read(X, "give [X], or call predict_single(X)")
        return SentenceList(self.tagger_.label(sentences.corpus))

    def predict_single(self, sentence: Any) -> list[str]:
        """Return the labels of one sentence."""
        self._check_single(sentence, "predict")
        return self.predict([sentence])[0]

    def predict_marginals(self, X: Iterable[Any]) -> list[list[dict[str, float]]]:
        """Return {label: probability} for each token of each sentence.

        Raises:
            InputError: The algorithm has no probabilities.
        """
        sentences = self._read(X, "give [X], or call predict_marginals_single(X)")
        if not self.tagger_.probabilistic:
            name = self.algorithm if isinstance(self.algorithm, str) else type(self.tagger_.criterion).__name__
            raise InputError(f"predict_marginals: {name} gives scores, not probabilities; set algorithm='crf'")
        tables = (table.tolist() for table in self.tagger_.marginals(sentences.corpus))
        return [[dict(zip(self.classes_, token, strict=True)) for token in table] for table in tables]

    def predict_marginals_single(self, sentence: Any) -> list[dict[str, float]]:
        """Return {label: probability} for each token of one sentence."""
        self._check_single(sentence, "predict_marginals")
        return self.predict_marginals([sentence])[0]

    def score(self, X: Iterable[Any], y: Iterable[Sequence[str]]) -> float:
        """Return the segment F1 of conlleval; for labels that are not segments, the share of correct tokens.

        Labels that are missing in the training data count as errors, with a warning.
        """
        sentences = self._read(X, "give [X] and [y]")
        return self._score(sentences, read_labels(y, sentences.lengths))

    def weights(self, top: int = 20) -> WeightGroups:
        """Return the largest weights by name, at most `top` for each label; notebooks show them as tables."""
        return weights(self._linear_tagger(), top)

    @property
    def attributes_(self) -> list[str]:
        """Names of all features in the order of their ids."""
        return self._linear_tagger().features.index.names("node")

    @cached_property
    def state_features_(self) -> Mapping[tuple[str, str], float]:
        """Weights of features other than 0, {(feature, label): weight}, computed when they are read."""
        tagger = self._linear_tagger()
        return NamedWeights(tagger.scorer.node.detach().numpy(), lambda: self.attributes_, self.classes_)

    @cached_property
    def transition_features_(self) -> Mapping[tuple[str, str], float]:
        """Weights of pairs of adjacent labels other than 0, {(previous label, label): weight}."""
        found = self._linear_tagger().scorer.transition
        if found is None:
            return {}
        return NamedWeights(found.detach().numpy(), lambda: self.classes_, self.classes_)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in super().__getstate__().items() if name not in CACHED}
        if "tagger_" in state:
            state["tagger_"] = state_of(state["tagger_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "tagger_" in state:
            self.tagger_ = tagger_of(state["tagger_"])

    def _linear_tagger(self) -> Any:
        check_is_fitted(self)
        if not isinstance(self.tagger_.scorer, SparseLinear):
            raise AttributeError("this tagger has no feature weights; use its tagger_")
        return self.tagger_

    def _select_scheme(self, labels: Sequence[Sequence[str]]) -> str:
        if self.scheme == AUTO:
            return _detect_scheme(labels)
        if self.scheme not in SCHEMES:
            raise InputError(f"scheme must be {AUTO} or one of {', '.join(SCHEMES)}, got {self.scheme!r}")
        check_labels(labels, "y", self.scheme)
        return self.scheme

    def _read(self, X: Iterable[Any], instead: str) -> ParsedSentences:
        check_is_fitted(self)
        return self._same_form(parse_sentences(X, instead), "X", instead)

    def _same_form(self, sentences: ParsedSentences, name: str, instead: str) -> ParsedSentences:
        if sentences.form not in (None, self._form):
            single = f"; if it is one sentence, {instead}" if (sentences.form, self._form) == NAMES_OR_WORDS else ""
            forms = f"of the form {FORMS[sentences.form]}, but training had {FORMS[self._form]}"
            raise InputError(f"{name} is {forms}{single}")
        return sentences

    def _has_form(self, X: Any) -> bool:
        """Return True for a list of sentences of the form of the training data."""
        try:
            return parse_sentences(X).form == self._form
        except InputError:
            return False

    def _check_single(self, sentence: Any, instead: str) -> None:
        check_is_fitted(self)
        if not self._has_form([sentence]) and self._has_form(sentence):
            raise InputError(f"{instead}_single takes one sentence, not a list of them; call {instead}(X)")

    def _score(self, sentences: ParsedSentences, gold: list[list[str]]) -> float:
        predicted = self.tagger_.label(sentences.corpus)
        if self.scheme_ == "none":
            _warn_unknown([label for label in chain.from_iterable(gold) if label not in self.classes_], "label")
            right = [a == b for pair in zip(gold, predicted, strict=True) for a, b in zip(*pair, strict=True)]
            return float(np.mean(right)) if right else 0.0
        scheme = "IO" if self.scheme_ == "IO" else None  # else of any scheme with prefixes
        if scheme is None:
            gold = [[_to_segment_label(label) for label in labels] for labels in gold]
        types = [span.type for labels in gold for span in spans(labels, scheme)]
        _warn_unknown([kind for kind in types if kind not in self.tagger_.labels.type_names], "segment")
        return segment_f1_score(gold, predicted, scheme=scheme)


def _read_dev(X_dev: Any, y_dev: Any) -> tuple[ParsedSentences, list[list[str]]]:
    if X_dev is None or y_dev is None:
        raise InputError(
            f"{'X_dev' if X_dev is None else 'y_dev'} is missing; give both of X_dev and y_dev, or neither"
        )
    sentences = parse_sentences(X_dev, DEV, "X_dev")
    return sentences, read_labels(y_dev, sentences.lengths, ("X_dev", "y_dev"))


def _to_segment_label(label: str) -> str:
    """Return the label, or B-label if it is of no scheme, so that it counts as a missed segment."""
    try:
        parse_tag(label)
    except InputError:
        return make_label("B", label)
    return label


def _warn_unknown(found: Sequence[str], what: str) -> None:
    """Warn of gold labels, or types of segments, that are missing in the training data."""
    if found:
        names = ", ".join(sorted({name or "without a type" for name in found}))
        n = counted(len(found), what)
        warnings.warn(f"y: {n} not seen in training ({names:.200}), counted as errors", stacklevel=4)


def _detect_scheme(labels: Sequence[Sequence[str]]) -> str:
    """Return the scheme of all labels; warn if most but not all are labels of segments."""
    scheme, found = detect_scheme(labels), fit_scheme(labels)
    if scheme == "none" and found.scheme != "none":
        odd = next(iter(found.unrecognized), None)
        reason = f"y: {found.remark()}, but not {odd!r}" if odd is not None else f"y has labels of {found.scheme}"
        warnings.warn(f"{reason}; write all as B-TYPE, otherwise they are learned token by token", stacklevel=4)
    return scheme
