"""The taggers behind the names of algorithms."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from structperc.chain import KBest
from structperc.criteria import Criterion, Hinge, Likelihood, Margin, Perceptron, Prior
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.optim import LBFGS, OWLQN, PassiveAggressive
from structperc.optim import Perceptron as AveragedPerceptron
from structperc.scorers import SparseLinear
from structperc.taggers import Tagger

MakeTagger = Callable[[FeatureExtractor], Tagger]


class Algorithm(NamedTuple):
    """How a tagger is made and trained."""

    make: MakeTagger
    iterations: int  # at most, where nobody says how many
    data: dict[str, Any]  # options of the data module: its mini-batches and their order


class Numbers(NamedTuple):
    """The options of algorithms."""

    C: float
    c1: float
    cost: float


FULL_BATCH = {"batch_size": 500, "shuffle": False}  # the size is a matter of memory alone


def algorithm_of(name: str | MakeTagger, numbers: Numbers) -> Algorithm:
    """Return the algorithm of a name, or one that trains what a function of the features makes.

    Raises InputError for an unknown name, and for options out of their range.
    """
    if callable(name):
        return Algorithm(name, 10, {})
    if name not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise InputError(f"algorithm must be one of {known}, or a function that makes a tagger; not {name!r}")
    if not numbers.C > 0:
        raise InputError(f"C must be > 0, got {numbers.C!r}")
    if not numbers.c1 >= 0:
        raise InputError(f"c1 must be >= 0, got {numbers.c1!r}")
    return ALGORITHMS[name](numbers)


def _averaged_perceptron(numbers: Numbers) -> Algorithm:
    return _online(Perceptron(), 1, AveragedPerceptron)


def _margin(numbers: Numbers) -> Algorithm:
    return _online(Margin(numbers.C), 2, AveragedPerceptron)


def _passive_aggressive(numbers: Numbers) -> Algorithm:
    return _online(Hinge(numbers.cost), 1, partial(PassiveAggressive, C=numbers.C))


def _online(criterion: Criterion, rivals: int, optimizer: Callable[..., Any]) -> Algorithm:
    def make(features: FeatureExtractor) -> Tagger:
        return Tagger(features, SparseLinear(), criterion, KBest(rivals), optimizer)

    return Algorithm(make, 10, {})


def _crf(numbers: Numbers) -> Algorithm:
    optimizer = partial(OWLQN, C=1 / numbers.c1) if numbers.c1 else LBFGS

    def make(features: FeatureExtractor) -> Tagger:
        scorer = SparseLinear(sparse_grad=False)
        return Tagger(features, scorer, Likelihood(), KBest(1), optimizer, prior=Prior(numbers.C))

    return Algorithm(make, 1000, FULL_BATCH)


ALGORITHMS: dict[str, Callable[[Numbers], Algorithm]] = {
    "crf": _crf,
    "averaged_perceptron": _averaged_perceptron,
    "margin": _margin,
    "passive_aggressive": _passive_aggressive,
}
