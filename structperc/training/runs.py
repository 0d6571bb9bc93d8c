"""Run folders: ROOT/1, ROOT/2, ... so that no run overwrites another."""

from pathlib import Path

from structperc.errors import InputError


def runs(root: Path) -> list[Path]:
    """The runs under a root, oldest first."""
    found = [p for p in root.glob("*") if p.is_dir() and p.name.isdigit()] if root.is_dir() else []
    return sorted(found, key=lambda p: int(p.name))


def root_of(folder: Path) -> Path:
    """The root that a folder is or, for a run's own folder (as its saved configuration names it), belongs to."""
    return folder.parent if folder.name.isdigit() and (folder / "checkpoints").is_dir() else folder


def next_run(root: Path) -> Path:
    """The folder of a new run (not yet made)."""
    last = runs(root)
    return root / str(int(last[-1].name) + 1 if last else 1)


def checkpoint(root: Path, name: str) -> Path:
    """Path of the newest run's "best" or "last" checkpoint. InputError when there is none."""
    for run in reversed(runs(root)):
        path = run / "checkpoints" / f"{name}.ckpt"
        if path.is_file():
            return path
    raise InputError(f"--ckpt_path {name}: no run under {root} has a checkpoint {name}.ckpt; run fit first")
