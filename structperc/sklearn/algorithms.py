"""The taggers behind the names of algorithms."""

from collections.abc import Callable, Iterable
from functools import partial
from math import inf, isfinite
from typing import Any, NamedTuple

from structperc.chain import KBest
from structperc.criteria import CRFLoss, Criterion, HingeLoss, MarginLoss, PerceptronLoss, Prior
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.optim import LBFGS, OWLQN, PassiveAggressive
from structperc.optim import Perceptron as AveragedPerceptron
from structperc.scorers import SparseLinear
from structperc.spelling import did_you_mean
from structperc.taggers import Tagger

MakeTagger = Callable[[FeatureExtractor], Tagger]


class Algorithm(NamedTuple):
    """How a tagger is made and trained."""

    make: MakeTagger
    iterations: int  # at most, where nobody says how many
    data: dict[str, Any]  # options of the data module: its mini-batches and their order


class Hyperparameters(NamedTuple):
    """The options of algorithms."""

    C: float
    c1: float
    cost: float
    c2: float | None = None  # of a CRF, in place of C


CRFSUITE = {"lbfgs": "crf", "ap": "averaged_perceptron"}  # names that crfsuite has for the same algorithms
NEAREST = {  # what to set for those of crfsuite that are not here
    "pa": "the nearest is algorithm='passive_aggressive', whose C is c of crfsuite",
    "l2sgd": "the same objective is algorithm='crf' with c2",
    "arow": "the nearest is algorithm='passive_aggressive'",
}
FULL_BATCH = {"batch_size": 500, "shuffle": False}  # the size is a matter of memory alone


def get_algorithm(name: str | MakeTagger, numbers: Hyperparameters) -> Algorithm:
    """Return the algorithm of a name, or one that trains what a function of the features makes.

    Raises InputError for an unknown name, and for options out of their range.
    """
    if callable(name):
        return Algorithm(name, 10, {})
    if name in NEAREST:
        raise InputError(f"algorithm {name!r} of crfsuite is not here; {NEAREST[name]}")
    name = CRFSUITE.get(name, name)
    if name not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise InputError(f"algorithm must be one of {known}, or a function that makes a tagger; not {name!r}")
    if not numbers.C > 0:
        raise InputError(f"C must be > 0, got {numbers.C!r}")
    if not numbers.c1 >= 0:
        raise InputError(f"c1 must be >= 0, got {numbers.c1!r}")
    if numbers.c2 is not None:
        _check_c2(name, numbers)
    return ALGORITHMS[name](numbers)


def _check_c2(name: str, numbers: Hyperparameters) -> None:
    assert numbers.c2 is not None
    if not 0 <= numbers.c2 < inf:
        raise InputError(f"c2 must be >= 0 and finite, got {numbers.c2!r}")
    if name != "crf":
        raise InputError(f"c2 is of algorithm='crf' alone; {name} has C")
    if numbers.C != 1:
        raise InputError("set C or c2, not both: C = 1 / (2 c2)")


def _averaged_perceptron(numbers: Hyperparameters) -> Algorithm:
    return _online(PerceptronLoss(), 1, AveragedPerceptron)


def _margin(numbers: Hyperparameters) -> Algorithm:
    return _online(MarginLoss(numbers.C), 2, AveragedPerceptron)


def _passive_aggressive(numbers: Hyperparameters) -> Algorithm:
    return _online(HingeLoss(numbers.cost), 1, partial(PassiveAggressive, C=numbers.C))


def _online(criterion: Criterion, rivals: int, optimizer: Callable[..., Any]) -> Algorithm:
    def make(features: FeatureExtractor) -> Tagger:
        return Tagger(features, SparseLinear(), criterion, KBest(rivals), optimizer)

    return Algorithm(make, 10, {})


def _crf(numbers: Hyperparameters) -> Algorithm:
    optimizer = partial(OWLQN, C=1 / numbers.c1) if numbers.c1 else LBFGS
    C = numbers.C if numbers.c2 is None else (1 / (2 * numbers.c2) if numbers.c2 else inf)
    prior = Prior(C) if isfinite(C) else None

    def make(features: FeatureExtractor) -> Tagger:
        scorer = SparseLinear(sparse_grad=False)
        return Tagger(features, scorer, CRFLoss(), KBest(1), optimizer, prior=prior)

    return Algorithm(make, 1000, FULL_BATCH)


ALGORITHMS: dict[str, Callable[[Hyperparameters], Algorithm]] = {
    "crf": _crf,
    "averaged_perceptron": _averaged_perceptron,
    "margin": _margin,
    "passive_aggressive": _passive_aggressive,
}


OPTIONS = {  # of sklearn_crfsuite.CRF: what takes their place
    "min_freq": "set cutoff, the number of tokens that must have a feature",
    "all_possible_states": "always on here; leave it out",
    "all_possible_transitions": "always on here; leave it out",
    "c": "set C of algorithm='passive_aggressive'",
    **dict.fromkeys(
        ("pa_type", "error_sensitive", "averaging"), "let algorithm be a function that makes such a tagger"
    ),
    **dict.fromkeys(
        ("num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch"),
        "options of the optimizer, such as tolerance and period of structperc.optim.LBFGS; let algorithm be a function "
        "that makes a tagger with it",
    ),
    **dict.fromkeys(
        ("calibration_eta", "calibration_rate", "calibration_samples", "calibration_candidates"),
        "of l2sgd, which is not here; leave it out",
    ),
    "calibration_max_trials": "of l2sgd, which is not here; leave it out",
    **dict.fromkeys(("variance", "gamma"), "of arow, which is not here; leave it out"),
    **dict.fromkeys(("keep_tempfiles", "trainer_cls"), "nothing is written while learning; leave it out"),
    "model_filename": "nothing is written while learning; tagger_.save(folder) writes the model",
}


def check_options(others: Iterable[str], own: Iterable[str]) -> None:
    """Raise TypeError for options that the estimator does not have; for those of crfsuite it says what to set."""
    for name in others:
        advice = OPTIONS.get(name) or f"there is no such parameter{did_you_mean(name, own)}"
        raise TypeError(f"SequenceTagger, {name}: {advice}")
