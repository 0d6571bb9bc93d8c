"""A list of configurations over seeds, and one table of what came of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from structperc.data.output import write_lines
from structperc.errors import InputError
from structperc.experiments.study_check import check, claim, identity
from structperc.experiments.study_figure import plot_study
from structperc.experiments.study_file import Row, Study, read_study
from structperc.experiments.study_significance import Run, Significance
from structperc.experiments.study_table import (
    Line,
    columns_of,
    lines_of,
    markdown,
    means,
    table_lines,
    type_columns,
    write_means,
    write_runs,
)
from structperc.experiments.trial import LOG, Training, finished_run, trained
from structperc.reports.writing import write_figure
from structperc.training.claims import alone_in
from structperc.training.report import write_json
from structperc.training.runs import name_of

RECORD, MEANS, RUNS, TEXT, FIGURE = "study.json", "study.csv", "runs.csv", "study.md", "study.png"


def study(file: str, root: str | None = None) -> Iterator[str]:
    """Lines about the progress of a study (see `read_study`), then its table.

    Each row is trained with each of its seeds (seed_everything and data.seed), in ROOT/ROW/seed=SEED; ROOT is by
    default runs/NAME-OF-THE-FILE. Runs whose results are there are not repeated, interrupted ones go on from their
    last epoch. One that fails is reported and the study goes on; the next time it is tried again.

    In ROOT, study.csv has a line per row and runs.csv one per run, study.md the table as Markdown, study.json all of
    it; they are written after each run. study.png shows scores over seconds of training.

    InputError, before anything is trained, for what `read_study`, `check` and `claim` refuse, and for a root in which
    another study runs; in the end when every run failed.
    """
    plan = read_study(file)
    task = check(plan)
    folder = Path(root) if root is not None else Path("runs") / name_of(file)
    significance = Significance(plan.split, plan.baseline)
    done: list[Run] = []
    with alone_in(folder, "wait for it, or set --root"):
        claim(folder, plan.rows)
        yield f"{len(plan.runs)} runs in {folder}"
        for number, (row, seed) in enumerate(plan.runs, 1):
            place = folder / row.folder / f"seed={seed}"
            kept = " (kept)" if finished_run(place) is not None else ""
            run = Run(row, seed, _training(row, seed, done, place))
            done.append(run)
            lines = lines_of(done, plan.split, significance(done))
            _keep(folder, plan, task.measure, lines)
            yield f"[{number}/{len(plan.runs)}] {run.training.line(run.name, plan.split)}{kept}"
        write_figure(str(folder / FIGURE), plot_study(lines, task.measure, plan.split))
    for columns in (columns_of(lines, task.measure), type_columns(lines)):
        yield from ("", *table_lines(lines, columns)) if columns else ()
    yield ""
    yield from _failures(done, folder)
    yield f"study: {folder / TEXT}, {MEANS}, {RUNS}, {FIGURE}, {RECORD}"


def _training(row: Row, seed: int, done: Sequence[Run], place: Path) -> Training:
    command = [row.command, *row.arguments(seed)]
    sources = [run for run in done if run.row.name == row.init_from]
    if not sources:
        return trained(command, place)
    source = next((run for run in sources if run.seed == seed), sources[0])
    if source.training.run is None:
        return Training(command, None, None, f"{source.name}, which it starts from, failed")
    return trained([*command, f"--model.init_from={Path(source.training.run) / 'model'}"], place)


def _keep(folder: Path, plan: Study, measure: str, lines: Sequence[Line]) -> None:
    """Write what is known so far."""
    write_means(str(folder / MEANS), lines)
    write_runs(str(folder / RUNS), lines)
    write_lines(folder / TEXT, [markdown(lines, measure, plan.split, plan.baseline)])
    write_json(folder / RECORD, _record(plan, measure, lines))


def _record(plan: Study, measure: str, lines: Sequence[Line]) -> dict[str, Any]:
    rows = [{**identity(line.row), "seeds": line.row.seeds, "numbers": means(line)} for line in lines]
    runs = [{"row": run.row.name, "seed": run.seed, **run.training.about()} for line in lines for run in line.runs]
    return {"baseline": plan.baseline, "split": plan.split, "measure": measure, "rows": rows, "runs": runs}


def _failures(done: Sequence[Run], folder: Path) -> Iterator[str]:
    """How many runs failed. InputError when all did."""
    failed = [run for run in done if run.training.error is not None]
    if len(failed) == len(done):
        raise InputError(f"study: no run succeeded; {failed[0].name}: {failed[0].training.error} (see {folder})")
    if failed:
        names = "; ".join(run.name for run in failed)
        yield f"{len(failed)} of {len(done)} runs failed: {names}. See their {LOG}; they are tried again next time."
