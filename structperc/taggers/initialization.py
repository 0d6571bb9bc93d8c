"""Training that starts from a saved model: its features, labels and weights, and those that new data add."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from structperc.builder import Builder
from structperc.datamodules.base import SequenceDataModule
from structperc.encoders.base import TextModule
from structperc.errors import InputError, errors_at
from structperc.features import FeatureExtractor
from structperc.features.templates import template_name
from structperc.spelling import counted
from structperc.structures import Axis, WeightAxes

logger = logging.getLogger("pytorch_lightning.structperc")


def initialize_from(tagger: Any, folder: str, data: SequenceDataModule) -> None:
    """Set features, labels and weights of a tagger to those of a saved model, to be trained further with data.

    Features and labels that only the data have are added. Their weights are zero, so that label sequences of the saved
    model keep their scores. Encoders keep their vocabularies. Weights that only the tagger has, such as those of
    non-local features, stay at zero.

    The saved model may contain classes of this library and of the modules of the tagger's classes. A model of sentences
    can initialise one of documents if it has no templates that look beyond a sentence.

    Args:
        tagger: A `Tagger` without weights.
        folder: Folder of the saved model.
        data: The training data.

    Raises:
        InputError: The model is missing, or has other templates, sequences, tag scheme or weights; or its features
            depend on a first model's labels of other training data.
    """
    saved = _load(tagger, folder, data)
    tagger.features, ids = saved.features.extend(data.corpus("train"), tagger.features.cutoff)
    for module, known in zip(tagger.scorer.modules(), saved.scorer.modules(), strict=False):
        if isinstance(module, TextModule) and isinstance(known, type(module)):
            module.load_state(known.to_state())
            for name, buffer in known.named_buffers(recurse=False):
                module.get_buffer(name).copy_(buffer)
    tagger.allocate(saved.labels.extended(data.label_set().names))
    own = torch.from_numpy(tagger.labels.encode(saved.labels.names))
    positions = {"label": own, "label pair": (own[:, None] * len(tagger.labels) + own).flatten()}
    positions |= {kind: torch.from_numpy(one) for kind, one in ids.items()}
    weights, known_positions = dict(tagger.named_parameters()), _weight_positions(tagger, saved, positions)
    for name, p in saved.named_parameters():
        if name not in weights or not _copy(p, weights[name], known_positions.get(name, [None] * p.dim())):
            raise InputError(f"model.init_from: {folder} has weights {name} that do not fit this model")
    new = [name for name in tagger.labels.names if name not in saved.labels.names]
    counts = {kind: getattr(tagger.features, f"n_{kind}_features") - len(one) for kind, one in ids.items()}
    added = [counted(n, f"{kind} feature") for kind, n in counts.items() if n] + [f"label {name}" for name in new]
    if added:
        logger.info("%s: the training data add %s", folder, ", ".join(added))


def _load(tagger: Any, folder: str, data: SequenceDataModule) -> Any:
    """Return the saved model, with features that are ready for the data."""
    trusted = Builder.trusting(tagger, *tagger.features.user_objects).trusted
    with errors_at("model.init_from"):
        saved = type(tagger).load(folder, trusted=trusted)
    for kind in ("node", "edge"):
        current, other = ([template_name(t) for t in x.features.templates(kind)] for x in (tagger, saved))
        if current != other:
            raise InputError(
                f"model.init_from: {folder} was trained with other {kind} templates: {_difference(current, other)}"
            )
    if saved.features.hash_bits != tagger.features.hash_bits:
        bits = "null" if saved.features.hash_bits is None else saved.features.hash_bits
        raise InputError(f"model.init_from: {folder} uses a different feature index; set features.hash_bits: {bits}")
    if saved.unit != tagger.unit and not (saved.unit == "sentence" and _reads_sentences(saved.features)):
        raise InputError(f"model.init_from: {folder} was trained on {saved.unit}s; set data.unit: {saved.unit}")
    if saved.labels.scheme != data.scheme:
        raise InputError(
            f"model.init_from: {folder} has {saved.labels.scheme} labels; set data.scheme: {saved.labels.scheme}"
        )
    with errors_at(f"model.init_from: {folder}"):
        saved.features.prepare_resume(data.corpus("train"))
    return saved


def _reads_sentences(features: FeatureExtractor) -> bool:
    """Whether no template looks beyond the sentence of its token."""
    return features.within == "sentence" or not (features.templates("node") or features.templates("edge"))


def _difference(current: Sequence[str], other: Sequence[str]) -> str:
    """Return the templates that only one of the taggers has, such as "add w[0]; remove w[-1]"."""
    add, remove = ([t for t in a if t not in b] for a, b in ((other, current), (current, other)))
    parts = [f"{verb} {', '.join(names)}" for verb, names in (("add", add), ("remove", remove)) if names]
    return "; ".join(parts) or f"the order is {', '.join(other)}"


def _weight_positions(tagger: Any, saved: Any, positions: Mapping[str, Tensor]) -> dict[str, list[Tensor | None]]:
    """Return the new positions of the features, labels or counts of a saved model, by weight and axis."""

    def find(axis: Axis | None) -> Tensor | None:
        return None if axis is None else positions.get(axis)

    found: dict[str, list[Tensor | None]] = {}
    for place, module in saved.named_modules():
        axes: WeightAxes = getattr(module, "weight_axes", {})
        found |= {f"{place}.{name}": [find(axis) for axis in own] for name, own in axes.items()}
    for i, (feature, known) in enumerate(zip(tagger.nonlocal_features, saved.nonlocal_features, strict=False)):
        number = {name: n for n, name in enumerate(feature.names(tagger.labels.type_names))}
        before = known.names(saved.labels.type_names)
        if number.keys() >= set(before):
            found[f"nonlocal_features.{i}.weight"] = [torch.tensor([number[name] for name in before])]
    return found


@torch.no_grad()
def _copy(source: Tensor, target: Tensor, positions: Sequence[Tensor | None]) -> bool:
    """Copy weights to these positions along each axis, and set others to zero; return False if they do not fit.

    Entries without positions are the last ones of an axis, such as components of vectors after features.
    """
    if source.shape == target.shape:
        target.copy_(source)
        return True
    if source.dim() != target.dim():
        return False
    index = []
    for axis, (old, new, own) in enumerate(zip(source.shape, target.shape, positions, strict=True)):
        if own is None and old != new:
            return False
        known = torch.empty(0, dtype=torch.int64) if own is None else own
        places = torch.cat([known, torch.arange(new - (old - len(known)), new)])
        index.append(places.view([-1 if i == axis else 1 for i in range(source.dim())]))
    target.zero_()
    target[tuple(index)] = source
    return True
