"""Run folders: ROOT/1, ROOT/2, ... so that no run overwrites another."""

from pathlib import Path

from structperc.data.unfinished import remove_unfinished
from structperc.errors import InputError


def runs(root: Path) -> list[Path]:
    """The runs under a root, oldest first."""
    return [path for path in _numbered(root) if path.is_dir()]


def name_of(file: str) -> str:
    """A configuration file without its ending, from a folder "configs" on: its runs lie in runs/NAME."""
    path = Path(file).with_suffix("")
    return str(Path(*path.parts[path.parts.index("configs") + 1 :])) if "configs" in path.parts else path.name


def root_of(folder: Path) -> Path:
    """The root that a folder is or, for a run's own folder (as its saved configuration names it), belongs to."""
    return folder.parent if folder.name.isdecimal() and (folder / "checkpoints").is_dir() else folder


def run_of(checkpoint: Path) -> Path | None:
    """The folder of the run that a checkpoint is of; None of a file that lies elsewhere."""
    return checkpoint.parent.parent if checkpoint.parent.name == "checkpoints" else None


def next_run(root: Path) -> Path:
    """The folder of a new run (not yet made)."""
    last = _numbered(root)
    return root / str(int(last[-1].name) + 1 if last else 1)


def sweep_runs(root: Path) -> None:
    """Removes what killed runs have left unfinished; those without a checkpoint nobody goes on with."""
    for run in runs(root):
        for folder in (run, run / "checkpoints", run / "predictions"):
            remove_unfinished(folder)


def checkpoint(root: Path, name: str) -> Path:
    """Path of the newest run's "best" or "last" checkpoint. InputError when there is none."""
    for run in reversed(runs(root)):
        path = run / "checkpoints" / f"{name}.ckpt"
        if path.is_file():
            return path
    raise InputError(f"--ckpt_path {name}: no run under {root} has a checkpoint {name}.ckpt; run fit first")


def _numbered(root: Path) -> list[Path]:
    """All whose names are numbers, in their order."""
    found = [path for path in root.glob("*") if path.name.isdecimal()] if root.is_dir() else []
    return sorted(found, key=lambda path: int(path.name))
