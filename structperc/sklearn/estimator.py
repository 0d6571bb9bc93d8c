"""The estimator."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from inspect import signature
from itertools import chain
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from structperc.analysis.weight_ranking import WeightGroups, weights
from structperc.data.scheme_detection import NO_SEGMENT, detect_scheme, fit_scheme
from structperc.data.tag_schemes import SCHEMES, make_label, parse_tag, spans
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.metrics import segment_f1_score
from structperc.scorers import SparseLinear
from structperc.sklearn.algorithms import Hyperparameters, check_options, get_algorithm
from structperc.sklearn.fitting import InMemoryData, fit_tagger, state_of, tagger_of
from structperc.sklearn.sentences import FEATURES, FORMS, LABEL, Form, Sentences, read_labels, read_sentences
from structperc.spelling import counted
from structperc.taggers import Tagger

AUTO = "auto"
DEV = "give [X_dev] and [y_dev]"
NAMES_OR_WORDS = ("words", "features")  # one sentence of lists of feature names looks like sentences of words


class SequenceTagger(BaseEstimator):
    """A tagger of sequences as an estimator of scikit-learn.

    X is a list of sentences, all of one form: lists of words; dicts of columns, such as {"word": [...], "pos": [...]};
    or, as python-crfsuite takes them, for each token a dict of features or a list of their names, see `features_of`.
    Words and columns are read through feature templates. y is a list of as many lists of labels, which are strings.

    Args:
        algorithm: "crf" (likelihood; "lbfgs" is the same), "averaged_perceptron" (or "ap"), "margin" (margin
            perceptron), "passive_aggressive" (PA-I), or a function that makes a `structperc.Tagger` from a
            `structperc.FeatureExtractor`.
        C: of the CRF, whose prior is |w|^2 / (2C); the margin of "margin"; the aggressiveness of "passive_aggressive".
        c1: the CRF's objective has c1 |w|_1, too, so that many weights are 0.
        c2: the CRF's prior is c2 |w|^2, as crfsuite writes it, instead of C; 0 is no prior.
        cost: margin for each wrong token of "passive_aggressive".
        max_iterations: passes over the training data at most; None: 10, and for a CRF 1000, which ends before that when
            its objective no longer falls.
        templates: the name of a set of templates, or a list of template items; for words and columns.
        cutoff: how often a feature must occur in the training data.
        hash_bits: number features by their hashes, 2**hash_bits at most, without an index of names; None: with one.
        scheme: tag scheme of the labels: IOB1, IOB2, IOBES or BILOU, whose illegal labellings are never predicted;
            "none", labels that are no segments; "auto", the scheme that the labels of the training data fit.
        random_state: of the order in which sentences are seen: a number, a `numpy.random.RandomState` or None.
        verbose: show a bar and messages while learning.

    Attributes:
        tagger_: the `structperc.Tagger`, which can be saved and does all that others do.
        classes_: names of the labels, in the order of the tagger's numbers.
        scheme_: tag scheme of the labels.
        n_iter_: passes over the training data that were made.
        dev_score_: `score` of X_dev and y_dev, where `fit` has them.

    Raises:
        TypeError: an option that is not there; for those of `sklearn_crfsuite.CRF` the message says what to set.
    """

    def __init__(
        self,
        algorithm: str | Callable[[FeatureExtractor], Tagger] = "crf",
        C: float = 1.0,
        c1: float = 0.0,
        c2: float | None = None,
        cost: float = 1.0,
        max_iterations: int | None = None,
        templates: str | Sequence[Any] = "entities",
        cutoff: int = 1,
        scheme: str = AUTO,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
        hash_bits: int | None = None,
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

    def fit(
        self,
        X: Iterable[Any],
        y: Iterable[Sequence[str]],
        X_dev: Iterable[Any] | None = None,
        y_dev: Iterable[Sequence[str]] | None = None,
    ) -> Self:
        """Learn from sentences and their labels.

        Further sentences and labels, X_dev and y_dev, are scored in the end, see `dev_score_`; as in sklearn-crfsuite
        they change nothing in what is learned. Raises InputError for invalid options and data.
        """
        sentences = read_sentences(X, "give [X] and [y]")
        labels = read_labels(y, sentences.lengths)
        dev = None if X_dev is None and y_dev is None else _read_dev(X_dev, y_dev)
        if sentences.form is None:
            raise InputError("X has no token in it; give sentences to learn from")
        algorithm = get_algorithm(self.algorithm, Hyperparameters(self.C, self.c1, self.cost, self.c2))
        iterations = algorithm.iterations if self.max_iterations is None else self.max_iterations
        if iterations < 1:
            raise InputError(f"max_iterations must be >= 1, got {iterations}")
        if all(label == "O" for own in labels for label in own):
            warnings.warn(f"y: {NO_SEGMENT}", stacklevel=2)
        scheme, seed = self._scheme_of(labels), check_random_state(self.random_state).randint(2**31 - 1)
        rows = [{**row, LABEL: own} for row, own in zip(sentences.rows, labels, strict=True) if own]
        data = InMemoryData(rows, scheme=scheme, seed=int(seed), **algorithm.data)
        tagger = algorithm.make(self._features(sentences.form))
        self.tagger_, self.n_iter_ = fit_tagger(tagger, data, iterations, int(seed), bool(self.verbose))
        self.classes_, self.scheme_, self._form = list(self.tagger_.labels.names), scheme, sentences.form
        if dev is not None:
            self.dev_score_ = self._score(self._same_form(dev[0], "X_dev", DEV), dev[1])
        return self

    def predict(self, X: Iterable[Any]) -> list[list[str]]:
        """Return the labels of each sentence."""
        sentences = self._read(X, "give [X], or call predict_single(X)")
        return self.tagger_.tag(sentences.rows)

    def predict_single(self, sentence: Any) -> list[str]:
        """Return the labels of one sentence."""
        self._check_single(sentence, "predict")
        return self.predict([sentence])[0]

    def predict_marginals(self, X: Iterable[Any]) -> list[list[dict[str, float]]]:
        """Return for each token of each sentence the probability of each label, {label: probability}.

        Raises InputError for algorithms whose scores are no probabilities.
        """
        sentences = self._read(X, "give [X], or call predict_marginals_single(X)")
        if not self.tagger_.probabilistic:
            name = self.algorithm if isinstance(self.algorithm, str) else type(self.tagger_.criterion).__name__
            raise InputError(f"predict_marginals: {name} gives scores, not probabilities; set algorithm='crf'")
        tables = (table.tolist() for table in self.tagger_.marginals(sentences.rows))
        return [[dict(zip(self.classes_, token, strict=True)) for token in table] for table in tables]

    def predict_marginals_single(self, sentence: Any) -> list[dict[str, float]]:
        """Return for each token of one sentence the probability of each label, {label: probability}."""
        self._check_single(sentence, "predict_marginals")
        return self.predict_marginals([sentence])[0]

    def score(self, X: Iterable[Any], y: Iterable[Sequence[str]]) -> float:
        """Return F1 of segments by the rule of conlleval, or for labels that are no segments the share of right tokens.

        Labels that the training data does not have count as missed, with a warning that says how many there are.
        """
        sentences = self._read(X, "give [X] and [y]")
        return self._score(sentences, read_labels(y, sentences.lengths))

    def weights(self, top: int = 20) -> WeightGroups:
        """Return the largest weights by name, at most `top` for each label, which notebooks show as tables."""
        return weights(self._linear_tagger(), top)

    @property
    def attributes_(self) -> list[str]:
        """The names of all features, in the order of their numbers."""
        return self._linear_tagger().features.feature_names("node")

    @property
    def state_features_(self) -> dict[tuple[str, str], float]:
        """The weights of features and labels that are not 0, {(feature, label): weight}."""
        tagger = self._linear_tagger()
        names, weights = self.attributes_, tagger.scorer.node.detach()
        return {(names[f], self.classes_[j]): float(weights[f, j]) for f, j in weights.nonzero().tolist()}

    @property
    def transition_features_(self) -> dict[tuple[str, str], float]:
        """The weights of pairs of neighbouring labels that are not 0, {(label before, label): weight}."""
        found = self._linear_tagger().scorer.transition
        if found is None:
            return {}
        names, weights = self.classes_, found.detach()
        return {(names[i], names[j]): float(weights[i, j]) for i, j in weights.nonzero().tolist()}

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
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
            raise AttributeError("this tagger has no weights of features; see its tagger_")
        return self.tagger_

    def _features(self, form: Form) -> FeatureExtractor:
        """Reader of sentences of a form."""
        made = partial(FeatureExtractor, cutoff=self.cutoff, progress=False, hash_bits=self.hash_bits)
        if form == "features":
            return made(weighted_column=FEATURES)
        return made([self.templates] if isinstance(self.templates, str) else list(self.templates))

    def _scheme_of(self, labels: Sequence[Sequence[str]]) -> str:
        if self.scheme == AUTO:
            return _scheme_that_fits(labels)
        if self.scheme not in SCHEMES:
            raise InputError(f"scheme must be {AUTO} or one of {', '.join(SCHEMES)}, got {self.scheme!r}")
        _check_labels(labels, self.scheme)
        return self.scheme

    def _read(self, X: Iterable[Any], instead: str) -> Sentences:
        check_is_fitted(self)
        return self._same_form(read_sentences(X, instead), "X", instead)

    def _same_form(self, sentences: Sentences, name: str, instead: str) -> Sentences:
        if sentences.form not in (None, self._form):
            single = f"; if it is one sentence, {instead}" if (sentences.form, self._form) == NAMES_OR_WORDS else ""
            forms = f"of the form {FORMS[sentences.form]}, but training had {FORMS[self._form]}"
            raise InputError(f"{name} is {forms}{single}")
        return sentences

    def _is_read(self, X: Any) -> bool:
        """Whether X is a list of sentences of the form of the training data."""
        try:
            return read_sentences(X).form == self._form
        except InputError:
            return False

    def _check_single(self, sentence: Any, instead: str) -> None:
        check_is_fitted(self)
        if not self._is_read([sentence]) and self._is_read(sentence):
            raise InputError(f"{instead}_single takes one sentence, not a list of them; call {instead}(X)")

    def _score(self, sentences: Sentences, gold: list[list[str]]) -> float:
        predicted = self.tagger_.tag(sentences.rows)
        if self.scheme_ == "none":
            _note_unknown([label for label in chain.from_iterable(gold) if label not in self.classes_], "label")
            right = [a == b for pair in zip(gold, predicted, strict=True) for a, b in zip(*pair, strict=True)]
            return float(np.mean(right)) if right else 0.0
        gold = [[_as_segment(label) for label in labels] for labels in gold]
        types = [span.type for labels in gold for span in spans(labels)]
        _note_unknown([kind for kind in types if kind not in self.tagger_.labels.type_names], "segment")
        return segment_f1_score(gold, predicted)


def _read_dev(X_dev: Any, y_dev: Any) -> tuple[Sentences, list[list[str]]]:
    if X_dev is None or y_dev is None:
        raise InputError(
            f"{'X_dev' if X_dev is None else 'y_dev'} is missing; give both of X_dev and y_dev, or neither"
        )
    sentences = read_sentences(X_dev, DEV, "X_dev")
    return sentences, read_labels(y_dev, sentences.lengths, ("X_dev", "y_dev"))


def _as_segment(label: str) -> str:
    """The label, or one that begins a segment where no scheme has it: it counts as one that is missed."""
    try:
        parse_tag(label)
    except InputError:
        return make_label("B", label)
    return label


def _note_unknown(found: Sequence[str], what: str) -> None:
    """Warn of gold labels, or types of segments, that training has not seen."""
    if found:
        names = ", ".join(sorted({name or "without a type" for name in found}))
        n = counted(len(found), what)
        warnings.warn(f"y: {n} that the training data do not have ({names:.200}) count as missed", stacklevel=4)


def _scheme_that_fits(labels: Sequence[Sequence[str]]) -> str:
    """The scheme that all labels are of; warns where most are labels of segments, but not all."""
    scheme, found = detect_scheme(labels), fit_scheme(labels)
    if scheme == "none" and found.scheme != "none":
        odd = next(iter(found.unrecognized), None)
        reason = f"y: {found.remark()}, but not {odd!r}" if odd is not None else f"y has labels of {found.scheme}"
        warnings.warn(f"{reason}; write all as B-TYPE, or they are learned token by token", stacklevel=4)
    return scheme


def _check_labels(labels: Sequence[Sequence[str]], scheme: str) -> None:
    """Raise InputError with the place of a label that is not of the scheme."""
    for n, own in enumerate(labels, 1):
        for t, label in enumerate(own, 1):
            _check_label(label, scheme, f"y, sentence {n}, token {t}")


def _check_label(label: str, scheme: str, place: str) -> None:
    if scheme == "none":
        return
    try:
        parse_tag(label, scheme)
    except InputError as error:
        raise InputError(f"{place}: {error}") from None
