"""Nobody works in a folder in which another process is at work."""

import json
import os
import signal

import pytest

from structperc.errors import InputError
from structperc.training import program
from structperc.training import run_folders as claims
from structperc.training.run_folders import lock_folder, lock_new_run, next_run

ADVICE = "wait for it"


def test_only_one_at_a_time(tmp_path):
    with (
        lock_folder(tmp_path / "a", ADVICE),
        lock_folder(tmp_path / "b", ADVICE),
        pytest.raises(InputError, match=f"{tmp_path}/a: the folder is locked by another process; {ADVICE}$"),
        lock_folder(tmp_path / "a", ADVICE),
    ):
        pass
    with lock_folder(tmp_path / "a", ADVICE):
        pass


def test_a_killed_process_holds_nothing(tmp_path):
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        with lock_folder(tmp_path, ADVICE):
            os.write(writing, b"x")
            signal.pause()
    os.read(reading, 1)
    with pytest.raises(InputError), lock_folder(tmp_path, ADVICE):
        pass
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    with lock_folder(tmp_path, ADVICE):
        pass


def test_folders_of_new_runs(tmp_path):
    root = tmp_path / "runs" / "crf"
    with lock_new_run(root) as first, lock_new_run(root) as second:
        assert (first, second) == (root / "1", root / "2")
        assert all(run.is_dir() for run in (first, second))
        (second / "results.json").write_text("")
    assert [run.name for run in root.iterdir()] == ["2"]
    with pytest.raises(InputError), lock_new_run(tmp_path / "other"):
        raise InputError("bad configuration")
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_same_number_twice(tmp_path, monkeypatch):
    (tmp_path / "1").mkdir()
    given = iter([tmp_path / "1"])
    monkeypatch.setattr(claims, "next_run", lambda root: next(given, None) or next_run(root))
    with lock_new_run(tmp_path) as run:
        assert run == tmp_path / "2"


def test_a_file_in_place_of_a_folder(tmp_path):
    (tmp_path / "1").write_text("")
    with lock_new_run(tmp_path) as run:
        assert run.name == "2"
    with pytest.raises(InputError, match=f"^{tmp_path}/1: "), lock_new_run(tmp_path / "1"):
        pass


def test_concurrent_fits(runs, monkeypatch):
    before = program.Program.before_fit
    seeds = iter(["--data.seed=2"])

    def another_first(self):
        for seed in seeds:
            assert runs("fit", "--trainer.max_epochs=1", seed) == 0
        before(self)

    monkeypatch.setattr(program.Program, "before_fit", another_first)
    assert runs("fit", "--trainer.max_epochs=2") == 0
    results = [json.loads((runs.root / run / "results.json").read_text()) for run in ("1", "2")]
    assert [found["epochs"] for found in results] == [2, 1]


def test_run_in_progress_is_not_resumed(trained, fails):
    before = {path: path.stat().st_mtime_ns for path in trained.folder.rglob("*")}
    last = f"--ckpt_path={trained.folder / 'checkpoints' / 'last.ckpt'}"
    with lock_folder(trained.folder, ADVICE):
        complaint = fails(*trained.again.arguments("fit", last, "--trainer.max_epochs=3"))
        assert trained.again("validate", last) == 0
    assert f"{trained.folder}: the folder is locked by another process" in complaint
    after = {path: path.stat().st_mtime_ns for path in trained.folder.rglob("*") if path in before}
    assert {p for p in before if after[p] != before[p]} <= {trained.folder, trained.folder / "logs"}
