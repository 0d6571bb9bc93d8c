"""A disk that fills up while a run is written: one line says which file and why, and with space the run goes on."""

import errno
import json
import os

import pytest
from safetensors import SafetensorError

from structperc.models import saving as model_folder
from tests.checkpoints import assert_same, checkpoint

REASON = os.strerror(errno.ENOSPC)


@pytest.fixture
def no_space(monkeypatch):
    """Has the writing of a file of some name fail when it is nearly done."""

    def no_space(name, patch):
        def fsync(number, real=os.fsync):
            if f".{name}." in os.readlink(f"/proc/self/fd/{number}"):
                raise OSError(errno.ENOSPC, REASON)
            real(number)

        def unsaved(*_):
            raise SafetensorError(f"I/O error: {REASON} (os error 28)")

        patch.setattr(os, "fsync", fsync)
        if name == "model":
            patch.setattr(model_folder, "save_file", unsaved)

    return no_space


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="looks up names of open files in /proc")
def test_full_disk_at_every_file(runs, no_space, monkeypatch, capsys):
    options = ["fit", "--trainer.max_epochs=2", "--checkpoint.monitor=epoch", "--checkpoint.mode=min"]
    assert runs(*options) == 0
    whole = runs.root / "1"
    names = ["config.yaml", "best.ckpt", "last.ckpt", "metrics.csv", "model", "dev.conll", "results.json"]
    resumed = []
    for name in names:
        found = sorted(runs.root.glob("*/checkpoints/last.ckpt"), key=lambda path: int(path.parts[-3]))
        resumed = [f"--ckpt_path={found[-1]}"] if found[-1].parts[-3] != "1" else []
        capsys.readouterr()
        with monkeypatch.context() as patch:
            no_space(name, patch)
            assert (name, runs(*options, *resumed)) == (name, 2)
        (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("structperc: ")]
        assert line.startswith("structperc: error: ")
        assert f"{name}: cannot write this file (" in line
        assert REASON in line
    assert resumed
    assert runs(*options, *resumed) == 0
    run = found[-1].parents[1]
    assert_same(checkpoint(run)["state_dict"], checkpoint(whole)["state_dict"])
    results = [json.loads((folder / "results.json").read_text()) for folder in (run, whole)]
    assert results[0]["dev"] == results[1]["dev"]
    assert not [path for path in runs.root.rglob("*") if path.name.endswith(".part")]
