"""The loop that studies and sweeps share: rows are trained one by one, and after each run all that is known is written.

Runs whose results are there are not repeated, interrupted ones go on from their last epoch. One that fails is reported
and the experiment goes on; the next time it is tried again.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from structperc.experiments.row import Row
from structperc.experiments.trial import Training, finished_run, trained
from structperc.training.claims import alone_in


class Run(NamedTuple):
    """A training of an experiment that is done: its row, its seed and its results."""

    row: Row
    seed: int | None  # None: that of the configuration
    training: Training

    @property
    def name(self) -> str:
        """The name of the row and the seed, as people read it."""
        return self.row.name if self.seed is None else f"{self.row.name}, seed {self.seed}"


Trial = tuple[Row, int | None]  # a row and one of its seeds, before it is trained


class Experiment(ABC):
    """What distinguishes one experiment from another: its rows, and what becomes of their runs.

    Args:
        rows: what is trained; a row that starts from the models of another one comes after it.
        root: the folder of all runs.
        splits: the first of them that a run has scores on is named in the line about it.
        further: arguments of all trainings, after their own.
    """

    unit: str  # what lines about progress count, in the plural

    def __init__(self, rows: Sequence[Row], root: Path, splits: Sequence[str], further: Sequence[str] = ()) -> None:
        self.rows, self.root, self.splits, self.further = rows, root, splits, further

    @property
    @abstractmethod
    def steps(self) -> list[list[Trial]]:
        """The trainings in their order; those in one list are counted as one step when progress is shown."""

    @abstractmethod
    def claim(self) -> None:
        """Note in the root what is trained there, where needed. Raises InputError if it holds runs of other rows."""

    @abstractmethod
    def keep(self, done: Sequence[Run]) -> None:
        """Write to files what is known after these runs."""

    @abstractmethod
    def close(self, done: Sequence[Run]) -> Iterator[str]:
        """Write the last files and yield lines about the outcome. Raises InputError if there is none."""


def run_experiment(experiment: Experiment) -> Iterator[str]:
    """Yield lines about the progress of an experiment, then about its outcome.

    Raises InputError as `claim` and `close` do, and if another process runs in the same root.
    """
    done: list[Run] = []
    with alone_in(experiment.root, "wait for it, or set --root"):
        experiment.claim()
        steps = experiment.steps
        yield f"{len(steps)} {experiment.unit} in {experiment.root}"
        for number, step in enumerate(steps, 1):
            for trial in step:
                made, line = train_trial(trial, experiment.root, experiment.splits, experiment.further, done)
                done.append(made)
                experiment.keep(done)
                yield f"[{number}/{len(steps)}] {line}"
        yield from experiment.close(done)


def train_trial(
    trial: Trial, root: Path, splits: Sequence[str], further: Sequence[str] = (), done: Sequence[Run] = ()
) -> tuple[Run, str]:
    """Return the run of a trial, trained unless its results are there, and a line about it.

    `done` has the runs from whose models it may start; other arguments are those of `Experiment`.
    """
    row, seed = trial
    place = row.place(root, seed)
    kept = " (kept)" if finished_run(place) is not None else ""
    made = Run(row, seed, _training(row, seed, place, further, done))
    return made, made.training.line(made.name, splits) + kept


def _training(row: Row, seed: int | None, place: Path, further: Sequence[str], done: Sequence[Run]) -> Training:
    command = [row.command, *row.arguments(seed), *further]
    sources = [run for run in done if run.row.name == row.init_from]
    if not sources:
        return trained(command, place)
    source = next((run for run in sources if run.seed == seed), sources[0])
    if source.training.run is None:
        return Training(command, None, None, f"{source.name}, which it starts from, failed")
    return trained([*command, f"--model.init_from={Path(source.training.run) / 'model'}"], place)
