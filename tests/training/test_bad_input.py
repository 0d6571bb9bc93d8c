"""Every mistake of a user: one line that names what to change, exit status 2, nothing written."""

import json
from pathlib import Path

import pytest

from structperc.cli.main import main

CONLL = """
seed_everything: 1
trainer: {{max_epochs: 1, default_root_dir: {root}, enable_progress_bar: false, accelerator: cpu}}
data:
  class_path: structperc.data.Conll
  init_args:
    path: {folder}
    files: {{train: train.txt, dev: dev.txt}}
    columns: [word, label]
model:
  features: {{class_path: structperc.features.FeatureExtractor, init_args: {{node: [{{of: [w], at: [0]}}], cutoff: 1}}}}
  scorer: {{class_path: structperc.scorers.SparseLinear}}
  criterion: {{class_path: structperc.criteria.PerceptronLoss}}
  search: {{class_path: structperc.chain.KBest, init_args: {{k: 1}}}}
  optimizer: {{class_path: structperc.optim.Perceptron}}
"""
GOOD = "Anna B-PER\nsleeps O\n\nRome B-LOC\nwaits O\n"


class Project:
    def __init__(self, folder: Path, capsys) -> None:
        self.folder, self.root, self.capsys = folder, folder / "runs", capsys
        self.config = folder / "config.yaml"
        self.config.write_text(CONLL.format(root=self.root, folder=folder))
        self.write("train.txt", GOOD)
        self.write("dev.txt", GOOD)

    def write(self, name: str, text: str, encoding: str = "utf-8") -> None:
        (self.folder / name).write_text(text, encoding=encoding)

    def fails(self, *options: str, command: str = "fit") -> str:
        """Runs a command that must fail; -> its one line of complaint."""
        self.capsys.readouterr()
        assert main([command, "-c", str(self.config), *options]) == 2
        line = self.capsys.readouterr().err.strip().splitlines()[-1]
        assert line.startswith("structperc: error:")
        assert not list(self.root.rglob("*.ckpt"))
        return line


@pytest.fixture
def project(tmp_path, capsys):
    return Project(tmp_path, capsys)


def test_errors_of_files_name_the_line(project):
    project.write("dev.txt", "Anna B-PER\nACME B-ORG\n")
    assert "dev.txt:2" in project.fails()


def test_unknown_label_in_test_data_is_missed(project, caplog):
    project.write("bad.txt", "Anna B-PER\nACME B-ORG\n")
    files = {"train": "train.txt", "dev": "dev.txt", "test": "bad.txt"}
    with caplog.at_level("WARNING"):
        assert main(["fit", "-c", str(project.config), f"--data.files={json.dumps(files)}"]) == 0
    assert [line for line in caplog.messages if "bad.txt" in line and "B-ORG (1)" in line]


def test_repair_and_strict(project, caplog):
    project.write("train.txt", GOOD + "\nthe O\nAlps I-LOC\n")
    assert "train.txt:8" in project.fails("--data.strict=true")
    with caplog.at_level("WARNING"):
        assert main(["fit", "-c", str(project.config)]) == 0
    assert "train.txt: 1 label" in caplog.text


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--data.batch_size=0"], "data.batch_size must"),
        (["--data.files={train: train.txt, valid: dev.txt}"], "did you mean dev?"),
        (["--model.criterion=structperc.criteria.MarginLoss", "--model.criterion.C=1"], "search.k"),
        (["--data.unit=document"], "data.unit: sentence"),
        (["--model.optimizer=torch.optim.SGD", "--model.optimizer.lr=-1"], "model.optimizer: Invalid"),
        (["--model.optimizer=torch.optim.Adam"], "sparse_grad: false"),
        (["--ckpt_path=last"], "ckpt_path"),
        (["--ckpt_path=no/such.ckpt"], "no/such.ckpt"),
    ],
)
def test_options_out_of_range(project, options, named):
    assert named in project.fails(*options)


def test_early_stopping_by_unknown_metric(complaint):
    line = complaint("--trainer.callbacks+=EarlyStopping", "--trainer.callbacks.monitor=dev/f")
    assert line.startswith("trainer.callbacks: ")
    assert "`dev/score`" in line


def test_roots_below_files(project):
    file = project.folder / "dev.txt"
    assert f"{file}/1: " in project.fails(f"--trainer.default_root_dir={file}/1")
    grid = ("--grid", "data.batch_size=1,2")
    assert f"{file}/a: " in project.fails(*grid, "--root", f"{file}/a", command="study")


def test_weights_of_another_label_set(project):
    assert main(["fit", "-c", str(project.config)]) == 0
    before = {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file()}
    project.write("train.txt", GOOD.replace("LOC", "GPE"))
    project.write("dev.txt", GOOD.replace("LOC", "GPE"))
    project.capsys.readouterr()
    for command in ("fit", "test", "validate"):
        options = ["--data.files={train: train.txt, dev: dev.txt, test: dev.txt}", "--ckpt_path=last"]
        assert main([command, "-c", str(project.config), *options]) == 2
        message = project.capsys.readouterr().err.strip().splitlines()[-1]
        assert "labels" in message
        assert "B-GPE" in message
    assert all(path.read_bytes() == content for path, content in before.items())
