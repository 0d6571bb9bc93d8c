"""A small run of the program, in a folder of its own."""

import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from structperc.cli import main
from structperc.errors import InputError
from structperc.training import jackknife

sys.path.append(str(Path(__file__).parent))  # nested.py, pages.py
sys.path.append(str(Path(__file__).parents[1] / "nonlocal_features"))  # naive_strings.py
sys.path.append(str(Path(__file__).parents[1] / "encoders"))  # tiny_models.py

QUICKSTART = Path(__file__).parents[2] / "configs" / "quickstart.yaml"
SMALL = [
    "--data.train=20",
    "--data.dev=8",
    "--data.test=8",
    "--trainer.enable_progress_bar=false",
    "--trainer.enable_model_summary=false",
    "--trainer.accelerator=cpu",
]


class Runs:
    """fit, test, ... on a tiny embedded corpus; runs lie under `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def arguments(self, command: str, *options: str) -> list[str]:
        return [command, "-c", str(QUICKSTART), f"--trainer.default_root_dir={self.root}", *SMALL, *options]

    def __call__(self, command: str, *options: str) -> int:
        return main(self.arguments(command, *options))


@pytest.fixture
def runs(tmp_path):
    return Runs(tmp_path / "runs")


@pytest.fixture(scope="session")
def make_runs(tmp_path_factory):
    """As `runs`, for fixtures that outlive a test."""
    return lambda name: Runs(tmp_path_factory.mktemp(name) / "runs")


class Trained(NamedTuple):
    folder: Path
    again: Runs


@pytest.fixture(scope="session")
def trained(make_runs):
    """One finished run of two epochs."""
    small = make_runs("trained")
    assert small("fit", "--trainer.max_epochs=2") == 0
    return Trained(small.root / "1", small)


@pytest.fixture
def trainings(monkeypatch):
    """The corpora of all first models, as they happen."""
    seen = []
    trained = jackknife._Training.trained

    def watched(self, corpus, number):
        seen.append(corpus)
        return trained(self, corpus, number)

    monkeypatch.setattr(jackknife._Training, "trained", watched)
    return seen


@pytest.fixture
def refused():
    """Runs a re-ranker that must fail before it lists anything; -> its one line of complaint."""

    def refused(made, *arguments):
        with pytest.raises(InputError) as error:
            made(*arguments)
        assert "\n" not in str(error.value)
        assert not made.candidates.exists()
        return str(error.value)

    return refused
