"""The rows of a study build a cache once, and learn what they learn without one."""

from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from structperc.cli.main import main
from structperc.datamodules import cache
from structperc.experiments import experiment as trial

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
