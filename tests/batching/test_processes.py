"""What processes that train together do, besides training."""

import torch.distributed as dist

from structperc.batching.processes import leave, share


def test_a_group_is_left_once(tmp_path):
    leave()
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    leave()
    assert not dist.is_initialized()
    assert share().processes == 1


def test_the_program_leaves_at_its_end(runs, monkeypatch):
    left = []
    monkeypatch.setattr("structperc.training.program.atexit.register", left.append)
    assert runs("fit", "--trainer.max_epochs=1") == 0
    assert leave in left
