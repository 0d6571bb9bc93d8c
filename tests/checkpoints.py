"""Reading and comparing checkpoints."""

import csv
from pathlib import Path
from typing import Any

import torch

from structperc.taggers.callbacks import KEY


def checkpoint(run: Path, name: str = "last") -> dict[str, Any]:
    """A checkpoint of a run."""
    return torch.load(run / "checkpoints" / f"{name}.ckpt", weights_only=True)


def logged(run: Path, name: str) -> list[float]:
    """The values of a metric in the first log of a run, in their order."""
    with open(run / "logs" / "version_0" / "metrics.csv", newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file) if row.get(name)]


def assert_same_training(a: Path, b: Path) -> None:
    """Two runs have come to the same state, bit for bit."""
    states = checkpoint(a), checkpoint(b)
    for part in ("epoch", "global_step", "state_dict", "optimizer_states", "lr_schedulers", KEY):
        assert_same(*(state.get(part) for state in states))


def assert_same(a, b):
    """Bitwise equality of nested parts of checkpoints."""
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    elif isinstance(a, list | tuple):
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    else:
        assert a == b
