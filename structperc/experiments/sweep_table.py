"""The results of a sweep as text and as a table of all trainings."""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from structperc.experiments.grid import Point, short_keys
from structperc.experiments.trial import Trial
from structperc.reports.writing import write_csv


class Outcome(NamedTuple):
    """All trainings of a point: one, or one per seed."""

    point: Point
    trials: list[Trial]

    @property
    def error(self) -> str | None:
        """The complaint of the first training that failed, if one did."""
        return next((trial.error for trial in self.trials if trial.error is not None), None)

    @property
    def scores(self) -> list[float]:
        """Dev scores of the trainings that did not fail, shares in 0..1."""
        return [trial.results["dev"]["score"] for trial in self.trials if trial.results is not None]

    @property
    def score(self) -> float:
        """Mean dev score; NaN when all failed."""
        return fmean(self.scores) if self.scores else float("nan")

    def mean(self, *names: str) -> float:
        """The mean of a number in the results, such as ("dev", "sentence_accuracy"), of what did not fail."""
        return fmean(number(trial, *names) for trial in self.trials if trial.results is not None)


def outcomes(trials: Sequence[Trial]) -> list[Outcome]:
    """The trainings by point, in the order of the first of each."""
    found = {trial.point: Outcome(trial.point, []) for trial in trials}
    for trial in trials:
        found[trial.point].trials.append(trial)
    return list(found.values())


def number(trial: Trial, *names: str) -> float:
    """A number in the results of a training."""
    value = trial.results
    for name in names:
        value = value[name]  # type: ignore[index]
    return value  # type: ignore[return-value]


def trial_line(trial: Trial) -> str:
    """Scores of one training, in per cent, or its complaint."""
    name = trial.point.name if trial.seed is None else f"{trial.point.name}, seed {trial.seed}"
    return trial.training.line(name, "dev" if "dev" in (trial.results or {}) else "test")


def table_lines(found: Sequence[Outcome]) -> Iterator[str]:
    """A line per point: dev score and sentence accuracy in per cent, epochs and seconds; means over seeds."""
    heads = short_keys(key for key, _ in found[0].point.values)
    cells = [[value for _, value in one.point.values] for one in found]
    widths = [max(map(len, column)) + 2 for column in zip(heads, *cells, strict=True)]
    columns = ("dev score", "sentences", "epochs", "seconds")
    yield _cells(heads, widths) + "".join(f"{name:>12}" for name in columns) + _spread_head(found)
    for one, values in zip(found, cells, strict=True):
        yield _cells(values, widths) + _numbers(one)


def _cells(values: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(f"{value:<{width}}" for value, width in zip(values, widths, strict=True))


def _spread_head(found: Sequence[Outcome]) -> str:
    return f"{'std':>12}" if max(len(one.trials) for one in found) > 1 else ""


def _numbers(one: Outcome) -> str:
    if one.error is not None:
        return f"   failed: {one.error}"
    shares = (one.score, one.mean("dev", "sentence_accuracy"))
    means = "".join(f"{100 * share:>12.2f}" for share in shares)
    spread = f"{100 * stdev(one.scores):>12.2f}" if len(one.scores) > 1 else ""
    return f"{means}{one.mean('epochs'):>12.1f}{one.mean('seconds'):>12.1f}{spread}"


def write_table(path: str, trials: Sequence[Trial]) -> None:
    """All trainings as CSV: values, seed, epochs, seconds, every score of dev and test, run and complaint."""
    flat = [_flat(trial) for trial in trials]
    names = list(dict.fromkeys(name for row in flat for name in row))
    write_csv(path, names, [[row.get(name, "") for name in names] for row in flat])


def _flat(trial: Trial) -> dict[str, object]:
    results = trial.results or {}
    scores = {f"{split}_{name}": x for split in ("dev", "test") for name, x in results.get(split, {}).items()}
    sums = {name: results.get(name, "") for name in ("epochs", "seconds")}
    seed = "" if trial.seed is None else trial.seed
    return {
        **dict(trial.point.values),
        "seed": seed,
        "run": trial.run or "",
        "error": trial.error or "",
        **sums,
        **scores,
    }
