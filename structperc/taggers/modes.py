"""Evaluation mode for a block, in which modules such as dropout do not act."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Keep a module and all its parts in evaluation mode within the block; afterwards each is as it was.

    Trainers leave their modules in training mode when they are done.
    """
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode
