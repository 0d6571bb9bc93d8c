"""Small data files, and runs that were begun from them."""

import logging
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

from structperc.cli.main import main
from structperc.criteria import CRFLoss
from structperc.data.labels import LabelSet
from structperc.taggers.tagger import Tagger
from tests.tiny import random_tagger

DOCUMENT = """-DOCSTART- -X- O

Anna NNP I-PER
sleeps VBZ O

Rome NNP I-LOC
Milan NNP B-LOC
and CC O
Bo NNP I-PER

she PRP O
waits VBZ O
for IN O
Anna NNP I-PER

Bo NNP I-PER
left VBD O
Rome NNP I-LOC

"""
COLUMNS = DOCUMENT * 5  # 20 sentences
LEARNED = ["Anna", "sleeps", "Rome", "waits", "for", "her"]
TREEBANK = 12 * (
    "# text = Anna sleeps\n"
    "1\tAnna\tAnna\tPROPN\tNNP\t_\t2\tnsubj\t_\t_\n"
    "2\tsleeps\tsleep\tVERB\tVBZ\t_\t0\troot\t_\t_\n\n"
)


class Begun(NamedTuple):
    """What `init` and then `fit` made of a data file."""

    folder: Path
    config: str
    printed: str  # by fit

    @property
    def run(self) -> Path:
        """The folder of the run."""
        return self.folder / "runs" / "own" / "1"


@pytest.fixture(scope="session")
def treebank() -> str:
    """CoNLL-U."""
    return TREEBANK


@pytest.fixture(scope="session")
def begun(tmp_path_factory) -> Callable[..., Begun]:
    """Has a configuration written for a data file and trained for an epoch, unchanged but for options of `fit`.

    The learner is the perceptron, which learns most in an epoch, unless the options of `init` name another one.
    """

    def begun(name: str, text: str, *options: str, fit: Sequence[str] = ()) -> Begun:
        folder = tmp_path_factory.mktemp("begun")
        (folder / name).write_text(text, encoding="utf-8")
        short = ["--trainer.max_epochs=1", "--trainer.accelerator=cpu", "--trainer.enable_model_summary=false"]
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
            patch.chdir(folder)
            assert main(["init", name, "-o", "own.yaml", "--learner", "perceptron", *options]) == 0
            assert main(["fit", "-c", "own.yaml", *short, *fit]) == 0
        return Begun(folder, (folder / "own.yaml").read_text(encoding="utf-8"), printed.getvalue())

    return begun


@pytest.fixture(scope="session")
def begun_with_columns(begun) -> Begun:
    """Of `COLUMNS`; the model reads the second column, too."""
    return begun("train.txt", COLUMNS, fit=["--model.features.node+=[{of: [column2], at: [-1, 0, 1]}]"])


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """A saved tagger of random weights that reads words, its neighbours included; unit: document."""
    labels = LabelSet.from_corpus(["B-PER", "B-LOC", "O"], "IOB2")
    tagger = random_tagger([{"word": LEARNED}], labels, CRFLoss(), ["w[0]", "w[-1]"], seed=3)
    tagger.unit = "document"
    folder = tmp_path_factory.mktemp("commands") / "model"
    tagger.save(folder)
    return folder


@pytest.fixture
def tagger(model):
    return Tagger.load(model)


@pytest.fixture
def file(tmp_path):
    """Writes a file; -> its path."""

    def write(text, name="text.txt"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def said(monkeypatch):
    """What is said on standard error, where the logger writes."""
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger = logging.getLogger("pytorch_lightning.structperc")
    monkeypatch.setattr(logger, "level", logging.INFO)
    logger.addHandler(handler)
    yield lines
    logger.removeHandler(handler)
