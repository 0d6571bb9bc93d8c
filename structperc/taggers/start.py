"""The start of a training from the weights of a saved model."""

import torch

from structperc.batching.sequence_data import SequenceData
from structperc.encoders import TextModule
from structperc.errors import InputError
from structperc.features.templates import template_name
from structperc.taggers.builder import Builder
from structperc.taggers.lattice_tagger import LatticeTagger


def start_from(tagger: LatticeTagger, folder: str, data: SequenceData) -> None:
    """Give a tagger without weights the features, labels and weights of a saved model, to be trained with data.

    The saved model may name classes of this library and of the modules that the tagger's own classes are from. Weights
    that only the tagger has, such as those of non-local features, stay at zero. Raises InputError when there is no
    model, or it was trained with other templates, sequences or tag scheme, or has weights that the tagger does not
    have, or has labels of a first model for other training data. A model of sentences whose templates look no farther
    is good for documents, too.
    """
    known_parts = Builder.like(tagger, *tagger.features.foreign)
    try:
        saved = type(tagger).load(folder, trusted=known_parts.trusted)
    except InputError as error:
        raise InputError(f"model.init_from: {error}") from None
    for kind in ("node", "edge"):
        own, other = ([template_name(t) for t in x.features.templates(kind)] for x in (tagger, saved))
        if own != other:
            raise InputError(f"model.init_from: {folder} was trained with other {kind} templates; use those")
    if saved.features.hash_bits != tagger.features.hash_bits:
        bits = "null" if saved.features.hash_bits is None else saved.features.hash_bits
        raise InputError(f"model.init_from: {folder} numbers features otherwise; set features.hash_bits: {bits}")
    if saved.unit != tagger.unit and not (saved.unit == "sentence" and saved.features.within == "sentence"):
        raise InputError(f"model.init_from: {folder} was trained on {saved.unit}s; set data.unit: {saved.unit}")
    if saved.labels.scheme != data.scheme:
        raise InputError(f"model.init_from: {folder} has {saved.labels.scheme} labels; set data.scheme to that")
    try:
        saved.features.start(data.corpus("train"))
    except InputError as error:
        raise InputError(f"model.init_from: {folder}: {error}") from None
    tagger.features = saved.features
    for module, known in zip(tagger.scorer.modules(), saved.scorer.modules(), strict=False):
        if isinstance(module, TextModule) and isinstance(known, type(module)):
            module.relearn(known.learned())
    tagger.allocate(saved.labels)
    weights = dict(tagger.named_parameters())
    with torch.no_grad():
        for name, p in saved.named_parameters():
            if name not in weights or weights[name].shape != p.shape:
                raise InputError(f"model.init_from: {folder} has weights {name}, which this model has not")
            weights[name].copy_(p)
