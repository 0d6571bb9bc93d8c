"""Checks of user-defined parts: their options before training, and the results of their methods at the first call.

The check of a method is removed after its first call, so that training is as fast as without checks.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from structperc.builder import Builder, describe, without_learned
from structperc.chain import KBest
from structperc.constructors import OPTIONS
from structperc.criteria import CorpusCriterion, Criterion, PairwiseLoss
from structperc.criteria.base import CandidateLoss, Decision
from structperc.encoders import Encoder, TokenEmbedder
from structperc.errors import InputError
from structperc.features import FeatureExtractor
from structperc.nonlocal_features import NonlocalFeature
from structperc.optim.averaged_perceptron import AveragedOptimizer, StepSizeRule
from structperc.scorers import Scorer
from structperc.structures import Batch, Candidates, Lattice, Scored, real_tokens
from structperc.user_code import class_location, is_user_class

Check = Callable[..., str | None]  # (part, *arguments, returned, number of labels) -> the fault of a result, or None


def check_options(model: nn.Module, features: FeatureExtractor) -> None:
    """Raise InputError for user-defined parts that cannot be built again from their options."""
    build = Builder.trusting(model, *features.user_objects)
    for part in own_modules(model):
        _check_rebuilt(part, lambda one: without_learned(describe(one)), build)
    for attribute in features.documents.values():
        if is_user_class(type(attribute)):
            _check_rebuilt(attribute, lambda one: without_learned(one.to_json()), build)


def _check_rebuilt(part: object, describe_part: Callable[[Any], dict[str, Any]], build: Builder) -> None:
    """Raise InputError unless the part that is built from a description has the same options."""
    cls, described = type(part), describe_part(part)
    try:
        json.dumps(described)
    except (TypeError, ValueError) as error:
        raise InputError(f"{class_location(cls)}: options must be plain JSON values ({error})") from None
    try:
        with torch.random.fork_rng(devices=[]):
            again = describe_part(build.part(described, cls, class_location(cls)))
    except TypeError as error:
        raise InputError(
            f"{class_location(cls)} cannot be built again from its options ({error}): make each an argument of "
            "__init__, and an attribute of the same name"
        ) from None
    for name, value in described[OPTIONS].items():
        if again[OPTIONS][name] != value:
            raise InputError(
                f"{class_location(cls)}: option {name} is {value!r}, but {again[OPTIONS][name]!r} when built again: "
                f"store the argument of __init__ as self.{name}"
            )


def check_contracts(model: nn.Module, n_labels: int) -> None:
    """Check the results of user-defined parts of a model, at the first call of each method.

    A method that breaks its contract raises InputError, with file, line and advice.
    """
    for part in own_modules(model):
        for kind, method, check in CONTRACTS:
            if not isinstance(part, kind):
                continue
            owner = next(one for one in type(part).__mro__ if method in vars(one))
            if is_user_class(owner) or method in ("losses_and_updates", "decide"):  # these call user-defined methods
                _check_once(part, method, check, n_labels)
        if isinstance(part, PairwiseLoss):
            _check_update_rule(part)


def _check_update_rule(part: PairwiseLoss) -> None:
    """Raise InputError unless an update rule returns a bool for a number and a mask for a tensor."""
    place, gaps = class_location(type(part), "should_update"), torch.ones(2)
    answer = part.should_update(1.0, float(part.threshold))
    if not isinstance(answer, bool | np.bool_):
        raise InputError(f"{place} must return a bool for a number, not {answer!r}")
    mask = part.should_update(gaps, float(part.threshold))
    if not isinstance(mask, bool) and (wrong := _fault("a mask of a tensor of gaps", mask, (2,), torch.bool, gaps)):
        raise InputError(f"{place} {wrong}")


def check_step_size_rule(optimizer: Optimizer) -> None:
    """Raise InputError for a user-defined optimizer whose step-size rule returns other than finite numbers."""
    if not isinstance(optimizer, AveragedOptimizer) or not is_user_class(type(optimizer)):
        return
    rule, place = optimizer.step_size_rule(optimizer.param_groups[0]), class_location(type(optimizer), "step_size_rule")
    if not isinstance(rule, StepSizeRule):
        raise InputError(f"{place} must return a StepSizeRule, not {_kind(rule)}")
    for one in (1.0, torch.tensor(1.0)):
        size = rule.size(one, one, *rule.numbers)
        if not isinstance(size, int | float | Tensor) or not math.isfinite(size):
            raise InputError(f"{place}: the size of a step must be a finite number, got {size!r} for a loss of 1")


def own_modules(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the user-defined parts of a model, at any depth and without the model itself."""
    return (part for part in model.modules() if part is not model and is_user_class(type(part)))


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


def _fault(
    what: str,
    value: Any,
    shape: Sequence[int],
    dtype: type[float] | torch.dtype,
    like: Tensor,
    real: Tensor | None = None,
) -> str | None:
    """Return the fault of a value that is not a tensor of this shape and type, finite and on the device of `like`.

    dtype: float for any floating-point type. real: mask of the rows that must be finite.
    """
    if not isinstance(value, Tensor) or value.shape != tuple(shape):
        return f"must return {what} of shape {tuple(shape)}; it returned {_kind(value)}"
    if dtype is float and not value.is_floating_point():
        return f"must return {what} of a floating-point type; it returned {value.dtype}"
    if dtype is not float and value.dtype != dtype:
        return f"must return {what} as {str(dtype).removeprefix('torch.')}; it returned {value.dtype}"
    if value.device != like.device:
        return f"must return {what} on {like.device}, the device of the batch; it returned {value.device}"
    if not value.is_floating_point():
        return None
    numbers = (value.coalesce().values() if value.is_sparse else value).detach()
    finite = (numbers if real is None else numbers[real]).isfinite()
    if finite.all():
        return None
    kind = "NaN" if numbers.isnan().any() else "infinite"
    return f"returned {kind} {what} in the first step ({int((~finite).sum()):,} of {finite.numel():,} numbers)"


def _first(*faults: str | None) -> str | None:
    return next(filter(None, faults), None)


def _check_losses(part: Criterion, scored: Scored, returned: Any, n_labels: int) -> str | None:
    pair = isinstance(returned, tuple | list) and len(returned) == 2
    if not pair or not all(isinstance(one, Tensor) for one in returned):
        return f"must return two tensors, losses and which sequences are updated, not {_kind(returned)}"
    (losses, updates), B = returned, len(scored.gold)
    if losses.shape != (B,):
        return f"must return losses of shape ({B},), one per sequence, not summed; it returned {_kind(losses)}"
    if wrong := _first(
        _fault("losses", losses, (B,), float, scored.gold),
        _fault("which sequences are updated", updates, (B,), torch.bool, scored.gold),
    ):
        return wrong
    if scored.gold_scores.requires_grad and not losses.requires_grad:
        return "returned losses without gradients: compute them from the scores, without detach, item or no_grad"
    return None


def _check_decision(part: Criterion, scored: Scored, returned: Any, n_labels: int) -> str | None:
    if not isinstance(returned, Decision):
        return f"must return a Decision, not {_kind(returned)}"
    B, K = scored.candidate_scores.shape
    if wrong := _fault("an index among the candidates", returned.rival, (B,), torch.int64, scored.gold):
        return wrong
    if K and not _in_range(returned.rival, K):
        return f"must return an index from 0 to {K - 1}"
    return _first(
        *(
            _fault(name, getattr(returned, name), (B,), torch.bool, scored.gold)
            for name in ("updates", "updates_nonlocal")
        )
    )


def _check_scored(part: Criterion, scored: Scored, returned: Any, n_labels: int) -> str | None:
    if not isinstance(returned, Scored):
        return f"must return a Scored, such as scored._replace(...), not {_kind(returned)}"
    for name in ("gold_scores", "candidate_scores", "gold_nonlocal", "candidate_nonlocal"):
        new, old = getattr(returned, name), getattr(scored, name)
        if not isinstance(new, Tensor) or new.shape != old.shape:
            return f"must return {name} of shape {tuple(old.shape)}; it returned {_kind(new)}"
    return None


def _check_counts(part: CorpusCriterion, scored: Scored, returned: Any, n_labels: int) -> str | None:
    return _fault("counts", returned, (len(scored.gold), part.n_counts), float, scored.gold)


def _check_changed_lattice(part: Criterion, lattice: Lattice, *rest: Any) -> str | None:
    return _lattice_fault(rest[-2], lattice.unary.shape, lattice.lengths)


def _check_scorer(part: Scorer, batch: Batch, returned: Any, n_labels: int) -> str | None:
    return _lattice_fault(returned, (*batch.sentences.shape, n_labels), batch.lengths)


def _lattice_fault(lattice: Any, shape: Sequence[int], lengths: Tensor) -> str | None:
    if not isinstance(lattice, Lattice):
        return f"must return a Lattice, not {_kind(lattice)}"
    if not all(isinstance(one, Tensor) for one in (lattice.unary, lattice.edge, lattice.lengths)):
        return f"must return a Lattice of tensors, not {_kind(lattice)}"
    B, T, L = shape
    if lattice.unary.shape != (B, T, L):
        return f"must return unary scores (B, T, L) of shape ({B}, {T}, {L}); it returned {_kind(lattice.unary)}"
    if lattice.edge.shape not in ((B, T, L, L), (1, 1, L, L)):
        expected = f"({B}, {T}, {L}, {L}) or (1, 1, {L}, {L})"
        return f"must return edge scores of shape {expected}; it returned {_kind(lattice.edge)}"
    if lattice.lengths.shape != lengths.shape or not torch.equal(lattice.lengths, lengths):
        return "must return a lattice with the lengths of the batch"
    real = real_tokens(lengths, T)
    for name, scores in (("unary", lattice.unary), ("edge", lattice.edge)):
        if not scores.is_floating_point():
            return f"must return {name} scores of a floating-point type; it returned {scores.dtype}"
        seen = scores[real] if scores.shape[:2] == real.shape else scores
        if seen.isnan().any() or (seen == torch.inf).any():
            return f"returned NaN or +inf in the {name} scores of the first step"
    return None


def _check_encoder(part: Encoder, batch: Batch, returned: Any, n_labels: int) -> str | None:
    shape = (*batch.sentences.shape, part.width)
    real = real_tokens(batch.lengths, shape[1])
    if wrong := _fault("vectors (B, T, D), D is its width,", returned, shape, float, batch.sentences, real):
        return wrong
    if returned[~real].any():
        return (
            "returned vectors of the padding that are not 0: end with torch.where(real[:, :, None], vectors, 0.0), "
            "real = torch.arange(T) < batch.lengths[:, None]"
        )
    return None


def _check_embedder(part: TokenEmbedder, numbers: Any, returned: Any, n_labels: int) -> str | None:
    shape = len(numbers.offsets) - 1, part.width
    return _fault("vectors (n, D), D is its width,", returned, shape, float, numbers.offsets)


def _check_nonlocal_counts(part: NonlocalFeature, segments: Any, returned: Any, n_labels: int) -> str | None:
    shape, dtype, valid = (segments.valid.numel(), len(part.weight)), part.weight.dtype, segments.valid
    real = None if isinstance(returned, Tensor) and returned.is_sparse else valid.flatten()
    return _fault("counts (B * K label sequences, names)", returned, shape, dtype, valid, real)


def _check_search(part: KBest, lattice: Lattice, returned: Any, n_labels: int) -> str | None:
    B, T = lattice.unary.shape[:2]
    if not isinstance(returned, Candidates):
        return f"must return Candidates, not {_kind(returned)}"
    K = returned.scores.shape[-1] if returned.scores.dim() else 0
    if part.k < K or returned.labels.shape != (B, K, T) or returned.scores.shape != (B, K):
        found = f"{_kind(returned.labels)} and {_kind(returned.scores)}"
        return f"must return labels ({B}, K, {T}) and scores ({B}, K), K <= k = {part.k}; it returned {found}"
    if returned.labels.dtype != torch.int64 or not _in_range(returned.labels, n_labels):
        return f"must return int64 labels from 0 to {n_labels - 1}"
    valid = _fault("`valid`", returned.valid, (B, K), torch.bool, lattice.unary)
    return valid or ("returned NaN scores" if returned.scores.isnan().any() else None)


CONTRACTS: Sequence[tuple[type, str, Check]] = (
    (Criterion, "losses_and_updates", _check_losses),
    (Criterion, "transform_lattice", _check_changed_lattice),
    (Criterion, "augment", _check_changed_lattice),
    (CandidateLoss, "add_cost", _check_scored),
    (CandidateLoss, "decide", _check_decision),
    (CorpusCriterion, "counts", _check_counts),
    (Scorer, "forward", _check_scorer),
    (Encoder, "forward", _check_encoder),
    (TokenEmbedder, "forward", _check_embedder),
    (NonlocalFeature, "counts", _check_nonlocal_counts),
    (KBest, "forward", _check_search),
)


def _in_range(numbers: Tensor, n: int) -> bool:
    return not numbers.numel() or bool((numbers >= 0).all() & (numbers < n).all())


def _kind(value: Any) -> str:
    """Return a description of a value for messages: shape and type of a tensor."""
    if isinstance(value, Tensor):
        return f"{tuple(value.shape)} {value.dtype}"
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        inner = ", ".join(type(one).__name__ for one in value[:4])
        return f"{type(value).__name__} of {inner}" if value else f"an empty {type(value).__name__}"
    return "None" if value is None else type(value).__name__
