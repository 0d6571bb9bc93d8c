"""Negative log-likelihoods: random fields (CRF), with costs, maximum-entropy taggers (MEMM), tokens; distillation."""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, one_hot

from structperc.chain import allow, locally_normalised, log_partition, marginals
from structperc.chain.lattices import full_precision
from structperc.chain.marginals import step_log_probabilities
from structperc.criteria.base import Criterion, add_costs, without_path
from structperc.criteria.costs import Costs, as_costs, check_number, label_ids
from structperc.data.labels import LabelSet
from structperc.errors import InputError
from structperc.structures import Lattice, Scored, real_tokens


class EntityRatio(nn.Module):
    """Penalty of an expected share of entity tokens that is far from a given one. Effland & Collins 2021, section 3.

    penalty = weight max(0, |rho' - rho| - margin), where rho' is the share of tokens in entities that the model expects
    in a mini-batch: the sum of the probabilities of labels other than O, divided by the number of tokens. It keeps a
    model from finding entities everywhere when no token of the training data is known to be outside of entities. Each
    sequence of a mini-batch has this penalty, so that its weight does not depend on the batch size. Mini-batches should
    contain a typical mixture of sequences. Scores must be those of a probabilistic model.

    Args:
        ratio: rho, the share of tokens in entities, 0..1.
        margin: deviation without penalty.
        weight: weight of the penalty.

    Raises:
        InputError: a ratio outside 0..1, or a negative margin or weight.
    """

    inside: Tensor

    def __init__(self, ratio: float = 0.15, margin: float = 0.05, weight: float = 10.0) -> None:
        super().__init__()
        if not 0 <= ratio <= 1 or not margin >= 0 or not weight >= 0:
            values = f"{ratio}, {margin} and {weight}"
            raise InputError(f"EntityRatio: ratio must be in 0..1, margin and weight >= 0, got {values}")
        self.ratio, self.margin, self.weight = ratio, margin, weight

    def allocate(self, labels: LabelSet) -> None:
        """Set the label set.

        Raises:
            InputError: labels without a tag scheme.
        """
        if labels.scheme == "none":
            raise InputError("EntityRatio: labels of scheme none have no entities; remove entity_ratio")
        self.register_buffer("inside", labels.types >= 0, persistent=False)

    def forward(self, lattice: Lattice) -> Tensor:
        """Return the penalty () of each sequence of a mini-batch."""
        share = marginals(lattice)[..., self.inside].sum() / lattice.lengths.sum().clamp(min=1)
        return self.weight * ((share - self.ratio).abs() - self.margin).clamp(min=0)


class CRFLoss(Criterion):
    """Negative log-likelihood of a conditional random field (CRF). Lafferty, McCallum & Pereira 2001.

    loss = log Z - s(y*) = -log p(y* | x) >= 0, with local scores s and Z = sum over all paths y of exp(s(y)). With
    incomplete labels it is the partial likelihood (Bellare & McCallum 2007; Tsuboi et al. 2008), log Z - log Z', where
    Z' is the sum over the paths of allowed labels: the probability that one of them is right.

    Without tokens labelled O, Z' is largest if entities are everywhere. Two numbers prevent that. `missed_share` is the
    share m of the entities that the annotation lacks, at random: each entity of a path that begins at a token which
    may be O or not has probability m of not being labelled, so that Z' = sum over the allowed paths of exp(s(y)) m^n
    with n such entities. This is the likelihood of the annotation (after Elkan & Noto 2008); m = 0 takes unknown tokens
    as O. `entity_ratio` is a penalty of the expected share of entity tokens.

    With `confidences`, the weights of tokens in the data are confidences of their labels, as soft evidence (Pearl 1988,
    section 2.2.2): Z' = sum over all paths of exp(s(y)) prod over t of q_t(y_t), where q_t is 1 for the given label, or
    for the allowed ones, and 1 - w_t for all others. Weights of 1 give the likelihood, a weight of 0 an unknown label.
    Weights above 1 have no meaning, since 1 - w_t would be negative.

    Args:
        entity_ratio: the penalty, or None.
        missed_share: m, 0..1; 1: nothing is known about it.
        confidences: True if weights in the data are confidences of tokens, 0..1; by default they are weights of
            sequences, which multiply the losses.

    Raises:
        InputError: a share outside 0..1, or confidences with a share of missed entities.

    Example:
        >>> import torch
        >>> from structperc.criteria import CRFLoss
        >>> from structperc.criteria.base import empty_candidates, score_candidates
        >>> from structperc.structures import Lattice
        >>> lattice = Lattice(torch.zeros(1, 2, 3), torch.zeros(1, 1, 3, 3), torch.tensor([2]))
        >>> loss = CRFLoss()(score_candidates(lattice, torch.tensor([[0, 2]]), empty_candidates(lattice)))
        >>> (-loss).exp()  # the gold path is one of 3 * 3 equal paths
        tensor([0.1111])
    """

    probabilistic = supports_incomplete = supports_segments = True
    min_candidates = 0

    beginning: Tensor

    def __init__(
        self, entity_ratio: EntityRatio | None = None, missed_share: float = 1.0, confidences: bool = False
    ) -> None:
        super().__init__()
        if not 0 <= missed_share <= 1:
            raise InputError(f"CRFLoss: missed_share must be in 0..1, got {missed_share}")
        if confidences and missed_share < 1:
            raise InputError("CRFLoss: missed_share and confidences describe the same errors; set one of them")
        self.entity_ratio, self.missed_share, self.confidences = entity_ratio, missed_share, confidences
        self.max_token_weight = 1.0 if confidences else 0.0

    def allocate(self, labels: LabelSet) -> None:
        """Set the label set.

        Raises:
            InputError: a share of missed entities, but labels that do not show where entities begin.
        """
        if self.entity_ratio is not None:
            self.entity_ratio.allocate(labels)
        if self.missed_share < 1:
            types, opening = labels.segmentation
            beginning = (types >= 0) & opening.all(0)
            if set(types[beginning].tolist()) != set(range(len(labels.type_names))) or "O" not in labels.names:
                raise InputError(f"CRFLoss: missed_share needs a scheme such as IOB2 or IOBES, not {labels.scheme}")
            self.register_buffer("beginning", torch.from_numpy(beginning), persistent=False)
            self.outside = labels.index("O")

    def compiled_loss(self) -> Literal["likelihood"] | None:
        """Return "likelihood", for losses without penalty and confidences."""
        return None if self.entity_ratio or self.confidences else "likelihood"

    def allowed_lattice(self, lattice: Lattice, allowed: Tensor, confidences: Tensor | None = None) -> Lattice:
        """Return the lattice of the allowed paths, with log m for each entity that the annotation lacks.

        With confidences (B, T), other labels have log(1 - confidence) added to their scores.
        """
        if self.missed_share < 1:
            missing = allowed[:, :, self.outside, None] & self.beginning
            log_m = math.log(self.missed_share) if self.missed_share else -math.inf
            lattice = lattice._replace(unary=torch.where(missing, lattice.unary + log_m, lattice.unary))
        if confidences is None:
            return allow(lattice, allowed)
        others = lattice.unary + torch.log1p(-confidences.to(lattice.unary)).unsqueeze(2)
        return lattice._replace(unary=torch.where(allowed, lattice.unary, others))

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0, and an update mask that is True everywhere."""
        log_z, allowed = log_partition(scored.lattice), scored.allowed
        confidences = scored.weights if self.confidences else None
        if allowed is None and confidences is None:
            right = scored.gold_scores
        else:
            if allowed is None:
                allowed = one_hot(scored.gold, scored.lattice.unary.shape[2]).bool()
            right = log_partition(self.allowed_lattice(scored.lattice, allowed, confidences))
        losses = (log_z - right).where(log_z != -torch.inf, 0)
        if self.entity_ratio is not None:
            losses = losses + self.entity_ratio(scored.lattice)
        return losses, torch.ones_like(losses, dtype=torch.bool)


class SoftmaxMarginLoss(Criterion):
    """Softmax-margin loss: a CRF whose wrong label sequences count more by their cost. Gimpel & Smith 2010.

    loss = log sum over y of exp(s(y) + cost(y)) - s(y*), with local scores s and the terms of the cost, which are
    summed over the tokens. Cost 0 gives `CRFLoss`; for scores and costs multiplied by a large number, the loss divided
    by it tends to that of `HingeLoss`. It is an upper bound of the hinge and of `RiskLoss`. exp(score - log Z) is not
    calibrated: label sequences of high cost get too little probability.

    Args:
        cost: cost of each wrong label, or costs of labels or segments.

    Raises:
        InputError: a negative cost.
    """

    supports_segments = True
    min_candidates = 0

    def __init__(self, cost: float | Costs = 1.0) -> None:
        super().__init__()
        self.cost = cost
        as_costs(cost)  # raises its errors

    def allocate(self, labels: LabelSet) -> None:
        """Set the label set of the costs."""
        if isinstance(self.cost, Costs):
            self.cost.allocate(labels)

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0, and an update mask that is True everywhere."""
        log_z = log_partition(add_costs(scored.lattice, scored.gold, as_costs(self.cost)))
        losses = (log_z - scored.gold_scores).where(log_z != -torch.inf, 0)
        return losses, torch.ones_like(losses, dtype=torch.bool)


class DistillationLoss(Criterion):
    """Cross-entropy between a teacher's best label sequences and a CRF. Wang et al. 2020 (Top-K), section 3.1.

    loss = log Z - (1 - g) sum over k of q_k s(y_k) - g s(y*), where y_k are the teacher's label sequences, q_k their
    probabilities, normalised over the list, and g is the share of the gold labels. It is the likelihood of `CRFLoss` if
    the teacher gives the gold labels probability 1. Differs: without their temperature. The candidates are those of a
    `structperc.taggers.Teacher`, with its scores.

    Args:
        gold_share: g, 0..1; the share of the teacher is 1 - g.

    Raises:
        InputError: an invalid share.
    """

    probabilistic = supports_segments = True
    min_candidates = 0  # of the search: the teacher has them

    def __init__(self, gold_share: float = 0.0) -> None:
        super().__init__()
        if not 0 <= gold_share <= 1:
            raise InputError(f"DistillationLoss: gold_share must be in 0..1, got {gold_share}")
        self.gold_share = gold_share

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0, and an update mask that is True everywhere."""
        _, scores, valid = scored.candidates
        log_z, shares = log_partition(scored.lattice), scores.where(valid, -torch.inf).softmax(1)
        shares = shares.where(valid, 0.0).to(log_z.dtype)  # NaN without a valid one
        parts = (shares * scored.candidate_scores).where(valid, 0.0)
        losses = log_z - (1 - self.gold_share) * parts.sum(1)
        if self.gold_share:
            losses = losses - self.gold_share * scored.gold_scores
        losses = losses.where(valid.any(1) & (log_z != -torch.inf), 0)
        return losses, torch.ones_like(losses, dtype=torch.bool)


class _GoldLogProbability(Criterion):
    """Base class of losses -s(y*), for lattices whose scores are log-probabilities."""

    probabilistic = True
    min_candidates = 0

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0, and an update mask that is True everywhere."""
        losses = -scored.gold_scores
        losses = losses.where(~without_path(scored.lattice, losses.detach() == torch.inf), 0)
        return losses, torch.ones_like(losses, dtype=torch.bool)

    def weighted_losses(self, scored: Scored, logs: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return losses and update mask as above, given log-probabilities of the gold labels and weights (B, T)."""
        counted = real_tokens(scored.lattice.lengths, logs.shape[1]) & (weights > 0)
        losses = -(weights * logs.where(counted, 0)).sum(1)
        losses = losses.where(~without_path(scored.lattice, losses.detach() == torch.inf), 0)
        return losses, torch.ones_like(losses, dtype=torch.bool)


class MEMMLoss(_GoldLogProbability):
    """Negative log-likelihood of a maximum-entropy Markov model (MEMM). Ratnaparkhi 1996.

    loss = -sum over t of log p(y*_t | y*_{t-1}, x), with local scores; convex in the weights. A sum of softmax
    cross-entropies, one per token, each given the previous gold label. It is the first model of Collins (2002, Ranking
    Algorithms for Named-Entity Extraction), whose candidates have log-probabilities. The tagger's lattice is
    `locally_normalised`: every search ranks paths by their probability. Unlike in a CRF, later tokens do not change the
    probability of earlier labels. Differs: the history is one label; Ratnaparkhi's tagger has two.

    The terms of tokens are multiplied by their weights in the data; labels that no label can follow then have
    probability 0.
    """

    max_token_weight = math.inf

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0, and an update mask that is True everywhere."""
        if scored.weights is None:
            return super().losses_and_updates(scored)
        logs = step_log_probabilities(scored.lattice, scored.gold).to(scored.gold_scores.dtype)
        return self.weighted_losses(scored, logs, scored.weights.to(logs.dtype))

    def transform_lattice(self, lattice: Lattice) -> Lattice:
        """Return the lattice whose path scores are log-probabilities."""
        return locally_normalised(lattice)


class TokenCrossEntropyLoss(_GoldLogProbability):
    """Cross-entropy of the label of each token.

    loss = -sum over t of log softmax(unary[t])[y*_t], with local scores. The baseline for chain models (Huang, Xu & Yu
    2015; Reimers & Gurevych 2017): pairs of labels have no scores, so that the best path takes the best label of each
    token ("greedy"). It may break the rules of the tag scheme; metrics interpret it like conlleval. Set `transitions:
    false`: a transition matrix is not trained. The terms of tokens are multiplied by their weights in the data, and by
    the weights of their classes.

    Args:
        class_weights: weights of gold labels, or of types of segments for all of their labels, such as {"PER": 5.0};
            others are 1.

    Raises:
        InputError: a negative weight; from `allocate`, an unknown name.
    """

    max_token_weight = math.inf

    def __init__(self, class_weights: dict[str, float] | None = None) -> None:
        super().__init__()
        self.class_weights = class_weights
        for name, weight in (class_weights or {}).items():
            check_number(self, f"class_weights.{name}", weight)
        self.by_label: Tensor | None = None

    def allocate(self, labels: LabelSet) -> None:
        """Set the weights of the labels. Raises InputError for an unknown name."""
        if self.class_weights is not None:
            self.by_label = torch.ones(len(labels))
            for name, weight in self.class_weights.items():
                self.by_label[label_ids(labels, name, "TokenCrossEntropyLoss: class_weights")] = weight

    def losses_and_updates(self, scored: Scored) -> tuple[Tensor, Tensor]:
        """Return losses (B,) >= 0, and an update mask that is True everywhere."""
        if scored.weights is None and self.by_label is None:
            return super().losses_and_updates(scored)
        lattice, gold = scored.lattice, scored.gold
        logs = lattice.unary.gather(2, gold.unsqueeze(2)).squeeze(2)
        weights = torch.ones_like(logs) if scored.weights is None else scored.weights.to(logs.dtype)
        if self.by_label is not None:
            weights = weights * self.by_label.to(logs)[gold]
        return self.weighted_losses(scored, logs, weights)

    def transform_lattice(self, lattice: Lattice) -> Lattice:
        """Return the lattice whose path scores are log-probabilities; impossible labels stay impossible."""
        scores = full_precision(lattice.unary)
        possible = scores.detach().amax(2, keepdim=True) != -torch.inf  # otherwise the softmax and its gradient are NaN
        unary = log_softmax(scores.where(possible, 0), 2).where(possible, -torch.inf)
        return lattice._replace(unary=unary, edge=unary.new_zeros(1, 1, *lattice.edge.shape[2:]))
