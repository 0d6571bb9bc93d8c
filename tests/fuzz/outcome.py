"""What became of a case, and whether that is right."""

import hashlib
import os
import re
import stat
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.watch import Ran


class Outcome(Enum):
    """From fine to worse."""

    LEGAL = "ok"
    REFUSED = "one clear line"
    WARNED = "accepted with a warning"
    SILENT = "silently accepted"
    TRACEBACK = "traceback"
    HANG = "hang"
    LOST = "files lost or left"
    EXECUTED = "code execution"


FINE = (Outcome.LEGAL, Outcome.REFUSED, Outcome.WARNED)
LONGEST = 800  # characters of a complaint
NOTICES = (  # lines that may stand before a complaint
    "Seed set to",
    "GPU available",
    "TPU available",
    "HPU available",
    "`Trainer",
    "candidate lists:",
    "first model:",
    "fold ",
)
UNFINISHED = re.compile(r"(\.(part|tmp|unfinished|incomplete)|~)$|^\.(?!.*lock)|^tmp")


class Judged(NamedTuple):
    """An outcome and the line that explains it."""

    outcome: Outcome
    line: str


def judge(ran: Ran, lost: Sequence[str], reason: str | None) -> Judged:
    """The worst that a command did; `lost` are complaints about files, `reason` says why it is right to accept."""
    if ran.executed:
        return Judged(Outcome.EXECUTED, "; ".join(ran.executed[:3]))
    if ran.hung:
        return Judged(Outcome.HANG, ran.error)
    complaint = _complaint(ran)
    if ran.status != 0 and complaint is None:
        return Judged(Outcome.TRACEBACK, ran.error or f"exit {ran.status}: {_shown(ran.err)}")
    if lost:
        return Judged(Outcome.LOST, "; ".join(lost[:5]))
    if complaint is not None:
        return Judged(Outcome.REFUSED, complaint)
    if "Traceback (most recent" in ran.err:
        return Judged(Outcome.TRACEBACK, _shown(ran.err))
    if ran.warned:
        return Judged(Outcome.WARNED, ran.warned[-1])
    return Judged(Outcome.SILENT, _shown(ran.err)) if reason is None else Judged(Outcome.LEGAL, reason)


def _complaint(ran: Ran) -> str | None:
    """The one line that a refused command says; None where it says less or more."""
    lines = [line for line in ran.err.splitlines() if line.strip() and not line.startswith(NOTICES)]
    lines = [line for line in lines if line not in ran.warned]
    fine = ran.status == 2 and len(lines) == 1 and len(lines[0]) <= LONGEST
    return lines[0] if fine and lines[0].startswith("structperc: error: ") else None


def _shown(text: str) -> str:
    return " | ".join(text.split("\n"))[-400:]


def changes(before: Mapping[str, str], after: Mapping[str, str], written: Sequence[str], refused: bool) -> list[str]:
    """Complaints about a folder that a command has worked in: path -> what stands there, before and after.

    A command may replace what it was told to write, and go on with a run; one that is refused adds no file but in
    the folder of a run that it had begun.
    """
    found = []
    for path, held in before.items():
        if path not in after:
            found.append(f"lost {path}")
        elif after[path] != held and not (path in written and not refused) and not path.startswith("runs/"):
            found.append(f"changed {path}")
    for path in after.keys() - before.keys():
        if any(UNFINISHED.search(part) for part in path.split("/")):
            found.append(f"unfinished {path}")
        elif "/" not in path and refused and after[path] != "folder":
            found.append(f"left {path}")
    return sorted(found)


def snapshot(folder: Path) -> dict[str, str]:
    """All files, links, devices and folders below a folder; links are not followed."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            found[path.relative_to(folder).as_posix()] = _held(path)
    return found


def _held(path: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link to {os.readlink(path)}"
    if stat.S_ISREG(mode):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return "folder" if stat.S_ISDIR(mode) else "device"
