"""Modes of a block: evaluation, in which modules such as dropout do not act, and full precision."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
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


def full_precision(device: torch.device) -> AbstractContextManager[Any]:
    """Return a context without autocast, which some kinds of devices do not have in the first place."""
    return torch.autocast(device.type, enabled=False) if torch.amp.is_autocast_available(device.type) else nullcontext()
