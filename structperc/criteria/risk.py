"""Expected costs: over all label sequences, and over n-best lists."""

import torch
from torch import Tensor

from structperc.chain import marginals
from structperc.chain.minimum_risk import scale
from structperc.criteria.base import Criterion, check_candidates
from structperc.criteria.costs import Costs, as_costs
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.structures import Scored, real_tokens


class _ExpectedCost(Criterion):
    """Base class of expected costs.

    Args:
        cost: cost of each wrong label, or costs of labels or segments.
        temperature: number by which scores are divided: p(y) is proportional to exp(s(y) / temperature).

    Raises:
        InputError: a negative cost, or a temperature that is not positive.
    """

    def __init__(self, cost: float | Costs = 1.0, temperature: float = 1.0) -> None:
        super().__init__()
        if not 0 < temperature < torch.inf:
            raise InputError(f"{type(self).__name__}: temperature must be > 0 and finite, got {temperature}")
        if as_costs(cost) is None:
            raise InputError(f"{type(self).__name__}: cost must be > 0, got {cost}")
        self.cost, self.temperature = cost, temperature

    def allocate(self, labels: LabelSet) -> None:
        """Set the label set of the costs."""
        if isinstance(self.cost, Costs):
            self.cost.allocate(labels)

    @property
    def costs(self) -> Costs:
        """The costs of label sequences."""
        found = as_costs(self.cost)
        assert found is not None
        return found


class RiskLoss(_ExpectedCost):
    """Expected cost of all label sequences, the risk. Smith & Eisner 2006.

    loss = sum over y of p(y) cost(y), p(y) proportional to exp(s(y) / temperature), with local scores s. The cost is
    the sum of its `terms` over the tokens: exact for `TokenCosts`, an upper bound for `SegmentCosts`. The expectation
    is then exact, sum over t and j of p(y_t = j) cost(t, j), with weights of tokens as factors. It is not convex: start
    from a model trained by `CRFLoss` (`model.init_from`), possibly with a temperature that falls from run to run.

    Args:
        temperature: number by which scores are divided; near 0 the loss is the cost of the best label sequence.

    Raises:
        InputError: a negative cost, or a temperature that is not positive.

    Example:
        >>> import torch
        >>> from structperc.criteria import RiskLoss
        >>> from structperc.criteria.base import empty_candidates, score_candidates
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.tensor([[[1.0, 3.0]]]).log(), torch.zeros(1, 1, 2, 2), torch.tensor([1]))
        >>> RiskLoss(cost=2.0)(score_candidates(lattice, torch.tensor([[1]]), empty_candidates(lattice)))  # 2 / 4
        tensor([0.5000])
    """

    max_token_weight = torch.inf
    supports_segments = True
    min_candidates = 0

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0, and an update mask that is True everywhere."""
        lattice = scale(scored.lattice, self.temperature)
        p, (_, T, L) = marginals(lattice), lattice.unary.shape
        real = real_tokens(lattice.lengths, T)
        terms = self.costs.terms(scored.gold, real, L).to(p.dtype)
        if scored.weights is not None:
            terms = terms * scored.weights.to(p.dtype).unsqueeze(2)
        losses = (p * terms.where(real.unsqueeze(2), 0)).sum((1, 2))
        return losses, torch.ones_like(losses, dtype=torch.bool)


class NBestRiskLoss(_ExpectedCost):
    """Expected cost of the candidates of an n-best list. Smith & Eisner 2006.

    loss = sum over candidates y of p(y) cost(y), p(y) = exp(s(y) / temperature) / (sum over candidates), with total
    scores s. It supports non-local features, and costs that are not a sum over tokens, such as the exact comparison of
    segments by `SegmentCosts`. The gold sequence counts if it is among the candidates. The search should return 10
    candidates or more; a tagger's default is 20.

    Args:
        temperature: number by which scores are divided; for scores of margin training, about their size.

    Raises:
        InputError: a negative cost, or a temperature that is not positive.
        ValueError: the search gives fewer than two candidates.
    """

    min_candidates = 2
    learns_from_lists = True
    supports_segments = True

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0, and the update mask (B,) bool: True where there are several candidates."""
        check_candidates(self, scored)
        labels, _, valid = scored.candidates
        several = valid.sum(1) > 1
        scores = (scored.candidate_scores + scored.candidate_nonlocal) / self.temperature
        # 0 in rows without candidates: the softmax of -inf has no gradient
        p = scores.where(valid, torch.where(valid.any(1), -torch.inf, 0.0).unsqueeze(1)).softmax(1)
        real = real_tokens(scored.lattice.lengths, scored.gold.shape[1])
        costs = self.costs(scored.gold, labels, real, scored.lattice.unary.shape[2])
        return (p * costs.to(p.dtype).where(valid, 0)).sum(1), several
