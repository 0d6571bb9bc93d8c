"""What a command takes: the time that passes, and the peak memory of its process and all processes below it (Linux)."""

import re
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, TypeVar

EVERY = 0.05  # seconds between two looks at the processes
Found = TypeVar("Found")
_STATUS = re.compile(r"^PPid:\s+(\d+)\n.*^VmHWM:\s+(\d+) kB", re.MULTILINE | re.DOTALL)


class Taken(NamedTuple):
    """Of one command."""

    seconds: float
    memory: float  # MB, the sum of the peaks of all processes; pages that they share count for each of them


def taken(*command: str) -> Taken:
    """Run a command, whose standard output is dropped, to its end. Raises CalledProcessError if it fails."""
    peaks: dict[int, int] = {}
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peaks |= _peaks(process.pid)
            time.sleep(EVERY)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Taken(seconds, sum(peaks.values()) / 1024)


def at_once(number: int, run: Callable[[], Found]) -> list[Found]:
    """What so many runs return that are made at the same time, and know nothing of each other.

    They are what the processors give to several processes, which share caches and memory: the most that can be asked of
    processes that do one thing together.
    """
    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(lambda _: run(), range(number)))


def _peaks(root: int) -> dict[int, int]:
    """The peak so far of a process and of all below it, in kB, by their numbers."""
    known = {int(file.parent.name): own for file in Path("/proc").glob("[0-9]*/status") if (own := _status(file))}
    found = {root}
    while more := {number for number, (parent, _) in known.items() if parent in found} - found:
        found |= more
    return {number: known[number][1] for number in found & known.keys()}


def _status(file: Path) -> tuple[int, int] | None:
    """The parent of a process, and its peak in kB; None for one that is over or of the kernel."""
    try:
        found = _STATUS.search(file.read_text())
    except OSError:
        found = None
    return (int(found[1]), int(found[2])) if found else None
