"""A tagger as plain values and tensors, which can be copied and pickled."""

from typing import Any, NamedTuple

from torch import Tensor

from structperc.taggers import Tagger
from structperc.taggers.builder import Builder


class TaggerState(NamedTuple):
    """All that a saved model has, and the names of the modules that its parts are from."""

    config: dict[str, Any]
    tensors: dict[str, Tensor]
    trusted: tuple[str, ...]


def state_of(tagger: Tagger) -> TaggerState:
    """Return the state of a tagger with its present weights."""
    return TaggerState(*tagger.to_state(), Builder.like(tagger, *tagger.features.foreign).trusted)


def tagger_of(state: TaggerState) -> Tagger:
    """Return a tagger of a state, apart from any trainer, ready to tag."""
    tagger = Tagger.from_state(state.config, state.tensors, Builder(state.trusted))
    tagger.features.progress = False
    return tagger
