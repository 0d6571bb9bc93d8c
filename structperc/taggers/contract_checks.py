"""Checks of a user's own parts before and in the first step of training: their options, and what they return.

Each method is checked at its first call and then is what it was, so that training is as fast as without checks.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from structperc.builder import Builder
from structperc.chain import KBest
from structperc.class_paths import OPTIONS
from structperc.criteria import CandidateLoss, CorpusCriterion, Criterion, Decision, PairwiseLoss
from structperc.encoders import Encoder, TokenEmbedder
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import NonlocalFeature
from structperc.optim import AveragedOptimizer, StepSizeRule
from structperc.scorers import Scorer
from structperc.structures import Batch, Candidates, Lattice, Scored, real_tokens
from structperc.taggers.serialization import describe, without_learned
from structperc.user_code import class_location, is_user_class

Check = Callable[..., str | None]  # (part, *arguments, returned) -> what is wrong with what was returned, or None


def check_options(model: nn.Module, features: FeatureExtractor) -> None:
    """Raise InputError for own parts of a model and its features that could not be built again from their options."""
    build = Builder.like(model, *features.foreign)
    for part in own_modules(model):
        _check_rebuilt(part, lambda one: without_learned(describe(one)), build)
    for attribute in features.documents.values():
        if is_user_class(type(attribute)):
            _check_rebuilt(attribute, lambda one: without_learned(one.to_json()), build)


def _check_rebuilt(part: object, tell: Callable[[Any], dict[str, Any]], build: Builder) -> None:
    """Raise InputError unless a part that is built from what `tell` tells of one has the same options."""
    cls, described = type(part), tell(part)
    try:
        json.dumps(described)
    except (TypeError, ValueError) as error:
        raise InputError(f"{class_location(cls)}: options must be plain values that JSON has ({error})") from None
    try:
        with torch.random.fork_rng(devices=[]):
            again = tell(build.part(described, cls, class_location(cls)))
    except TypeError as error:
        raise InputError(
            f"{class_location(cls)} cannot be built again from its options ({error}): name each of them in __init__, "
            "and keep it on self"
        ) from None
    for name, value in described[OPTIONS].items():
        if again[OPTIONS][name] != value:
            raise InputError(
                f"{class_location(cls)}: option {name} is {value!r}, and {again[OPTIONS][name]!r} in one that is built "
                f"from it: keep on self.{name} what __init__ is given"
            )


def check_contracts(model: nn.Module, n_labels: int) -> None:
    """Have what own parts of a model return checked when their methods are called first.

    A method that returns something else than its contract says raises InputError, with file, line and what to change.
    """
    for part in own_modules(model):
        for kind, method, check in CONTRACTS:
            if isinstance(part, kind) and _gives(part, method, kind):
                _check_once(part, method, check, n_labels)
        if isinstance(part, PairwiseLoss):
            _check_update_rule(part)


def _check_update_rule(part: PairwiseLoss) -> None:
    """Raise InputError for an update rule that gives no bool for a number, or no mask for a tensor."""
    place = class_location(type(part), "should_update")
    answer = part.should_update(1.0, float(part.threshold))
    if not isinstance(answer, bool | np.bool_):
        raise InputError(f"{place} must return a bool for a number, not {answer!r}")
    mask = part.should_update(torch.ones(2), float(part.threshold))
    if not isinstance(mask, bool) and (wrong := _wrong_mask("a mask of a tensor of gaps", mask, torch.ones(2))):
        raise InputError(f"{place} {wrong}")


def check_step_size_rule(optimizer: Optimizer) -> None:
    """Raise InputError for a user's optimizer whose step-size rule does not give finite numbers."""
    if not isinstance(optimizer, AveragedOptimizer) or not is_user_class(type(optimizer)):
        return
    rule, place = optimizer.step_size_rule(optimizer.param_groups[0]), class_location(type(optimizer), "step_size_rule")
    if not isinstance(rule, StepSizeRule):
        raise InputError(f"{place} must return a StepSizeRule, not {_kind(rule)}")
    for one in (1.0, torch.tensor(1.0)):
        size = rule.size(one, one, *rule.numbers)
        if not isinstance(size, int | float | Tensor) or not math.isfinite(size):
            raise InputError(f"{place}: the size of a step must be a finite number; it is {size!r} for a loss of 1")


def own_modules(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the parts of a model, at any depth, that are of a user's modules; the model itself is none."""
    return (part for part in model.modules() if part is not model and is_user_class(type(part)))


def _gives(part: nn.Module, method: str, kind: type) -> bool:
    """Whether a method is a user's, or computed from one of hers: not that of a class of this library alone."""
    giver = next(one for one in type(part).__mro__ if method in vars(one))
    return is_user_class(giver) or method in ("losses_and_updates", "decide")


def _check_once(part: nn.Module, method: str, check: Check, n_labels: int) -> None:
    original = getattr(part, method)

    def checked(*arguments: Any, **options: Any) -> Any:
        part.__dict__.pop(method, None)
        returned = original(*arguments, **options)
        wrong = check(part, *arguments, *options.values(), returned, n_labels)
        if wrong is not None:
            raise InputError(f"{class_location(type(part), method)} {wrong}")
        return returned

    part.__dict__[method] = checked


# -- contracts ------------------------------------------------------------------------------------------------


def _judged(part: Criterion, scored: Scored, returned: Any, n_labels: int) -> str | None:
    B, learning = len(scored.gold), scored.gold_scores.requires_grad
    if not _are_tensors(returned, 2):
        return f"must return two tensors, losses and which sequences change weights, not {_kind(returned)}"
    losses, updates = returned
    if losses.shape != (B,):
        why = "one loss per sequence: do not sum or average over the batch" if losses.dim() == 0 else "one per sequence"
        return f"must return losses of shape ({B},), {why}; it returned {_shape(losses)}"
    return (
        _wrong_numbers("losses", losses, scored.gold)
        or _wrong_mask("which sequences change weights", updates, scored.gold)
        or (
            None
            if losses.requires_grad or not learning
            else "returned losses without gradients: compute them from the scores, without detach, item or no_grad"
        )
    )


def _decided(part: Criterion, scored: Scored, returned: Any, n_labels: int) -> str | None:
    if not isinstance(returned, Decision):
        return f"must return a Decision, not {_kind(returned)}"
    masks = (("updates", returned.updates), ("whole", returned.whole))
    return _wrong_index(returned.rival, scored) or next(
        filter(None, (_wrong_mask(*m, scored.gold) for m in masks)), None
    )


def _weighed(part: Criterion, scored: Scored, returned: Any, n_labels: int) -> str | None:
    if not isinstance(returned, Scored):
        return f"must return a Scored, as scored._replace(...) gives one, not {_kind(returned)}"
    for name in ("gold_scores", "candidate_scores", "gold_nonlocal", "candidate_nonlocal"):
        new, old = getattr(returned, name), getattr(scored, name)
        if not isinstance(new, Tensor) or new.shape != old.shape:
            return f"must return {name} of shape {_shape(old)}; it returned {_kind(new)}"
    return None


def _counted(part: CorpusCriterion, scored: Scored, returned: Any, n_labels: int) -> str | None:
    wanted = len(scored.gold), part.n_counts
    if not isinstance(returned, Tensor) or returned.shape != wanted:
        return f"must return counts of shape {wanted}, n_counts per sequence; it returned {_kind(returned)}"
    return _wrong_numbers("counts", returned, scored.gold)


def _read(part: Criterion, lattice: Lattice, returned: Any, n_labels: int) -> str | None:
    return _wrong_lattice(returned, lattice.unary.shape, lattice.lengths)


def _augmented(part: Criterion, lattice: Lattice, gold: Tensor, returned: Any, n_labels: int) -> str | None:
    return _read(part, lattice, returned, n_labels)


def _scores(part: Scorer, batch: Batch, returned: Any, n_labels: int) -> str | None:
    return _wrong_lattice(returned, (*batch.sentences.shape, n_labels), batch.lengths)


def _vectors(part: Encoder, batch: Batch, returned: Any, n_labels: int) -> str | None:
    wanted = (*batch.sentences.shape, part.width)
    if not isinstance(returned, Tensor) or returned.shape != wanted:
        return f"must return vectors (B, T, D) of shape {wanted}, D is its width; it returned {_kind(returned)}"
    real = real_tokens(batch.lengths, wanted[1])
    if wrong := _wrong_numbers("vectors", returned, batch.sentences, real):
        return wrong
    return (
        None
        if not returned[~real].any()
        else (
            "returned vectors of the padding that are not 0: end with torch.where(real[:, :, None], vectors, 0.0), "
            "real = torch.arange(T) < batch.lengths[:, None]"
        )
    )


def _embedded(part: TokenEmbedder, numbers: Any, returned: Any, n_labels: int) -> str | None:
    wanted = len(numbers.offsets) - 1, part.width
    if not isinstance(returned, Tensor) or returned.shape != wanted:
        return f"must return vectors (n, D) of shape {wanted}, D is its width; it returned {_kind(returned)}"
    return _wrong_numbers("vectors", returned, numbers.offsets)


def _features(part: NonlocalFeature, segments: Any, returned: Any, n_labels: int) -> str | None:
    wanted = segments.valid.numel(), len(part.weight)
    if not isinstance(returned, Tensor) or returned.shape != wanted:
        return (
            f"must return counts of shape {wanted}, a row for each of B * K labellings and a column for each of names; "
            f"it returned {_kind(returned)}"
        )
    if returned.dtype != part.weight.dtype:
        return f"must return counts that are float32, as .float() makes them; it returned {returned.dtype}"
    return _wrong_numbers("counts", returned, segments.valid, None if returned.is_sparse else segments.valid.flatten())


def _searched(part: KBest, lattice: Lattice, returned: Any, n_labels: int) -> str | None:
    B, T = lattice.unary.shape[:2]
    if not isinstance(returned, Candidates):
        return f"must return Candidates, not {_kind(returned)}"
    K = returned.scores.shape[-1] if returned.scores.dim() else 0
    if part.k < K or returned.labels.shape != (B, K, T) or returned.scores.shape != (B, K):
        shapes = f"{_shape(returned.labels)} and {_shape(returned.scores)}"
        return f"must return labels ({B}, K, {T}) and scores ({B}, K), K <= k = {part.k}; it returned {shapes}"
    if returned.labels.dtype != torch.int64 or not _within(returned.labels, n_labels):
        return f"must return labels that are int64 numbers from 0 to {n_labels - 1}"
    if returned.valid.shape != (B, K) or returned.valid.dtype != torch.bool:
        return f"must return `valid` of shape ({B}, {K}) and type bool; it returned {_kind(returned.valid)}"
    return "returned NaN scores" if returned.scores.isnan().any() else None


CONTRACTS: Sequence[tuple[type, str, Check]] = (
    (Criterion, "losses_and_updates", _judged),
    (Criterion, "transform_lattice", _read),
    (Criterion, "augment", _augmented),
    (CandidateLoss, "add_cost", _weighed),
    (CandidateLoss, "decide", _decided),
    (CorpusCriterion, "counts", _counted),
    (Scorer, "forward", _scores),
    (Encoder, "forward", _vectors),
    (TokenEmbedder, "forward", _embedded),
    (NonlocalFeature, "counts", _features),
    (KBest, "forward", _searched),
)


# -- what is wrong with a tensor ------------------------------------------------------------------------------


def _wrong_numbers(name: str, values: Tensor, beside: Tensor, real: Tensor | None = None) -> str | None:
    """Return the fault of floating-point numbers, or None.

    There is a row for each sequence or token; `real` marks the rows that count.
    """
    if not values.is_floating_point():
        return f"must return {name} of a floating-point type; it returned {values.dtype}"
    if values.device != beside.device:
        return f"must return {name} on {beside.device}, where the batch is; it returned them on {values.device}"
    numbers = (values.coalesce().values() if values.is_sparse else values).detach()
    numbers = numbers if real is None else numbers[real]
    finite = numbers.isfinite()
    if finite.all():
        return None
    kind = "NaN" if numbers.isnan().any() else "infinite"
    return f"returned {kind} {name} in the first step ({int((~finite).sum()):,} of {finite.numel():,} numbers)"


def _wrong_mask(name: str, mask: Any, beside: Tensor) -> str | None:
    B = len(beside)
    if not isinstance(mask, Tensor) or mask.shape != (B,):
        return f"must return {name} as a tensor of shape ({B},), one for each sequence; it returned {_kind(mask)}"
    if mask.dtype != torch.bool:
        return f"must return {name} as bool; it returned {mask.dtype}"
    if mask.device != beside.device:
        return f"must return {name} on {beside.device}, where the batch is; it returned it on {mask.device}"
    return None


def _wrong_index(rival: Any, scored: Scored) -> str | None:
    B, K = scored.candidate_scores.shape
    if not isinstance(rival, Tensor) or rival.shape != (B,) or rival.dtype != torch.int64:
        return f"must return an index among the candidates of shape ({B},) and type int64; it returned {_kind(rival)}"
    return None if not K or _within(rival, K) else f"must return an index from 0 to {K - 1} among the candidates"


def _wrong_lattice(lattice: Any, shape: Sequence[int], lengths: Tensor) -> str | None:
    if not isinstance(lattice, Lattice) or not all(isinstance(one, Tensor) for one in lattice):
        return f"must return a Lattice of tensors, not {_kind(lattice)}"
    B, T, L = shape
    if lattice.unary.shape != (B, T, L):
        return f"must return unary scores (B, T, L) of shape ({B}, {T}, {L}); it returned {_shape(lattice.unary)}"
    if lattice.edge.shape not in ((B, T, L, L), (1, 1, L, L)):
        wanted = f"({B}, {T}, {L}, {L}) or (1, 1, {L}, {L})"
        return f"must return edge scores of shape {wanted}; it returned {_shape(lattice.edge)}"
    if lattice.lengths.shape != lengths.shape or not torch.equal(lattice.lengths, lengths):
        return "must return the lengths of the batch as those of the lattice"
    real = real_tokens(lengths, T)
    for name, scores in (("unary", lattice.unary), ("edge", lattice.edge)):
        if not scores.is_floating_point():
            return f"must return {name} scores of a floating-point type; it returned {scores.dtype}"
        seen = scores[real] if scores.shape[:2] == real.shape else scores
        if seen.isnan().any() or (seen == torch.inf).any():
            return f"returned NaN or +inf in the {name} scores of the first step"
    return None


def _within(numbers: Tensor, n: int) -> bool:
    return not numbers.numel() or bool((numbers >= 0).all() & (numbers < n).all())


def _are_tensors(returned: Any, number: int) -> bool:
    return (
        isinstance(returned, tuple | list) and len(returned) == number and all(isinstance(x, Tensor) for x in returned)
    )


def _shape(tensor: Tensor) -> str:
    return str(tuple(tensor.shape))


def _kind(value: Any) -> str:
    """Return a description of a value for messages: shape and type of a tensor."""
    if isinstance(value, Tensor):
        return f"{_shape(value)} {value.dtype}"
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        inner = ", ".join(type(one).__name__ for one in value[:4])
        return f"{type(value).__name__} of {inner}" if value else f"an empty {type(value).__name__}"
    return "None" if value is None else type(value).__name__
