"""What the tests of several rooms share: small runs of the program, and what it prints."""

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import pytest
import torch

if not torch.cuda.is_available():  # read when Triton is imported: without a GPU its kernels are interpreted
    os.environ.setdefault("TRITON_INTERPRET", "1")

from structperc.cli.main import main
from structperc.errors import InputError
from structperc.progress import show_bars

gc.disable()  # until all tests are collected: imports leave hundreds of thousands of objects, and no garbage
# The same examples in each run, without a deadline, as the first may compile a kernel;
# --hypothesis-profile=random draws new ones.
hypothesis.settings.register_profile("random", deadline=None)
hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True)
hypothesis.settings.load_profile("fixed")

TESTS = Path(__file__).parent

QUICKSTART = Path(__file__).parents[1] / "configs" / "quickstart.yaml"
SMALL = [
    "--data.train=20",
    "--data.dev=8",
    "--data.test=8",
    "--trainer.enable_progress_bar=false",
    "--trainer.enable_model_summary=false",
    "--trainer.accelerator=cpu",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: of several workers none is left alone with a long one at the end."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


def pytest_collection_finish() -> None:
    """Libraries and collected tests stay to the end; the garbage collector would walk over them in every training."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def compiled_anew() -> Iterator[None]:
    """Programs that a test has compiled are forgotten.

    torch would ask in the next export whether it may use them, for sizes that the export leaves open: by that these are
    no longer open, and the export fails ("guard 3 != size[0]").
    """
    yield
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()


@pytest.fixture(autouse=True)
def default_bars() -> None:
    """Show progress bars by default, whatever a training of an earlier test has set for this process."""
    show_bars(None)


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Folder with real corpora (conll2003/, conll2000/, gazetteers/, ...), from STRUCTPERC_DATA."""
    folder = os.environ.get("STRUCTPERC_DATA")
    if not folder:
        pytest.skip("set STRUCTPERC_DATA to a folder with conll2003/, conll2000/, ... to run tests on real corpora")
    return Path(folder)


@pytest.fixture(scope="session")
def pretrained():
    """Folder of a pretrained MiniLM: minilm/ in STRUCTPERC_PRETRAINED."""
    folder = Path(os.environ.get("STRUCTPERC_PRETRAINED", "")) / "minilm"
    if not folder.is_dir():
        pytest.skip("set STRUCTPERC_PRETRAINED to a folder with minilm/ to run tests on a pretrained transformer")
    return folder


@pytest.fixture(scope="session")
def fork_server():
    """A new interpreter that has imported the library, whose forks are new processes that start at once."""
    from tests.forks import ForkServer

    with ForkServer() as fork_server:
        yield fork_server


@pytest.fixture
def heard():
    """Ctrl-C arrives, also where a shell runs the tests in the background and has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def fails(capsys):
    """Runs a command that must fail; -> its one line of complaint."""

    def fails(*arguments):
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("structperc: error: ")
        assert err.count("\n") == 1
        return err

    return fails


@pytest.fixture
def run(capsys):
    """Runs a command that must do well; -> what it printed."""

    def run(*arguments):
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == 0
        return capsys.readouterr().out

    return run


# -- many programs that are built ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def parts_made_once():
    """Embedded corpora are made, and files of clusters and phrases read once, not for each of many programs."""
    from structperc.datamodules import sources
    from structperc.features import resources

    @cache
    def gazetteer(path: str, fold: bool) -> dict[str, Any]:
        made = object.__new__(resources.Gazetteer)
        init(made, path, fold)
        return vars(made)

    def read_once(self: Any, phrases: Any, fold: bool = True) -> None:
        if isinstance(phrases, str):
            vars(self).update(gazetteer(phrases, fold))
        else:
            init(self, phrases, fold)

    init = resources.Gazetteer.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "synthetic_splits", cache(sources.synthetic_splits))
        patch.setattr(resources, "_read_clusters", cache(resources._read_clusters))
        patch.setattr(resources.Gazetteer, "__init__", wraps(init)(read_once))
        yield


# -- small runs of the program ----------------------------------------------------------------------------------


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


class Trainings(list):
    """The corpora of all first models trained so far; `stop_before`: number of the training that is interrupted."""

    stop_before: int | None = None


@pytest.fixture
def trainings(monkeypatch):
    """The first models of re-rankers, recorded as they are trained."""
    from pytorch_lightning import Trainer  # most tests need no Lightning

    from structperc.reranking.jackknife import TrainingPart

    seen, fit = Trainings(), Trainer.fit

    def recorded(self, *args, datamodule=None, **options):
        if isinstance(datamodule, TrainingPart):
            if len(seen) == seen.stop_before:
                raise KeyboardInterrupt
            seen.append(datamodule.part)
        return fit(self, *args, datamodule=datamodule, **options)

    monkeypatch.setattr(Trainer, "fit", recorded)
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


@pytest.fixture
def left():
    """The processes that a test has started and that have not ended."""
    before = set(multiprocessing.active_children())
    return lambda: set(multiprocessing.active_children()) - before
