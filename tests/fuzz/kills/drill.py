"""Trainings of one kind: one that nothing disturbs, and others that are killed and go on."""

import os
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from structperc.cli.main import main
from structperc.experiments import experiment
from tests.fuzz.kills.ends import differences, left
from tests.fuzz.kills.kill import PHASES, Kill, Watch, Write, read_journal
from tests.fuzz.kills.kinds import Kind
from tests.zygote import Ended, Zygote

Moment = Kill | float | None  # at a write, after so many seconds of processor time, or when all is done
KILLED = -signal.SIGKILL, -signal.SIGPROF


def train(arguments: list[str], place: Path, journal: Path, moment: Moment | None) -> int:
    """The program in a folder, with one for temporary files; writes are noted in the journal. In a fork alone."""
    (place / "tmp").mkdir(parents=True, exist_ok=True)
    os.chdir(place)
    tempfile.tempdir = str(place / "tmp")
    experiment.fit = _fit_here
    watch = Watch(place, journal, moment if isinstance(moment, Kill) else None)
    sys.addaudithook(watch)
    if isinstance(moment, float):
        signal.setitimer(signal.ITIMER_PROF, moment)  # of whose signal nobody takes notice: it kills at once
    status = main(arguments)
    watch.end()
    return status


def _fit_here(command: list[str], folder: Path) -> str | None:
    """As studies and sweeps train, but in their own process, so that a kill in a training is theirs."""
    status = main([*command, *experiment.resume_options(folder)])
    return None if status == 0 else f"exit status {status}"


def kills(targets: Mapping[str, Sequence[Write]], turn: int) -> list[Kill]:
    """One for each target; moments and times take turns, from target to target and with the number given."""
    chosen = enumerate(targets.values(), turn)
    return [Kill(PHASES[i % 3], writes[i // 3 % len(writes)]) for i, writes in chosen]


class Drill:
    """Trains once without a kill, to see what is written and what comes of it."""

    def __init__(self, zygote: Zygote, kind: Kind, folder: Path) -> None:
        self.zygote, self.kind, self.folder = zygote, kind, folder
        self.numbers = count()
        folder.mkdir()
        self.place = self._new()
        self.seconds = self._end(self.place)
        self.whole, self.journal = left(self.place), read_journal(self._beside(self.place, "journal"))

    @property
    def targets(self) -> dict[str, list[Write]]:
        """Name of each file, or folder that comes as a whole, that is there in the end -> the writes that made it."""
        found: dict[str, list[Write]] = defaultdict(list)
        for write in self.journal:
            if write.act in ("open", "rename") and (self.place / write.name).exists():
                found[write.name].append(write)
        return found

    def differences(self, *moments: Moment) -> list[str]:
        """Where a training ends otherwise that was killed so often, and went on each time."""
        place = self._new()
        for moment in moments:
            status = self._run(place, moment).status
            assert status in KILLED or (status == 0 and not isinstance(moment, Kill)), self._told(place)
        made = self._lists(place)
        self._end(place)
        again = [f"{name}: made again" for name, file in self._lists(place).items() if made.get(name, file) != file]
        return differences(self.whole, left(place)) + again

    def _end(self, place: Path) -> float:
        """Lets the training end; -> seconds of processor time since it last went on."""
        ended = self._run(place)
        assert ended.status == 0, self._told(place)
        return ended.seconds

    def _run(self, place: Path, moment: Moment | None = None) -> Ended:
        """The next part of the training in this folder."""
        journal, log = self._beside(place, "journal"), self._beside(place, "log")
        return self.zygote(log, train, self.kind.next(place), place, journal, moment)

    @staticmethod
    def _lists(place: Path) -> dict[str, int]:
        """Which file each list of candidates is."""
        return {str(path): path.stat().st_ino for path in place.glob("cache/*/fold-*.safetensors")}

    def _new(self) -> Path:
        return self.folder / str(next(self.numbers))

    @staticmethod
    def _beside(place: Path, what: str) -> Path:
        return place.with_suffix(f".{what}")

    def _told(self, place: Path) -> str:
        return self._beside(place, "log").read_text(encoding="utf-8")
