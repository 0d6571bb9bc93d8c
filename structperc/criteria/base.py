"""The contract of a criterion, the perceptron-like losses that compare the gold sequence with one candidate.

A wrong candidate differs from the gold sequence; the rival is the wrong candidate that it is compared with.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from structperc.chain import log_partition, path_score
from structperc.compiled_forms import Compilable, CriterionForm
from structperc.criteria.costs import Costs, as_costs, sum_terms
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.structures import Candidates, Lattice, Scored, real_tokens

ComparisonUnit = Literal["sequence", "sentence"]  # label sequences are compared as a whole or sentence by sentence


LOSS_METHODS = ("losses_and_updates", "weighted", "forward", "transform_lattice")


class UpdateRule(NamedTuple):
    """Update rule of a `PairwiseLoss` as a function and numbers, for tensors and for compiled loops.

    Attributes:
        exclude_gold: the rival is the best wrong candidate; otherwise the best candidate.
        should_update: function of the gap and the threshold, see `PairwiseLoss.should_update`.
        threshold: its second argument.
        costs: added to the score of a candidate for its wrong labels; None: no costs.
        unit: unit of comparison, "sequence" or "sentence".
    """

    exclude_gold: bool
    should_update: Callable[..., Any]
    threshold: float = 0.0
    costs: Costs | None = None
    unit: ComparisonUnit = "sequence"


class Decision(NamedTuple):
    """Rival of each sequence and the weights that its update changes."""

    rival: Tensor  # (B,) int64, index among the candidates
    updates: Tensor  # (B,) bool, True where weights change
    updates_nonlocal: Tensor  # (B,) bool, True where all weights change, False where only those of local features do


class Criterion(Compilable, nn.Module, ABC):
    """Base class of criteria.

    `forward(scored)` returns losses (B,), one per sequence; the tagger sums them. A subclass defines
    `losses_and_updates`. Losses are differentiable through the scores of chosen paths only, never through a maximum:
    ties would split the gradient. A sequence without an update has loss 0 and gradient 0, and so has a sequence without
    a legal path, for instance if every label of a token is -inf. If only the gold path is impossible, the loss may be
    infinite. Scores of +inf or NaN make the loss of their sequence NaN.

    Example:
        >>> import torch
        >>> from structperc.chain import kbest
        >>> from structperc.criteria import Criterion
        >>> from structperc.criteria.base import score_candidates
        >>> from structperc.structures import Lattice
        >>> class SquaredLead(Criterion):
        ...     def losses_and_updates(self, scored):
        ...         lead = (scored.candidate_scores[:, 0] - scored.gold_scores).relu()
        ...         return lead**2, lead > 0
        >>> lattice = Lattice(torch.tensor([[[0.0, 1.0], [2.0, 0.0]]]), torch.zeros(1, 1, 2, 2), torch.tensor([2]))
        >>> SquaredLead()(score_candidates(lattice, torch.tensor([[1, 1]]), kbest(lattice, k=1)))  # (3 - 1)^2
        tensor([4.])
    """

    min_candidates = 1  # candidates the search must deliver per sequence; 0: it compares with all label sequences
    learns_from_lists = False  # True if it compares all candidates of a list: more of them train better
    probabilistic = False  # True if training makes exp(score - log Z) a probability
    supports_segments = False  # True if it learns from scores of segments
    supports_incomplete = False  # True if it learns from sets of allowed labels, `Scored.allowed`
    max_token_weight = 0.0  # largest weight of a token in `losses_and_updates`; 0: only sequences have weights
    unit: ComparisonUnit = "sequence"
    local_unit: ComparisonUnit | None = None  # unit of a further comparison by local scores; None: there is none

    form_methods: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "compiled": ("transform_lattice",),
        "compiled_loss": (*LOSS_METHODS, "augment"),
    }

    def compiled(self) -> CriterionForm | None:
        """Return what predictions depend on, so that they need no code of the criterion; None if they need it.

        A subclass that redefines `transform_lattice` has none, unless it redefines this method, too.
        """
        return CriterionForm(type(self).__name__, self.probabilistic, self.independent_sentences)

    def compiled_loss(self) -> UpdateRule | Literal["decision", "likelihood"] | None:
        """Return the form in which compiled code learns complete labels; None if it cannot.

        It is an update rule for local scores; "decision" for updates by `CandidateLoss.decide`; or "likelihood" if the
        losses are those of `CRFLoss()`. A subclass that redefines a method on which it depends has none, unless it
        redefines this method, too.
        """
        return None

    @property
    def independent_sentences(self) -> bool:
        """True if the local scores of a sentence do not depend on other sentences."""
        return "sentence" in (self.unit, self.local_unit)

    def allocate(self, labels: LabelSet) -> None:
        """Set the label set; most criteria need only scores."""

    def transform_lattice(self, lattice: Lattice) -> Lattice:
        """Return the lattice whose path scores are used in training and prediction; by default that of the scorer.

        The lattice is constrained already, and impossible labels must stay impossible.
        """
        return lattice

    def augment(self, lattice: Lattice, gold: Tensor) -> Lattice:
        """Return the lattice in which training searches for candidates; by default the same."""
        return lattice

    @abstractmethod
    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,), and the update mask (B,) bool: True where the loss changes weights."""

    def weighted(self, losses: Tensor, scored: Scored) -> Tensor:
        """Return the losses (B,) times the weights of the sequences, which are those of their first tokens."""
        if scored.weights is None or self.max_token_weight or not scored.gold.shape[1]:
            return losses
        return losses * scored.weights[:, 0].to(losses.dtype)

    def forward(self, scored: Scored) -> Tensor:
        """Return the losses (B,) of the sequences, with their weights."""
        return self.weighted(self.losses_and_updates(scored)[0], scored)


class InferenceCriterion(Criterion):
    """Placeholder for a user's criterion whose module is not trusted: the model predicts, but cannot be trained.

    Args:
        path: dotted path of the class.
        form: what predictions depend on.
        description: the entry of the saved model.
    """

    min_candidates = 0
    supports_segments = True

    def __init__(self, path: str, form: CriterionForm, description: dict[str, Any]) -> None:
        super().__init__()
        self.path, self.form, self.description = path, form, description
        self.probabilistic, self.local_unit = form.probabilistic, "sentence" if form.independent_sentences else None

    def compiled(self) -> CriterionForm:
        """Return the saved form."""
        return self.form

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Raise InputError: training needs the class itself."""
        module = self.path.rpartition(".")[0]
        raise InputError(f"{self.path} is needed for training; load the model with its module, trusted=[{module!r}]")


class CandidateLoss(Criterion):
    """Base class of losses that compare the gold sequence with one candidate.

    loss = [update] (s(rival) - s(y*)), y* the gold sequence and the rival the candidate that `decide` chooses. With
    step size 1 the gradient step is Phi(y*) - Phi(rival). With the optimizers Perceptron and PassiveAggressive, sparse
    features and a CPU, weights are learned sequence by sequence from `decide`, without computing the losses; those of
    a subclass that redefines `forward` or `losses_and_updates` are learned by gradients.
    """

    supports_segments = True
    cost: float | Costs  # of wrong labels, added to the score of a candidate; none by default
    form_methods: ClassVar[Mapping[str, tuple[str, ...]]] = {**Criterion.form_methods, "compiled_loss": LOSS_METHODS}

    @abstractmethod
    def decide(self, scored: Scored) -> Decision:
        """Return the rival and the update masks, without gradients; costs are part of the scores."""

    def compiled_loss(self) -> UpdateRule | Literal["decision"] | None:
        """Return "decision"."""
        return "decision"

    def local_rule(self) -> UpdateRule | None:
        """Return the update rule of local weights, applied after `decide`; None without such updates."""
        return None

    def allocate(self, labels: LabelSet) -> None:
        """Set the label set of the costs."""
        if self.costs is not None:
            self.costs.allocate(labels)

    @property
    def costs(self) -> Costs | None:
        """The costs of wrong labels; None without."""
        return as_costs(getattr(self, "cost", 0.0))

    def augment(self, lattice: Lattice, gold: Tensor) -> Lattice:
        """Return the lattice with costs added to the scores of wrong labels, given gold labels (B, T) int64."""
        return add_costs(lattice, gold, self.costs)

    def add_cost(self, scored: Scored) -> Scored:
        """Return the candidates with the costs of their labels added to their scores."""
        if self.costs is None:
            return scored
        real = real_tokens(scored.lattice.lengths, scored.gold.shape[1])
        terms = self.costs.terms(scored.gold, real, scored.lattice.unary.shape[2])
        costs = sum_terms(terms, scored.candidates.labels, real).to(scored.gold_scores.dtype)
        return scored._replace(candidate_scores=scored.candidate_scores + costs)

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,), 0 without an update, and the update mask (B,) bool.

        Raises:
            InputError: `local_rule` compares sentences, for which there are no losses of whole sequences.
        """
        if self.local_rule() is not None:
            raise InputError(
                f"{type(self).__name__}: local_unit sentence needs learning sequence by sequence; use SparseLinear, "
                "or SegmentLinear with it, and the optimizer Perceptron or PassiveAggressive on a CPU, without prior, "
                "clipping and accumulation"
            )
        scored = self.add_cost(scored)
        decision = self.decide(scored)
        return losses(scored, decision), decision.updates


class PairwiseLoss(CandidateLoss):
    """Base class of losses whose update depends on one number, the gap between the gold sequence and a rival.

    gap = s(y*) - s(rival) - cost of the rival. The rival is the candidate of highest score plus cost; with
    `exclude_gold`, the best wrong candidate. With incomplete labels, y* is the best path of allowed labels, from which
    costs are counted, and a candidate is wrong if one of its labels is not allowed (Yu & Joachims 2009).
    A subclass defines `should_update` and may set the attributes `exclude_gold`, `threshold`, `cost` and `unit`. The
    same definition is used for gradients of mini-batches and in the compiled loop over sequences. A subclass that
    redefines another method is learned by gradients.
    """

    exclude_gold = False
    threshold = 0.0
    supports_incomplete = True

    form_methods: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **Criterion.form_methods,
        "compiled_loss": (*LOSS_METHODS, "augment", "add_cost", "decide", "local_rule"),
    }

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "exclude_gold" in vars(cls):
            cls.min_candidates = 2 if cls.exclude_gold else 1

    @staticmethod
    @abstractmethod
    def should_update(gap: Any, threshold: Any) -> Any:
        """Return True if the gap requires an update; for a tensor of gaps, a mask.

        Numba compiles it: use operators of floats and tensors (`<`, `&`, `+`), without `if` and `and`.
        """

    def compiled_loss(self) -> UpdateRule:
        """Return the rule as numbers and a function for a compiled loop."""
        return UpdateRule(self.exclude_gold, self.should_update, self.threshold, self.costs, self.unit)

    def decide(self, scored: Scored) -> Decision:
        """Return the best rival, and update masks from `should_update`."""
        check_candidates(self, scored)
        wrong = scored.candidates.valid & ~is_gold(scored)
        rival = best(scored, wrong if self.exclude_gold else scored.candidates.valid)
        gap = total_gap(scored, rival).detach()
        needed = self.should_update(gap, self.threshold)
        needed = needed if isinstance(needed, Tensor) else torch.full_like(gap, needed, dtype=torch.bool)
        updates = wrong.gather(1, rival[:, None]).squeeze(1) & needed
        return Decision(rival, updates, torch.ones_like(updates))


def add_costs(lattice: Lattice, gold: Tensor, costs: Costs | None) -> Lattice:
    """Return a lattice with the terms of costs added to its scores, given gold labels (B, T) int64."""
    if costs is None:
        return lattice
    terms = costs.terms(gold, real_tokens(lattice.lengths, gold.shape[1]), lattice.unary.shape[2])
    return lattice._replace(unary=lattice.unary + terms.to(lattice.unary.dtype))


def losses(scored: Scored, decision: Decision) -> Tensor:
    """Return the losses (B,) of a decision: the lead of the rival over the gold sequence, 0 without an update."""
    gaps = torch.where(decision.updates_nonlocal, total_gap(scored, decision.rival), local_gap(scored, decision.rival))
    # where() and not a product: the gap of a sequence without rival is infinite
    return torch.where(decision.updates, -gaps, 0.0)


# -- checks ---------------------------------------------------------------------------------------------------


def checked_unit(criterion: Criterion, name: str, unit: ComparisonUnit) -> ComparisonUnit:
    """Return the option `name` of a criterion. Raises InputError if it is not a unit."""
    if unit not in get_args(ComparisonUnit):
        raise InputError(f"{type(criterion).__name__}: {name} must be sequence or sentence, got {unit!r}")
    return unit


def check_candidates(criterion: Criterion, scored: Scored) -> None:
    """Raise ValueError if the search gave fewer candidates than the criterion compares."""
    K = scored.candidates.labels.shape[1]
    if criterion.min_candidates > K:
        name, k = type(criterion).__name__, criterion.min_candidates
        raise ValueError(f"{name} needs a rival: search gave K={K}; set search.k >= {k}")


# -- scores of gold sequences and candidates -------------------------------------------------------------------


def score_candidates(lattice: Lattice, gold: Tensor, candidates: Candidates) -> Scored:
    """Score the gold sequences and the candidates in a lattice: the input of a criterion.

    Returns `Scored` with differentiable local scores; non-local scores are zeros.

    Args:
        lattice: local scores, with gradients.
        gold: gold labels (B, T) int64, 0 in the padding.
        candidates: candidates of a search, for instance of `structperc.chain.kbest`.
    """
    scores = path_score(lattice, torch.cat([gold[:, None], candidates.labels], 1))
    zeros = scores.new_zeros(scores.shape)
    return Scored(lattice, gold, candidates, scores[:, 0], scores[:, 1:], zeros[:, 0], zeros[:, 1:])


def slice_candidates(scored: Scored, places: slice) -> Scored:
    """Keep the candidates at some ranks, with their scores.

    `scored`: gold sequences and K candidates. `places`: slice of the ranks 0..K-1.
    """
    candidates = Candidates(*(part[:, places] for part in scored.candidates))
    local, further = scored.candidate_scores[:, places], scored.candidate_nonlocal[:, places]
    return scored._replace(candidates=candidates, candidate_scores=local, candidate_nonlocal=further)


def empty_candidates(lattice: Lattice) -> Candidates:
    """Return no candidates, (B, 0, T), for criteria that compare the gold sequence with all paths.

    `lattice`: Scores of B sequences.
    """
    B, T, _ = lattice.unary.shape
    none = lattice.unary.new_zeros(B, 0)
    return Candidates(lattice.lengths.new_zeros(B, 0, T), none, none.bool())


def is_gold(scored: Scored) -> Tensor:
    """Return (B, K) bool, True for candidates that equal the gold sequence at every token; padding is 0 in both.

    With incomplete labels, True for candidates whose labels are all allowed.
    """
    if scored.allowed is not None:
        return is_allowed(scored.candidates.labels, scored.allowed).all(-1)
    return (scored.candidates.labels == scored.gold[:, None]).all(-1)


def is_allowed(labels: Tensor, allowed: Tensor) -> Tensor:
    """Return (B, K, T) bool, True for labels (B, K, T) in the sets (B, T, L) bool; True in the padding."""
    return allowed.gather(2, labels.transpose(1, 2)).transpose(1, 2)


def best(scored: Scored, among: Tensor) -> Tensor:
    """Return the index (B,) of the best candidate by total score among (B, K) bool; of equal scores the first."""
    return highest(scored.candidate_scores + scored.candidate_nonlocal, among & scored.candidates.valid)


def highest(scores: Tensor, among: Tensor) -> Tensor:
    """Return the index (B,) of the highest of the scores (B, K) among (B, K) bool; of equal scores the first."""
    return scores.detach().masked_fill(~among, -torch.inf).argmax(1)


def local_gap(scored: Scored, rival: Tensor) -> Tensor:
    """Return the local score of the gold sequence minus that of the candidate `rival` (B,), as (B,)."""
    return scored.gold_scores - scored.candidate_scores.gather(1, rival[:, None]).squeeze(1)


def total_gap(scored: Scored, rival: Tensor) -> Tensor:
    """Return the total score of the gold sequence minus that of the candidate `rival` (B,), as (B,)."""
    nonlocal_gap = scored.gold_nonlocal - scored.candidate_nonlocal.gather(1, rival[:, None]).squeeze(1)
    return local_gap(scored, rival) + nonlocal_gap


def without_path(lattice: Lattice, impossible: Tensor) -> Tensor:
    """Return (B,) bool, True for sequences without a legal path; `impossible` (B,) bool marks illegal gold paths."""
    if impossible.device.type == "cpu" and not torch.compiler.is_compiling() and not bool(impossible.any()):
        return impossible  # without the sum over all paths
    with torch.no_grad():
        return impossible & (log_partition(lattice) == -torch.inf)


def without_autocast(device: torch.device) -> AbstractContextManager[Any]:
    """Return a context that turns autocast off, on every kind of device.

    `device`: device of the tensors; a device without autocast gets a context that does nothing.
    """
    return torch.autocast(device.type, enabled=False) if torch.amp.is_autocast_available(device.type) else nullcontext()
