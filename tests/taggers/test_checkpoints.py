"""Checkpoints that cannot be meant: one line that names the file, no code run, nothing of the run lost."""

import os
import pickle
import zipfile
from pathlib import Path

import pytest
import torch

from structperc.cli.main import main
from structperc.errors import InputError
from structperc.models.checkpoint_files import read_checkpoint
from tests.errors import error_message


class Hostile:
    def __reduce__(self):
        return os.system, ("touch canary",)


@pytest.fixture(scope="module")
def saved(trained):
    """The bytes and the content of a last checkpoint."""
    path = trained.folder / "checkpoints" / "last.ckpt"
    return path.read_bytes(), torch.load(path, weights_only=True)


def complaint(path: Path) -> str:
    found = error_message(read_checkpoint, path)
    assert found.startswith(f"{path}: ")
    assert "weights_only" not in found
    return found


def test_other_files(saved, tmp_path):
    whole, content = saved
    path = tmp_path / "a.ckpt"
    for data in (b"", b"garbage", b"\x80\x04.", whole[:100], whole[:-100], whole[len(whole) // 2 :], pickle.dumps([1])):
        path.write_bytes(data)
        complaint(path)
    for other in ([], 3, {}, {"state_dict": {}}, content["state_dict"], torch.zeros(2), {**content, "epoch": "1"}):
        torch.save(other, path)
        complaint(path)
    broken = {name: torch.full_like(tensor, torch.nan) for name, tensor in content["state_dict"].items()}
    torch.save({**content, "state_dict": broken}, path)
    assert "NaN" in complaint(path)
    complaint(tmp_path)
    complaint(tmp_path / "none.ckpt")


def test_flipped_bits(saved, tmp_path):
    """Places are drawn from a seed; what stands between the parts of the file may change."""
    whole, content = saved
    path, draw = tmp_path / "a.ckpt", torch.Generator().manual_seed(3)
    refused = 0
    for at in torch.randint(len(whole), (30,), generator=draw).tolist():
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        try:
            read = read_checkpoint(path)["state_dict"]
        except InputError:
            refused += 1
        else:
            assert all(torch.equal(read[name], tensor) for name, tensor in content["state_dict"].items())
    assert refused > 20


def test_code_is_refused_and_not_run(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.ckpt"
    torch.save({**saved[1], "more": Hostile()}, path)
    assert "code" in complaint(path)
    path.write_bytes(pickle.dumps(Hostile()))
    complaint(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", pickle.dumps(Hostile(), 2))
        file.writestr("archive/version", "3\n")
    complaint(path)
    assert not (tmp_path / "canary").exists()


def shift(content, key):
    def shifted(value):
        if isinstance(value, dict):
            return {name: shifted(one) for name, one in value.items()}
        return torch.zeros(3) if isinstance(value, torch.Tensor) else "x"

    return {**content, key: shifted(content[key])}


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_mismatched_checkpoints(saved, trained, tmp_path, fails_late, command):
    """Each part in turn mangled, in a folder like that of a run."""
    path = tmp_path / "9" / "checkpoints" / "last.ckpt"
    path.parent.mkdir(parents=True)
    content = saved[1]
    mangled = [shift(content, key) for key in ("state_dict", "vocabulary")]
    mangled += [{**content, "state_dict": {}}, {**content, "loops": 0}]
    if command == "fit":
        mangled += [shift(content, "loops"), {**content, "loops": {}}, {**content, "optimizer_states": [{}]}]
    for wrong in mangled:
        torch.save(wrong, path)
        assert str(path) in fails_late(*trained.again.arguments(command, f"--ckpt_path={path}"))


@pytest.fixture
def fails_late(capsys):
    """Runs a command that must fail, whatever it has printed by then; -> its one line of complaint."""

    def fails_late(*arguments):
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == 2
        lines = capsys.readouterr().err.strip().splitlines()
        assert [line.startswith("structperc: error: ") for line in lines[-2:]].count(True) == 1
        assert not any(line.startswith("Traceback") for line in lines)
        return lines[-1]

    return fails_late


def test_options_in_a_checkpoint_are_not_taken(saved, trained, tmp_path, capsys):
    path = tmp_path / "1" / "checkpoints" / "last.ckpt"
    path.parent.mkdir(parents=True)
    torch.save({**saved[1], "hyper_parameters": {"criterion": {"class_path": "os.system"}, "nonsense": 1}}, path)
    assert main(trained.again.arguments("test", f"--ckpt_path={path}")) == 0
