"""Taggers of named algorithms."""

from collections.abc import Callable, Iterable
from functools import partial
from math import inf, isfinite
from typing import Any, NamedTuple

from structperc.chain import KBest
from structperc.criteria import CRFLoss, Criterion, HingeLoss, MarginLoss, PerceptronLoss, Prior, SoftmaxMarginLoss
from structperc.criteria.costs import Costs
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.optim import LBFGS, OWLQN, PassiveAggressive
from structperc.optim import Perceptron as AveragedPerceptron
from structperc.scorers import SparseLinear
from structperc.spelling import did_you_mean
from structperc.taggers import Tagger

MakeTagger = Callable[[FeatureExtractor], Tagger]


class Algorithm(NamedTuple):
    """Constructor and training options of a tagger."""

    make: MakeTagger
    iterations: int  # default of max_iterations
    data: dict[str, Any]  # options of the data module


class Hyperparameters(NamedTuple):
    """Options of all algorithms, see `SequenceTagger`."""

    C: float
    c1: float
    cost: float | Costs
    c2: float | None = None  # prior of a CRF, instead of C
    supported_only: bool = False  # a CRF has only weights of pairs of feature and label in the training data


CRFSUITE = {"lbfgs": "crf", "ap": "averaged_perceptron"}  # names of the same algorithms in crfsuite
REPLACEMENTS = {  # advice for other algorithms of crfsuite
    "pa": "use algorithm='passive_aggressive', whose C is c of crfsuite",
    "l2sgd": "use algorithm='crf' with c2, which has the same objective",
    "arow": "use algorithm='passive_aggressive'",
}
FULL_BATCH = {"batch_size": 4096, "shuffle": False}  # the batch size affects memory, and the order of sums
ONLINE = {"batch_size": 4096}  # sequences are learned one by one; the batch size affects memory only


def get_algorithm(name: str | MakeTagger, numbers: Hyperparameters) -> Algorithm:
    """Return a named algorithm, or one for a function that constructs a tagger from a feature extractor.

    Raises InputError for an unknown name, and for options out of range.
    """
    if callable(name):
        return Algorithm(name, 10, {})
    if name in REPLACEMENTS:
        raise InputError(f"algorithm {name!r} of crfsuite is not supported; {REPLACEMENTS[name]}")
    name = CRFSUITE.get(name, name)
    if name not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise InputError(f"algorithm must be one of {known}, or a function that returns a tagger; not {name!r}")
    if not numbers.C > 0:
        raise InputError(f"C must be > 0, got {numbers.C!r}")
    if not numbers.c1 >= 0:
        raise InputError(f"c1 must be >= 0, got {numbers.c1!r}")
    if numbers.c2 is not None and not 0 <= numbers.c2 < inf:
        raise InputError(f"c2 must be >= 0 and finite, got {numbers.c2!r}")
    if numbers.c2 is not None and name not in ("crf", "softmax_margin"):
        raise InputError(f"c2 needs algorithm='crf' or 'softmax_margin'; {name} has C")
    if numbers.c2 is not None and numbers.C != 1:
        raise InputError("set C or c2, not both: C = 1 / (2 c2)")
    if isinstance(numbers.cost, Costs) and name not in ("passive_aggressive", "softmax_margin"):
        raise InputError(f"{name} has no costs; set algorithm='softmax_margin' or 'passive_aggressive'")
    return ALGORITHMS[name](numbers)


def _online(criterion: Criterion, k: int, optimizer: Callable[..., Any]) -> Algorithm:
    def make(features: FeatureExtractor) -> Tagger:
        return Tagger(features, SparseLinear(), criterion, KBest(k), optimizer)

    return Algorithm(make, 10, ONLINE)


def _crf(criterion: Criterion, numbers: Hyperparameters) -> Algorithm:
    quasi_newton = partial(OWLQN, C=1 / numbers.c1) if numbers.c1 else LBFGS
    optimizer = partial(quasi_newton, supported_only=numbers.supported_only)
    C = numbers.C if numbers.c2 is None else (1 / (2 * numbers.c2) if numbers.c2 else inf)
    prior = Prior(C) if isfinite(C) else None

    def make(features: FeatureExtractor) -> Tagger:
        scorer = SparseLinear(sparse_grad=False)
        return Tagger(features, scorer, criterion, KBest(1), optimizer, prior=prior)

    return Algorithm(make, 1000, FULL_BATCH)


ALGORITHMS: dict[str, Callable[[Hyperparameters], Algorithm]] = {
    "crf": lambda numbers: _crf(CRFLoss(), numbers),
    "averaged_perceptron": lambda numbers: _online(PerceptronLoss(), 1, AveragedPerceptron),
    "margin": lambda numbers: _online(MarginLoss(numbers.C), 2, AveragedPerceptron),
    "passive_aggressive": lambda numbers: _online(HingeLoss(numbers.cost), 1, partial(PassiveAggressive, C=numbers.C)),
    "softmax_margin": lambda numbers: _crf(SoftmaxMarginLoss(numbers.cost), numbers),
}


OPTIONS = {  # advice for parameters of sklearn_crfsuite.CRF
    "min_freq": "set cutoff, the number of tokens that must have a feature",
    "all_possible_transitions": "always on; remove it",
    "c": "set C of algorithm='passive_aggressive'",
    **dict.fromkeys(("pa_type", "error_sensitive", "averaging"), "set algorithm to a function that returns a tagger"),
    **dict.fromkeys(
        ("num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch"),
        "an option of the optimizer, such as tolerance and period of structperc.optim.LBFGS; set algorithm to a "
        "function that returns a tagger with this optimizer",
    ),
    **dict.fromkeys(
        ("calibration_eta", "calibration_rate", "calibration_samples", "calibration_candidates"),
        "an option of l2sgd, which is not supported; remove it",
    ),
    "calibration_max_trials": "an option of l2sgd, which is not supported; remove it",
    **dict.fromkeys(("variance", "gamma"), "an option of arow, which is not supported; remove it"),
    **dict.fromkeys(("keep_tempfiles", "trainer_cls"), "no files are written in training; remove it"),
    "model_filename": "no files are written in training; save the model by tagger_.save(folder)",
}


def check_options(others: Iterable[str], own: Iterable[str]) -> None:
    """Raise TypeError for unknown parameters, with advice for those of crfsuite."""
    for name in others:
        advice = OPTIONS.get(name) or f"unknown parameter{did_you_mean(name, own)}"
        raise TypeError(f"SequenceTagger, {name}: {advice}")
