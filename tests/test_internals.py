"""Internals of other packages that are used, with the versions that they were checked with."""

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.strategies import DDPStrategy, SingleDeviceStrategy, Strategy
from torch.utils.flop_counter import FlopCounterMode

from structperc import lightning_internals, torch_internals
from structperc.lightning_internals import starts_commands
from structperc.torch_internals import exported_scan, is_transforming, mark_stepped, sparse_indices, sparse_values


def release(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def test_torch() -> None:
    """With another version, run all tests of optim and ops, then raise CHECKED_WITH."""
    assert release(torch.__version__) <= torch_internals.CHECKED_WITH
    gradient = torch.sparse_coo_tensor([[2, 0, 2]], [1.0, 2.0, 3.0], (3,), check_invariants=True)
    assert sparse_indices(gradient).tolist() == [[2, 0, 2]]
    assert sparse_values(gradient).tolist() == [1.0, 2.0, 3.0]
    sums = exported_scan(lambda carry, x: (carry + x[0], carry + x[0]), torch.zeros(1), (torch.ones(3, 1),))
    assert sums.flatten().tolist() == [1.0, 2.0, 3.0]
    assert torch.vmap(lambda x: x + is_transforming())(torch.zeros(1)).tolist() == [1.0]
    with FlopCounterMode(display=False):
        assert is_transforming()
    with torch.autograd.forward_ad.dual_level():
        assert is_transforming()
    assert not is_transforming()


def test_schedule_after_marked_step(recwarn: pytest.WarningsRecorder) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    mark_stepped(optimizer)
    schedule.step()
    assert not recwarn.list


@pytest.mark.parametrize(
    ("strategy", "commands"),
    [
        (DDPStrategy(), True),
        (DDPStrategy(start_method="spawn"), False),
        (SingleDeviceStrategy(torch.device("cpu")), False),
    ],
)
def test_lightning(strategy: Strategy, commands: bool) -> None:
    """With another version, run all tests of several processes, then raise CHECKED_WITH."""
    assert release(pl.__version__) <= lightning_internals.CHECKED_WITH
    assert starts_commands(strategy) is commands
