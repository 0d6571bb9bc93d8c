"""Where a run can be killed: at every change that it makes to files, each with a name by which it is found again."""

import os
import re
import signal
from collections import Counter
from pathlib import Path
from typing import Any, Literal, NamedTuple

Phase = Literal["before", "half", "after"]
PHASES: tuple[Phase, ...] = ("before", "half", "after")

PATHS = {"open": 1, "os.rename": 2, "os.link": 2, "os.mkdir": 1, "os.remove": 1, "os.rmdir": 1, "os.truncate": 1}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
UNFINISHED = re.compile(r"(\..+)\.[\w-]+\.\d+\.part")  # its name ends in host and process


class Write(NamedTuple):
    """A change to files."""

    act: str  # open, rename, link, mkdir, remove, rmdir, truncate
    name: str  # path, below a folder, of what is changed or comes to be; whatever differs from run to run is "*"
    time: int  # 1: this is done to it for the first time

    def __str__(self) -> str:
        return f"{self.act} {self.name} {self.time}"


class Kill(NamedTuple):
    """Before a write, when half of its bytes are there, or after it."""

    phase: Phase
    write: Write

    def __str__(self) -> str:
        return f"{self.phase} {self.write}"


class Watch:
    """An audit hook: notes every write below a folder in a journal, and kills its own process at one of them.

    Half: a file that is renamed, or the newest one of a folder, loses its second half before; a file that is opened
    loses the second half of what was added to it until the next write.
    """

    def __init__(self, folder: Path, journal: Path, kill: Kill | None = None) -> None:
        self.folder, self.kill = folder, kill
        self.journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.times: Counter[tuple[str, str]] = Counter()
        self.busy = self.due = False
        self.growing: tuple[Path, int] | None = None  # the file that is to be halved, and its size before

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Called by the interpreter before each event."""
        if event not in PATHS or self.busy:
            return
        self.busy = True
        try:
            paths = written(event, arguments)
            if paths and paths[-1].is_relative_to(self.folder):
                self._seen(event.removeprefix("os."), paths, emptied=event == "open" and arguments[2] & os.O_TRUNC)
        finally:
            self.busy = False

    def end(self) -> None:
        """Of the run: after the last write."""
        if self.due:
            self._die()

    def _seen(self, act: str, paths: list[Path], emptied: bool) -> None:
        if self.due:
            self._die()
        name = spelled(paths[-1].relative_to(self.folder))
        self.times[act, name] += 1
        write = Write(act, name, self.times[act, name])
        os.write(self.journal, f"{write}\n".encode())
        if self.kill is None or write != self.kill.write:
            return
        if self.kill.phase == "half":
            source = newest(paths[0])
            self.growing = source, 0 if emptied or act == "rename" else size(source)
        if self.kill.phase == "before" or (self.kill.phase == "half" and act == "rename"):
            self._die()
        self.due = True

    def _die(self) -> None:
        if self.growing:
            path, before = self.growing
            os.truncate(path, (before + size(path)) // 2)
        os.kill(os.getpid(), signal.SIGKILL)


def written(event: str, arguments: tuple[Any, ...]) -> list[Path]:
    """What an audited event changes, none if it only reads; a rename and a link have source and target."""
    given = arguments[: PATHS[event]]
    reads = event == "open" and not arguments[2] & WRITING
    if reads or not all(isinstance(path, str | bytes | os.PathLike) for path in given):  # a number: it is open already
        return []
    beside = arguments[-1] if event in ("os.remove", "os.rmdir") else -1
    start = Path.cwd() if beside == -1 else Path(f"/dev/fd/{beside}").resolve()
    return [start / os.fsdecode(path) for path in given]


def spelled(path: Path) -> str:
    """A path without what differs from process to process."""
    return "/".join(UNFINISHED.sub(r"\1*", part) for part in path.parts)


def newest(path: Path) -> Path:
    """The file, or the one in a folder that was written last."""
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    return max(files, key=lambda file: (size(file) and file.stat().st_mtime_ns, file.name))


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def read_journal(path: Path) -> list[Write]:
    """All writes, in their order."""
    parts = [line.split(" ") for line in path.read_text(encoding="utf-8").splitlines()]
    return [Write(act, " ".join(name), int(time)) for act, *name, time in parts]
