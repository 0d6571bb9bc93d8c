"""The processes of a training and the rows of a study build a cache once, and learn what they learn without one.

This file is also what the processes run.
"""

import os
import socket
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytorch_lightning as pl
import torch
import torch.distributed as dist
import yaml

from structperc.chain import KBest
from structperc.cli.main import main
from structperc.criteria import PerceptronLoss
from structperc.datamodules import cache
from structperc.datamodules.sources import Conll
from structperc.experiments import experiment as trial
from structperc.features import FeatureExtractor
from structperc.optim import Perceptron
from structperc.scorers import SparseLinear
from structperc.taggers import Tagger
from tests.checkpoints import assert_same
from tests.forks import at_once

COLUMNS = ["word", "pos", "chunk", "label"]
FILES = {"train": "train.txt", "dev": "dev.txt"}
# of training and development data; the features of training
ONCE = ["arrays", "arrays", "corpus", "corpus", "features"]
QUICKSTART = Path(__file__).parents[2] / "configs" / "quickstart.yaml"


def noted(file):
    """Adds the kind of each folder that is built to the lines of a file, from now on."""
    real = cache.atomic_folder

    @contextmanager
    def atomic_folder(place):
        with file.open("a") as lines:
            lines.write(f"{place.name.partition('-')[0]}\n")
        with real(place) as fresh:
            yield fresh

    return atomic_folder


def work(folder, found, process):
    """Trains as one of two processes, without a cache and with one."""
    cache.atomic_folder = noted(found / "built")
    for own in (None, str(found / "cache")):
        data = Conll(str(folder), FILES, COLUMNS, unit="document", batch_size=2, cache=own)
        features = FeatureExtractor([{"of": ["w", "shape"], "at": [-1, 0, 1]}], cutoff=1, progress=False)
        tagger = Tagger(features, SparseLinear(), PerceptronLoss(), KBest(1), Perceptron)
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        two = {"accelerator": "cpu", "devices": 2, "strategy": "ddp", "enable_model_summary": False}
        trainer = pl.Trainer(max_epochs=1, **two, **quiet)
        trainer.fit(tagger, datamodule=data)
        logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
        torch.save((tagger.state_dict(), logged), found / f"{'without' if own is None else 'with'}-{process}.pt")
    dist.barrier()


@pytest.mark.long
def test_two_processes_of_a_training(fork_server, folder, tmp_path):
    if not dist.is_gloo_available():
        pytest.skip("torch is built without gloo")
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "NODE_RANK": "0"}
    processes = [([str(folder), str(tmp_path)], {"LOCAL_RANK": rank, **meeting}) for rank in "01"]
    assert fork_server(tmp_path / "log", at_once, __file__, *processes).status == 0, (tmp_path / "log").read_text()
    assert sorted((tmp_path / "built").read_text().split()) == ONCE
    for process in "01":
        without, own = (
            torch.load(tmp_path / f"{name}-{process}.pt", weights_only=True) for name in ("without", "with")
        )
        assert any(weights.any() for weights in own[0].values())
        assert_same(own, without)


@pytest.mark.slow
def test_rows_of_a_study(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trial, "fit", lambda command, folder: str(main([*command, *trial.resume_options(folder)])))
    monkeypatch.setattr(cache, "atomic_folder", noted(tmp_path / "built"))
    read = {"path": str(folder), "files": FILES, "columns": COLUMNS, "unit": "document"}
    configuration = yaml.safe_load(QUICKSTART.read_text())
    configuration["data"] = {"class_path": "structperc.data.Conll", "init_args": read}
    Path("own.yaml").write_text(yaml.safe_dump(configuration))
    rows = {name: {"configs": ["own.yaml"], "with": {"data": {"batch_size": int(name)}}} for name in ("2", "3")}
    trainer = {"max_epochs": 1, "accelerator": "cpu"}
    for name, options in (("without", {}), ("with", {"cache": "cache"})):
        plan = {"seeds": [1], "with": {"trainer": trainer, "data": options}, "rows": rows}
        Path(f"{name}.yaml").write_text(yaml.safe_dump(plan))
        assert main(["study", f"{name}.yaml", "--root", name]) == 0
    assert sorted(Path("built").read_text().split()) == ONCE
    for row in rows:
        for file in ("model/model.safetensors", "predictions/dev.conll"):
            own, without = (next(Path(name, row).rglob(file)).read_bytes() for name in ("with", "without"))
            assert own == without


if __name__ == "__main__":
    work(Path(sys.argv[1]), Path(sys.argv[2]), os.environ["LOCAL_RANK"])
