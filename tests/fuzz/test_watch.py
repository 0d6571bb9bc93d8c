"""The fuzzer sees what it is there to see."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fuzz import watch
from tests.fuzz.outcome import Outcome, changes, judge
from tests.fuzz.watch import guarded

PROGRAMS = {
    "a shell": lambda: os.system("true kanarie"),
    "a process": lambda: subprocess.run(["true", "kanarie"]).returncode,
    "an import": lambda: __import__("kanarie_module"),
    "code": lambda: eval("'kanarie' == 1"),
    "a file": lambda: open("kanarie", "w").close(),
    "a removal": lambda: Path("kanarie_script.py").unlink(missing_ok=True),
}


def complaint(text: str, status: int = 2):
    def command():
        print(text, file=sys.stderr)
        return status

    return command


@pytest.mark.parametrize("program", PROGRAMS)
def test_executed_code(program, tmp_path):
    assert judge(guarded(PROGRAMS[program], tmp_path), [], None).outcome == Outcome.EXECUTED


@pytest.mark.parametrize("busy", [True, False])
def test_hanging_commands(busy, tmp_path, monkeypatch):
    def command():
        while busy:
            pass
        time.sleep(60)

    monkeypatch.setattr(watch, "SECONDS", 0.1)
    assert judge(guarded(command, tmp_path), [], None).outcome == Outcome.HANG


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        (lambda: 1 // 0, Outcome.TRACEBACK),
        (lambda: len(bytearray(1 << 50)), Outcome.TRACEBACK),
        (lambda: sys.exit(2), Outcome.TRACEBACK),
        (complaint("structperc: error: this and that"), Outcome.REFUSED),
        (complaint("structperc: error: this and that", 70), Outcome.TRACEBACK),
        (complaint("structperc: error: this\nand that"), Outcome.TRACEBACK),
        (complaint(f"structperc: error: {'x' * 1000}"), Outcome.TRACEBACK),
        (complaint("Traceback (most recent call last):", 0), Outcome.TRACEBACK),
        (lambda: 0, Outcome.SILENT),
    ],
)
def test_how_commands_end(command, outcome, tmp_path):
    assert judge(guarded(command, tmp_path), [], None).outcome == outcome


def test_changed_files():
    before = {"out.txt": "a", "data.txt": "b", "gone.txt": "c", "runs/1/x": "d"}
    after = {"out.txt": "A", "data.txt": "B", ".out.txt.123": "e", "new.txt": "f", "runs/1/x": "D", "runs/2/y": "g"}
    both = ["changed data.txt", "lost gone.txt", "unfinished .out.txt.123"]
    assert changes(before, after, ["out.txt"], refused=False) == both
    assert changes(before, after, ["out.txt"], refused=True) == sorted([*both, "changed out.txt", "left new.txt"])
