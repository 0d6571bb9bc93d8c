"""Studies: configurations trained over seeds, with a table of means, deviations and tests of significance."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from structperc.data.output import write_lines
from structperc.data.yaml_file import read_yaml
from structperc.errors import InputError
from structperc.experiments.experiment import LOG, ExperimentRow, Run, check_same, identity, run_trials
from structperc.experiments.prediction_files import foreign_run, gold_text, with_further_files
from structperc.experiments.study_file import Study, check_study, read_study
from structperc.experiments.study_report import (
    RowResults,
    markdown,
    means,
    plot_comparison,
    plot_study,
    results_by_row,
    score_columns,
    study_lines,
    text_columns,
    type_columns,
    write_means,
    write_runs,
)
from structperc.experiments.study_significance import Significance
from structperc.packaged_configs import folder_name, name_of, packaged_path
from structperc.reports.figures import write_figure
from structperc.reports.tables import write_json
from structperc.training.overlays import file_beside
from structperc.training.run_folders import lock_folder

RECORD, MEANS, RUNS, MARKDOWN, FIGURE = "study.json", "study.csv", "runs.csv", "study.md", "study.png"
ROW_RECORD = "row.json"
STUDIES = "studies"


def study(file: str, root: str | None = None) -> Iterator[str]:
    """Run a study: train each row of a file with each of its seeds, and write a table with tests of significance.

    Each row is trained with each of its seeds (seed_everything and data.seed), in ROOT/ROW/seed=SEED. See `experiment`
    for trainings that are interrupted or fail.

    In ROOT, study.csv has a line per row and runs.csv one per run, study.md the table as Markdown, study.json all of
    it; they are written after each run. study.png shows scores over training seconds.

    A file with only `studies: {NAME: FILE, ...}` runs these studies in turn, each in ROOT/NAME. ROOT/study.md has the
    tables of all, and ROOT/study.png shows scores over training seconds, speed, size and memory.

    Args:
        file: The study file, see `read_study`.
        root: Folder of all runs; default: runs/NAME-OF-THE-FILE.

    Yields:
        Lines about the progress, then the table.

    Raises:
        InputError: Before any training: see `read_study` and `check_study`; a folder has runs of other configurations;
            or another study runs in the root. At the end: all runs failed.

    Example:
        >>> _ = Path("study.yaml").write_text("seeds: [1, 2]\\nrows: {CRF: {configs: [pkg:studies/embedded#crf]}}")
        >>> lines = study("study.yaml", root="runs/study")  # the trainings start when the lines are read
        >>> for line in lines:  # doctest: +SKIP
        ...     print(line)
    """
    file = packaged_path(file)
    folder = Path(root) if root is not None else Path("runs") / name_of(file)
    top = read_yaml(file)
    if isinstance(top, dict) and STUDIES in top:
        yield from _run_several(file, top, folder)
    else:
        yield from StudyRun(file, folder).run()


class StudyRun:
    """One study with the table of its completed runs.

    Args:
        file: The study file.
        root: Folder of all runs.
    """

    def __init__(self, file: str, root: Path) -> None:
        self.study: Study = read_study(file)
        self.measure, self.root = check_study(self.study).measure, root
        self.texts = [self.study.split, *self.study.files]
        self.significance = {text: Significance(text, self.study.baseline) for text in self.texts}
        self.lines: list[RowResults] = []

    def run(self) -> Iterator[str]:
        """Train all rows; yield the progress, the tables and the failures. Raises InputError as `study`."""
        steps = [[trial] for row in self.study.rows for trial in row.trials if not row.predictions]
        with lock_folder(self.root, "wait for it, or set --root"):
            self._write_identities()
            done = yield from run_trials(steps, "runs", self.root, [self.study.split], [], self._write)
            write_figure(str(self.root / FIGURE), plot_study(self.lines, self.measure, self.study.split))
            tables = score_columns(self.lines, self.measure), type_columns(self.lines)
            for columns in (*tables, text_columns(self.lines, self.measure, self.texts)):
                yield from ("", *study_lines(self.lines, columns)) if columns else ()
            yield ""
            if failed := [run for run in done if run.error is not None]:
                if len(failed) == len(done):
                    raise InputError(f"study: all runs failed; {failed[0].name}: {failed[0].error} (see {self.root})")
                names = "; ".join(run.name for run in failed)
                yield f"{len(failed)} of {len(done)} runs failed: {names}. See their {LOG}; the next call repeats them."
            yield f"study: {self.root / MARKDOWN}, {MEANS}, {RUNS}, {FIGURE}, {RECORD}"

    def markdown(self) -> str:
        """Return the table as Markdown."""
        return markdown(self.lines, self.measure, self.texts, self.study.baseline)

    def _write_identities(self) -> None:
        """Write the identity of each row into its folder; rows may be added to a study.

        Raises InputError, before anything is written, for a folder with runs of another configuration.
        """
        identities = {self.root / row.folder / ROW_RECORD: row_identity(row) for row in self.study.rows if row.configs}
        for path, now in identities.items():
            before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else now
            check_same(before, now, str(path.parent), "rename the row, or set --root")
        for path, now in identities.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, now)

    def _write(self, done: Sequence[Run]) -> None:
        baseline, split = self.study.baseline, self.study.split
        runs = self._with_predictions(done)
        tests = {text: significance.rows(runs) for text, significance in self.significance.items()}
        lines = self.lines = results_by_row(runs, self.texts, self.significance[split](runs), tests)
        write_means(str(self.root / MEANS), lines)
        write_runs(str(self.root / RUNS), lines)
        write_lines(self.root / MARKDOWN, [self.markdown()])
        rows = [{**row_identity(line.row), "seeds": line.row.seeds, "numbers": means(line)} for line in lines]
        records = [{"row": run.row.name, "seed": run.seed, **run.record()} for line in lines for run in line.runs]
        record = {"baseline": baseline, "split": split, "measure": self.measure, "rows": rows, "runs": records}
        write_json(self.root / RECORD, record)

    def _with_predictions(self, done: Sequence[Run]) -> list[Run]:
        """Return the runs with their results on further files, and those of other systems, in the order of the rows."""
        runs = [with_further_files(run, self.study.files) for run in done]
        trials = [trial for row in self.study.rows if row.predictions for trial in row.trials]
        gold = {text: gold_text(runs, text) for text in self.texts} if trials else {}
        runs += [foreign_run(row, seed, row.place(self.root, seed), gold) for row, seed in trials]
        order = [row.name for row in self.study.rows]
        return sorted(runs, key=lambda run: order.index(run.row.name))


def row_identity(row: ExperimentRow) -> dict[str, Any]:
    """Return the properties that all runs of a row share; seeds may be added, so they are not included."""
    if row.predictions:
        return {"name": row.name, "predictions": dict(row.predictions)}
    about = identity(row.configs, name=row.name, command=row.command, options=row.options, init_from=row.init_from)
    return {key: about[key] for key in ("name", "command", "configs", "options", "init_from")}


def _run_several(file: str, top: dict[Any, Any], root: Path) -> Iterator[str]:
    if len(top) > 1:
        raise InputError(f"{file}: only {STUDIES} is allowed here; move {list(top)[-1]} into each of the files")
    listed = top[STUDIES]
    if not (isinstance(listed, dict) and listed and all(isinstance(x, str) for pair in listed.items() for x in pair)):
        raise InputError(f"{file}: {STUDIES}: name at least one, as in chunks: pkg:studies/conll2000")
    files = {name: file_beside(file, path) for name, path in listed.items()}
    parts = {name: StudyRun(path, root / folder_name(name)) for name, path in files.items()}
    for name, part in parts.items():
        yield f"{name}:"
        yield from part.run()
        yield ""
    write_lines(root / MARKDOWN, [f"## {name}\n\n{part.markdown()}\n" for name, part in parts.items()])
    panels = {name: (part.measure, part.study.split, part.lines) for name, part in parts.items()}
    write_figure(str(root / FIGURE), plot_comparison(panels))
    yield f"studies: {root / MARKDOWN}, {FIGURE}"
