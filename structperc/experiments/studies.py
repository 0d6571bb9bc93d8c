"""The outcome of a study: one table of means, deviations and tests of significance for configurations over seeds.

One study, or several side by side, from a file.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from structperc.data.output import write_lines
from structperc.data.yaml_file import read_yaml
from structperc.errors import InputError
from structperc.experiments.experiment import LOG, Experiment, Run, Trial, run_experiment
from structperc.experiments.rows import Row, check_same, folder_name, identity
from structperc.experiments.study_figures import plot_comparison, plot_study
from structperc.experiments.study_file import Study, check_study, configuration_file, read_study
from structperc.experiments.study_significance import Significance
from structperc.experiments.study_table import (
    Line,
    lines_of,
    markdown,
    means,
    score_columns,
    study_lines,
    type_columns,
    write_means,
    write_runs,
)
from structperc.packaged_configs import packaged
from structperc.reports.figures import write_figure
from structperc.training.report import write_json
from structperc.training.run_folders import name_of

RECORD, MEANS, RUNS, MARKDOWN, FIGURE = "study.json", "study.csv", "runs.csv", "study.md", "study.png"
ROW_RECORD = "row.json"


class StudyExperiment(Experiment):
    """The experiment of a study file, whose outcome is a table of means over seeds.

    Args:
        plan: what the file says.
        measure: what the score is: "accuracy", or "F1".
        root: the folder of all runs.
    """

    unit = "runs"

    def __init__(self, plan: Study, measure: str, root: Path) -> None:
        super().__init__(plan.rows, root, [plan.split])
        self.plan, self.measure = plan, measure
        self.significance = Significance(plan.split, plan.baseline)
        self.lines: list[Line] = []  # of the table, as of the runs so far

    @property
    def shown(self) -> tuple[str, str, str]:
        """What the table shows: the name of the score, the split, and the row that others are compared with."""
        return self.measure, self.plan.split, self.plan.baseline

    @property
    def steps(self) -> list[list[Trial]]:
        """The trainings of all rows, each of which is a step of its own."""
        return [[trial] for row in self.rows for trial in row.trials]

    def prepare(self) -> None:
        """Note in the folder of each row what is trained there; rows may be added to a study.

        Raises InputError, before anything is noted, for a folder that holds runs of another configuration.
        """
        identities = {self.root / row.folder / ROW_RECORD: row_identity(row) for row in self.rows}
        for path, now in identities.items():
            before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else now
            check_same(before, now, f"{path.parent} holds runs", "name the row otherwise, or set --root")
        for path, now in identities.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, now)

    def keep(self, done: Sequence[Run]) -> None:
        """Write the tables and the record of the runs so far."""
        plan = self.plan
        lines = self.lines = lines_of(done, plan.split, self.significance(done), self.significance.rows(done))
        write_means(str(self.root / MEANS), lines)
        write_runs(str(self.root / RUNS), lines)
        write_lines(self.root / MARKDOWN, [markdown(lines, *self.shown)])
        write_json(self.root / RECORD, self._record(lines))

    def close(self, done: Sequence[Run]) -> Iterator[str]:
        """Write the figure; yield the table, the table of types and which runs failed. Raises InputError if all did."""
        write_figure(str(self.root / FIGURE), plot_study(self.lines, self.measure, self.plan.split))
        for columns in (score_columns(self.lines, self.measure), type_columns(self.lines)):
            yield from ("", *study_lines(self.lines, columns)) if columns else ()
        yield ""
        yield from _failures(done, self.root)
        yield f"study: {self.root / MARKDOWN}, {MEANS}, {RUNS}, {FIGURE}, {RECORD}"

    def _record(self, lines: Sequence[Line]) -> dict[str, Any]:
        rows = [{**row_identity(line.row), "seeds": line.row.seeds, "numbers": means(line)} for line in lines]
        runs = [
            {"row": made.row.name, "seed": made.seed, **made.training.about()} for line in lines for made in line.runs
        ]
        about = {"baseline": self.plan.baseline, "split": self.plan.split, "measure": self.measure}
        return {**about, "rows": rows, "runs": runs}


def row_identity(row: Row) -> dict[str, Any]:
    """Return what all runs of a row share; its seeds are no part of it, as some may be added."""
    about = identity(row.configs, name=row.name, command=row.command, options=row.options, init_from=row.init_from)
    return {key: about[key] for key in ("name", "command", "configs", "options", "init_from")}


def _failures(done: Sequence[Run], folder: Path) -> Iterator[str]:
    """How many runs failed. Raises InputError when all did."""
    failed = [run for run in done if run.training.error is not None]
    if len(failed) == len(done):
        raise InputError(f"study: no run succeeded; {failed[0].name}: {failed[0].training.error} (see {folder})")
    if failed:
        names = "; ".join(run.name for run in failed)
        yield f"{len(failed)} of {len(done)} runs failed: {names}. See their {LOG}; they are tried again next time."


STUDIES = "studies"


def study(file: str, root: str | None = None) -> Iterator[str]:
    """Yield lines about the progress of a study (see `read_study`), then its table.

    Each row is trained with each of its seeds (seed_everything and data.seed), in ROOT/ROW/seed=SEED; ROOT is by
    default runs/NAME-OF-THE-FILE. How trainings are kept, go on and fail: see `experiment`.

    In ROOT, study.csv has a line per row and runs.csv one per run, study.md the table as Markdown, study.json all of
    it; they are written after each run. study.png shows scores over seconds of training.

    A file with nothing but `studies: {NAME: FILE, ...}` has them run one after the other, each in ROOT/NAME. In the end
    ROOT/study.md has the tables of all, and ROOT/study.png shows scores over seconds of training, speed, size, memory.

    Raises InputError, before anything is trained, for what `read_study` and `check_study` refuse, for folders that hold
    runs of other configurations, and for a root in which another study runs; in the end when every run failed.
    """
    file = packaged(file)
    folder = Path(root) if root is not None else Path("runs") / name_of(file)
    top = read_yaml(file)
    if isinstance(top, dict) and STUDIES in top:
        yield from _side_by_side(_parts(file, top, folder), folder)
    else:
        yield from run_experiment(_part(file, folder))


def _part(file: str, root: Path) -> StudyExperiment:
    plan = read_study(file)
    return StudyExperiment(plan, check_study(plan).measure, root)


def _parts(file: str, top: dict[Any, Any], root: Path) -> dict[str, StudyExperiment]:
    if len(top) > 1:
        raise InputError(
            f"{file}: beside {STUDIES} there is nothing else; write {list(top)[-1]} into each of the files"
        )
    listed = top[STUDIES]
    if not (isinstance(listed, dict) and listed and all(isinstance(x, str) for pair in listed.items() for x in pair)):
        raise InputError(f"{file}: {STUDIES}: name at least one, as in chunks: configs/studies/conll2000.yaml")
    listed = {name: configuration_file(path, file) for name, path in listed.items()}
    return {name: _part(path, root / folder_name(name)) for name, path in listed.items()}


def _side_by_side(parts: dict[str, StudyExperiment], root: Path) -> Iterator[str]:
    for name, part in parts.items():
        yield f"{name}:"
        yield from run_experiment(part)
        yield ""
    write_lines(
        root / MARKDOWN, [f"## {name}\n\n{markdown(part.lines, *part.shown)}\n" for name, part in parts.items()]
    )
    panels = {name: (part.measure, part.plan.split, part.lines) for name, part in parts.items()}
    write_figure(str(root / FIGURE), plot_comparison(panels))
    yield f"studies: {root / MARKDOWN}, {FIGURE}"
