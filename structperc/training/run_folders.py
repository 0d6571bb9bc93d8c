"""Run folders ROOT/1, ROOT/2, ..., their locks, and the command that resumes an interrupted run."""

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout
from pytorch_lightning.utilities.exceptions import SIGTERMException

from structperc.data.output import remove_stale
from structperc.errors import InputError
from structperc.packaged_configs import is_packaged, packaged_root

LOCK = ".lock"  # stays in the folder; the system's lock on it ends with the process
OPTION = "--ckpt_path"


def runs(root: Path) -> list[Path]:
    """Return the folders of the runs under a root, oldest first."""
    return [path for path in _numbered(root) if path.is_dir()]


def name_of(file: str) -> str:
    """Return a configuration file's path without its ending, from a folder "configs" on: its runs lie in runs/NAME."""
    path = Path(file).with_suffix("")
    if is_packaged(file):
        return str(path.resolve().relative_to(packaged_root().resolve()))
    return str(Path(*path.parts[path.parts.index("configs") + 1 :])) if "configs" in path.parts else path.name


def root_of(folder: Path) -> Path:
    """Return the folder itself, or the root above it if it is the folder of a run, which saved configurations name."""
    return folder.parent if folder.name.isdecimal() and (folder / "checkpoints").is_dir() else folder


def run_of(checkpoint: Path) -> Path | None:
    """Return the folder of the run that a checkpoint belongs to, or None for a file that lies elsewhere."""
    return checkpoint.parent.parent if checkpoint.parent.name == "checkpoints" else None


def next_run(root: Path) -> Path:
    """Return the folder of a new run, which is not made yet."""
    last = _numbered(root)
    return root / str(int(last[-1].name) + 1 if last else 1)


def sweep_runs(root: Path) -> None:
    """Remove the unfinished files that killed runs have left in their folders, of which some are never resumed."""
    for run in runs(root):
        for folder in (run, run / "checkpoints", run / "predictions"):
            remove_stale(folder)


def checkpoint(root: Path, name: str) -> Path:
    """Return the path of the newest run's "best" or "last" checkpoint. Raises InputError when there is none."""
    for run in reversed(runs(root)):
        path = run / "checkpoints" / f"{name}.ckpt"
        if path.is_file():
            return path
    raise InputError(f"--ckpt_path {name}: no run under {root} has a checkpoint {name}.ckpt; run fit first")


def _numbered(root: Path) -> list[Path]:
    """The entries whose names are numbers, in their order."""
    found = [path for path in root.glob("*") if path.name.isdecimal()] if root.is_dir() else []
    return sorted(found, key=lambda path: int(path.name))


@contextmanager
def lock_folder(folder: Path, advice: str) -> Iterator[None]:
    """Make the folder and hold it within the block. Raises InputError, with the advice, if another process holds it."""
    _make(folder)
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(f"{folder}: another process works here; {advice}") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def lock_new_run(root: Path) -> Iterator[Path]:
    """Yield the folder of a new run, ROOT/1 or the first number that is free, and hold it within the block.

    The folder is there from the start, and removed in the end if nothing was written into it.
    """
    missing = [folder for folder in (root, *root.parents) if not folder.exists()]
    folder = _next(root)
    sweep_runs(root)
    try:
        with lock_folder(folder, "start again"):
            try:
                yield folder
            finally:
                if [path.name for path in folder.iterdir()] == [LOCK]:
                    (folder / LOCK).unlink()
    finally:
        with suppress(OSError):  # they are not empty
            for made in (folder, *missing):
                made.rmdir()


def _next(root: Path) -> Path:
    _make(root)
    while True:
        folder = next_run(root)
        with suppress(FileExistsError):  # another process was faster
            folder.mkdir()
            return folder


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot make this folder ({error.strerror})") from None


@contextmanager
def resume_hint(command: Callable[[], Sequence[str]]) -> Iterator[None]:
    """Add the command that resumes to the message of an interruption within the block.

    `command` is called when the interruption comes.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as end:
        if not _interrupted(end):
            raise
        raise KeyboardInterrupt(f"resume with: {shlex.join(['structperc', *command()])}") from None


def _interrupted(end: BaseException) -> bool:
    """Whether Ctrl-C or SIGTERM ended the program, also by way of the trainer."""
    return isinstance(end, KeyboardInterrupt | SIGTERMException) or isinstance(end.__context__, KeyboardInterrupt)


def resuming(command: Sequence[str], last: Path, root: Path) -> list[str]:
    """Return a training command with the option that resumes from a checkpoint of one of the runs under a root."""
    kept = list(command)
    for at in reversed([i for i, word in enumerate(kept) if word.partition("=")[0] == OPTION]):
        del kept[at : at + (1 if "=" in kept[at] else 2)]
    newest = checkpoint(root, "last") == last
    return [*kept, OPTION, "last" if newest else str(last)]
