"""Run folders ROOT/1, ROOT/2, ..., their locks, and the command that resumes an interrupted run."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from pytorch_lightning.utilities.exceptions import SIGTERMException

from structperc.data.output import remove_stale
from structperc.errors import InputError

LOCK = ".lock"  # remains in the folder; the system's lock on it ends with the process
OPTION = "--ckpt_path"


def runs(root: Path) -> list[Path]:
    """Return the folders of the runs under a root, oldest first."""
    return [path for path in _numbered(root) if path.is_dir()]


def root_of(folder: Path) -> Path:
    """Return the folder, or its parent for the folder of a run, as in saved configurations."""
    return folder.parent if folder.name.isdecimal() and (folder / "checkpoints").is_dir() else folder


def run_of(checkpoint: Path) -> Path | None:
    """Return the folder of the run of a checkpoint, or None for a file elsewhere."""
    return checkpoint.parent.parent if checkpoint.parent.name == "checkpoints" else None


def next_run(root: Path) -> Path:
    """Return the folder of a new run, which does not exist yet."""
    last = _numbered(root)
    return root / str(int(last[-1].name) + 1 if last else 1)


def checkpoint(root: Path, name: str) -> Path:
    """Return the path of the newest run's "best" or "last" checkpoint. Raises InputError if it is missing."""
    for run in reversed(runs(root)):
        path = run / "checkpoints" / f"{name}.ckpt"
        if path.is_file():
            return path
    raise InputError(f"--ckpt_path {name}: no run under {root} has a checkpoint {name}.ckpt; run fit first")


def _numbered(root: Path) -> list[Path]:
    """Return the entries whose names are numbers, in their order."""
    folders = [path for path in root.glob("*") if path.name.isdecimal()] if root.is_dir() else []
    return sorted(folders, key=lambda path: int(path.name))


@contextmanager
def lock_folder(folder: Path, advice: str) -> Iterator[None]:
    """Create the folder and lock it within the block. Raises InputError with the advice if it is already locked."""
    _make(folder)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(f"{folder}: the folder is locked by another process; {advice}") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def lock_new_run(root: Path) -> Iterator[Path]:
    """Yield the folder of a new run, ROOT/1 or the next free number, locked within the block.

    The folder is removed at the end if it is empty.
    """
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    _make(root)
    while True:
        folder = next_run(root)
        with suppress(FileExistsError):  # another process was faster
            folder.mkdir()
            break
    for run in runs(root):  # unfinished files of killed runs, some of which are never resumed
        for part in (run, run / "checkpoints", run / "predictions"):
            remove_stale(part)
    try:
        with lock_folder(folder, "start again"):
            try:
                yield folder
            finally:
                if [path.name for path in folder.iterdir()] == [LOCK]:
                    (folder / LOCK).unlink()
    finally:
        with suppress(OSError):  # folders that are not empty
            for made in (folder, *missing):
                made.rmdir()


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot create this folder ({error.strerror})") from None


@contextmanager
def resume_hint(command: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Add the command that resumes the run to the message of an interruption within the block.

    `command` is called at the interruption.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as end:
        by_trainer = isinstance(end.__context__, KeyboardInterrupt)
        if not isinstance(end, KeyboardInterrupt | SIGTERMException) and not by_trainer:
            raise
        raise KeyboardInterrupt(f"resume with: {shlex.join(['structperc', *command()])}") from None


def resuming(command: Sequence[str], last: Path, root: Path) -> list[str]:
    """Return a training command with the option that resumes from a checkpoint of a run under a root."""
    kept = list(command)
    for at in reversed([i for i, word in enumerate(kept) if word.partition("=")[0] == OPTION]):
        del kept[at : at + (1 if "=" in kept[at] else 2)]
    newest = checkpoint(root, "last") == last
    return [*kept, OPTION, "last" if newest else str(last)]
