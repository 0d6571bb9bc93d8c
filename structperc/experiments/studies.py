"""One study, or several side by side, from a file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from structperc.data.output import write_lines
from structperc.data.yaml_file import read_yaml
from structperc.errors import InputError
from structperc.experiments.comparison_figure import plot_comparison
from structperc.experiments.experiment import run_experiment
from structperc.experiments.row import folder_name
from structperc.experiments.study_check import check_study
from structperc.experiments.study_file import configuration_file, read_study
from structperc.experiments.study_outcome import FIGURE, TEXT, Means
from structperc.experiments.study_table import markdown
from structperc.packaged import packaged
from structperc.reports.writing import write_figure
from structperc.training.runs import name_of

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


def _part(file: str, root: Path) -> Means:
    plan = read_study(file)
    return Means(plan, check_study(plan).measure, root)


def _parts(file: str, top: dict[Any, Any], root: Path) -> dict[str, Means]:
    if len(top) > 1:
        raise InputError(
            f"{file}: beside {STUDIES} there is nothing else; write {list(top)[-1]} into each of the files"
        )
    listed = top[STUDIES]
    if not (isinstance(listed, dict) and listed and all(isinstance(x, str) for pair in listed.items() for x in pair)):
        raise InputError(f"{file}: {STUDIES}: name at least one, as in chunks: configs/studies/conll2000.yaml")
    listed = {name: configuration_file(path, file) for name, path in listed.items()}
    return {name: _part(path, root / folder_name(name)) for name, path in listed.items()}


def _side_by_side(parts: dict[str, Means], root: Path) -> Iterator[str]:
    for name, part in parts.items():
        yield f"{name}:"
        yield from run_experiment(part)
        yield ""
    write_lines(root / TEXT, [f"## {name}\n\n{markdown(part.lines, *part.shown)}\n" for name, part in parts.items()])
    panels = {name: (part.measure, part.plan.split, part.lines) for name, part in parts.items()}
    write_figure(str(root / FIGURE), plot_comparison(panels))
    yield f"studies: {root / TEXT}, {FIGURE}"
