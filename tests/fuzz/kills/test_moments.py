"""Kills come where they are wanted, and what they change does not go unseen."""

import os
import signal
import sys

import pytest
import torch

from tests.fuzz.kills.ends import differences
from tests.fuzz.kills.kill import Kill, Watch, Write, read_journal

TEXT = "0123456789"
RENAMED, ADDED = Write("rename", "file", 1), Write("open", "log", 2)


def writes(place, journal, kill):
    """A file that appears whole, and one to which is added twice."""
    watch = Watch(place, journal, kill)
    sys.addaudithook(watch)
    part = place / ".file.host.7.part"
    part.write_text(TEXT)
    os.replace(part, place / "file")
    for _ in range(2):
        with open(place / "log", "a") as log:
            log.write(TEXT)
    watch.end()


@pytest.fixture
def left(zygote, tmp_path):
    """What is in the files after a run that is killed, or is not."""

    def left(kill=None):
        place = tmp_path / "place"
        place.mkdir()
        ended = zygote(tmp_path / "printed", writes, place, tmp_path / "journal", kill)
        assert ended.status == (-signal.SIGKILL if kill else 0)
        return {path.name: path.read_text() for path in place.iterdir()}

    return left


@pytest.mark.slow
def test_the_journal_names_every_write(left, tmp_path):
    assert left() == {"file": TEXT, "log": TEXT + TEXT}
    opened = [Write("open", name, time) for name, time in ((".file*", 1), ("log", 1), ("log", 2))]
    assert read_journal(tmp_path / "journal") == [opened[0], RENAMED, *opened[1:]]


@pytest.mark.parametrize(
    ("kill", "files"),
    [
        (Kill("before", RENAMED), {".file.host.7.part": TEXT}),
        (Kill("half", RENAMED), {".file.host.7.part": TEXT[:5]}),
        (Kill("after", RENAMED), {"file": TEXT}),
        (Kill("before", ADDED), {"file": TEXT, "log": TEXT}),
        (Kill("half", ADDED), {"file": TEXT, "log": TEXT + TEXT[:5]}),
        (Kill("after", ADDED), {"file": TEXT, "log": TEXT + TEXT}),
    ],
    ids=str,
)
def test_a_kill_comes_at_its_moment(left, kill, files):
    assert left(kill) == files


def test_differences_name_their_place():
    a = {"same": [1, "x"], "file": b"1", "gone": 0, "tensors": [torch.zeros(2), torch.zeros(1)]}
    b = {"same": [1, "x"], "file": b"2", "new": 0, "tensors": [torch.zeros(2), torch.zeros(1).double()]}
    assert sorted(differences(a, b)) == [
        "/file: b'1' | b'2'",
        "/gone: missing",
        "/new: left behind",
        "/tensors/1: other numbers",
    ]
    assert differences(a, a) == []
