"""The contract of a criterion, and the idea that the perceptron-like ones share: gold against its best rival.

What criteria are given: gold and candidates with their scores in a lattice.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from structperc.chain import log_partition, path_score
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.structures import Candidates, Lattice, Scored

ComparisonUnit = Literal[
    "sequence", "sentence"
]  # what gold is compared in: sequences as they are, or each of their sentences


class UpdateRule(NamedTuple):
    """What a criterion of local scores does to one sequence, in numbers: so that it can be learned in a compiled loop.

    The rival is found under the scores to which `cost` was added for each wrong label. Where gold has a rival, with
    `gap` = s(gold) - s(rival) - cost of the rival, should_update(gap, limit) says whether the weights move along
    Phi(gold) - Phi(rival); the loss then is -gap. `should_update` is a function of two floats that numba can compile.
    """

    other: bool  # the rival is the best labelling that is not gold; or else the best of all, unless that is gold
    should_update: Callable[[float, float], bool]
    limit: float = 0.0
    cost: float = 0.0
    unit: ComparisonUnit = "sequence"


class Decision(NamedTuple):
    """What a criterion asks for after comparing gold with candidates: which of them to move away from."""

    rival: Tensor  # (B,) int64, an index among the candidates
    updates: Tensor  # (B,) bool, whether weights move at all
    whole: Tensor  # (B,) bool, whether all weights move; or else those of local features alone


class Criterion(nn.Module, ABC):
    """Base of criteria: forward(scored) -> losses (B,), one per sequence; the tagger sums them.

    Losses are differentiable through the scores of chosen paths only, never through a maximum: ties would
    split the gradient. A sequence that asks for no update still gives an attached zero. So does one without any legal
    path, such as one with a token at which every label is -inf: its loss is 0, and so is its gradient. Where gold alone
    is impossible, the loss may be infinite. Scores of +inf or NaN make the loss of their sequence NaN.
    """

    min_candidates = 1  # candidates the search must deliver per sequence
    needs_lattice = False  # True when the loss needs a sum or maxima over all labellings, not candidates alone
    probabilistic = False  # True when training makes exp(score - log Z) a probability
    corpus_level = False  # True when the objective is no sum over sequences: see CorpusCriterion
    unit: ComparisonUnit = "sequence"  # in what gold is compared with rivals
    independent_sentences = (
        False  # True when the sentences of a sequence have nothing to do with one another for local scores
    )

    def allocate(self, labels: LabelSet) -> None:
        """Learn what the labels mean; most criteria compare scores alone and need not."""

    def transform_lattice(self, lattice: Lattice) -> Lattice:
        """Return the lattice whose path scores count, in training and everywhere else; by default the scorer's own.

        It is given after constraints, and what is impossible stays so.
        """
        return lattice

    def rule(self) -> UpdateRule | None:
        """Return what the criterion does to a sequence with local scores alone; None where that is no such rule."""
        return None

    def augment(self, lattice: Lattice, gold: Tensor) -> Lattice:
        """Return the lattice that training searches for candidates; by default the one whose scores count."""
        return lattice

    def add_cost(self, scored: Scored) -> Scored:
        """Return gold and candidates with what is added to their scores before they are compared; here nothing."""
        return scored

    def decide(self, scored: Scored) -> Decision | None:
        """Return what is asked for, without gradients, where the loss is the gap to one candidate; None elsewhere.

        scored: as `add_cost` returns it.
        """
        return None

    @abstractmethod
    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,), and for which sequences the loss changes weights (B,) bool."""

    def forward(self, scored: Scored) -> Tensor:
        """Return the losses (B,) of the sequences."""
        return self.losses_and_updates(scored)[0]


class InferenceCriterion(Criterion):
    """A criterion of a saved model whose module is not loaded: new text is labelled without it, as it was with it.

    Args:
        path: dotted path of its class.
        probabilistic: whether exp(score - log Z) is a probability.
        independent_sentences: whether sentences of a sequence are independent of one another.
        description: what is said of it in the saved model.
    """

    min_candidates = 0

    def __init__(
        self, path: str, probabilistic: bool, independent_sentences: bool, description: dict[str, Any]
    ) -> None:
        super().__init__()
        self.path, self.description = path, description
        self.probabilistic, self.independent_sentences = probabilistic, independent_sentences

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Raise InputError: the class itself is needed for training."""
        module = self.path.rpartition(".")[0]
        raise InputError(f"{self.path} is needed for training; load the model with its module, trusted=[{module!r}]")


class PairwiseLoss(Criterion):
    """Base of criteria that compare gold with one rival: loss = [asks] * (s(rival) - s(gold)).

    With step 1 its gradient step is Phi(gold) - Phi(rival). A subclass says which candidate is the rival, and at which
    gap it asks for an update.
    """

    @abstractmethod
    def rival(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return an index among the candidates (B,) int64, and whether that is a rival at all (B,) bool."""

    @abstractmethod
    def should_update(self, gap: Tensor) -> Tensor:
        """Return whether gap (B,) = s(gold) - s(rival), without gradients, asks for an update: (B,) bool."""

    def decide(self, scored: Scored) -> Decision:
        """Return the rival, and whether it asks for an update."""
        check_candidates(self, scored)
        rival, exists = self.rival(scored)
        updates = exists & self.should_update(total_gap(scored, rival).detach())
        return Decision(rival, updates, torch.ones_like(updates))

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,), 0 where no update is asked for, and where one is asked for (B,) bool."""
        scored = self.add_cost(scored)
        decision = self.decide(scored)
        return losses(scored, decision), decision.updates


def losses(scored: Scored, decision: Decision) -> Tensor:
    """Return the losses (B,) of a decision: by how much the rival leads gold, and 0 where nothing is asked for."""
    gaps = torch.where(decision.whole, total_gap(scored, decision.rival), local_gap(scored, decision.rival))
    # where() and not a product: the gap of a sequence without rival is infinite
    return torch.where(decision.updates, -gaps, 0.0)


def check_unit(criterion: Criterion, name: str, unit: str) -> None:
    """Raise InputError if the option `name` of a criterion is no unit."""
    if unit not in get_args(ComparisonUnit):
        raise InputError(f"{type(criterion).__name__}: {name} must be sequence or sentence, got {unit!r}")


def check_candidates(criterion: Criterion, scored: Scored) -> None:
    """Raise ValueError when the search gave fewer candidates than the criterion compares."""
    K = scored.candidates.labels.shape[1]
    if criterion.min_candidates > K:
        name, k = type(criterion).__name__, criterion.min_candidates
        raise ValueError(f"{name} needs a rival: search gave K={K}; set search.k >= {k}")


def without_path(lattice: Lattice, impossible: Tensor) -> Tensor:
    """Return (B,) bool, True for sequences of which no path is legal; `impossible` (B,) bool says where gold is not."""
    if impossible.device.type == "cpu" and not torch.compiler.is_compiling() and not bool(impossible.any()):
        return impossible  # no need to sum over all of them
    with torch.no_grad():
        return impossible & (log_partition(lattice) == -torch.inf)


def is_gold(scored: Scored) -> Tensor:
    """Return (B, K) bool, True where the candidate equals gold at every real token; both are 0 in the padding."""
    return (scored.candidates.labels == scored.gold[:, None]).all(-1)


def best(scored: Scored, among: Tensor) -> Tensor:
    """Return the index (B,) of the candidate of highest total score among (B, K) bool; the earlier one on ties."""
    return highest(scored.candidate_scores + scored.candidate_nonlocal, among & scored.candidates.valid)


def highest(scores: Tensor, among: Tensor) -> Tensor:
    """Return the index (B,) of the highest of the scores (B, K) among (B, K) bool; the earlier one on ties."""
    return scores.detach().masked_fill(~among, -torch.inf).argmax(1)


def local_gap(scored: Scored, rival: Tensor) -> Tensor:
    """Return the local score of gold less that of the candidate `rival` (B,), as (B,)."""
    return scored.gold_scores - scored.candidate_scores.gather(1, rival[:, None]).squeeze(1)


def total_gap(scored: Scored, rival: Tensor) -> Tensor:
    """Return the total score of gold less that of the candidate `rival` (B,), as (B,)."""
    nonlocal_gap = scored.gold_nonlocal - scored.candidate_nonlocal.gather(1, rival[:, None]).squeeze(1)
    return local_gap(scored, rival) + nonlocal_gap


def compared(lattice: Lattice, gold: Tensor, candidates: Candidates) -> Scored:
    """Return gold (B, T) and candidates with their scores in a lattice, with gradients; non-local scores are zeros."""
    own = path_score(lattice, torch.cat([gold[:, None], candidates.labels], 1))
    none = own.new_zeros(own.shape)
    return Scored(lattice, gold, candidates, own[:, 0], own[:, 1:], none[:, 0], none[:, 1:])


def slice_candidates(scored: Scored, places: slice) -> Scored:
    """Return gold and the candidates of some places."""
    candidates = Candidates(*(part[:, places] for part in scored.candidates))
    own, more = scored.candidate_scores[:, places], scored.candidate_nonlocal[:, places]
    return scored._replace(candidates=candidates, candidate_scores=own, candidate_nonlocal=more)


def empty_candidates(lattice: Lattice) -> Candidates:
    """Return an empty list of candidates per sequence, for criteria that compare gold with all labellings at once."""
    B, T, _ = lattice.unary.shape
    none = lattice.unary.new_zeros(B, 0)
    return Candidates(lattice.lengths.new_zeros(B, 0, T), none, none.bool())


def full_precision(device: torch.device) -> AbstractContextManager[Any]:
    """Return a context without autocast, which some kinds of devices do not have in the first place."""
    return torch.autocast(device.type, enabled=False) if torch.amp.is_autocast_available(device.type) else nullcontext()
