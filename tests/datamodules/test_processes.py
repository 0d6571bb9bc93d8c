"""What processes that train together do, besides training."""

import torch.distributed as dist

from structperc.datamodules.distributed import leave_process_group, process_group


def test_a_group_is_left_once(tmp_path):
    leave_process_group()
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    leave_process_group()
    assert not dist.is_initialized()
    assert process_group().size == 1


def test_the_program_leaves_at_its_end(runs, monkeypatch):
    left = []
    monkeypatch.setattr("structperc.training.program.atexit.register", left.append)
    assert runs("fit", "--trainer.max_epochs=1") == 0
    assert leave_process_group in left
