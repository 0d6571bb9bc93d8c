"""Kernels for a CPU: compiled once and kept, also where nothing can be kept; the same for any number of threads."""

import importlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from lattices import make

from structperc import ops
from structperc.errors import InputError, InvalidScore
from structperc.kernels import jit as compiled
from structperc.ops.cpu import threads as sharing

PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(message)s")
import torch
from structperc.ops import sample
print(sample(torch.zeros(1, 3, 2), torch.zeros(1, 1, 2, 2), torch.tensor([3]), torch.full((1, 1, 3), 0.7)).tolist())
from structperc.ops.cpu import sampling, threads
kept = threads._shared(sampling._draw).stats
print(sum(kept.cache_hits.values()), sum(kept.cache_misses.values()))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the program needs, without compiled code."""
    import structperc

    folder = tmp_path_factory.mktemp("copy")
    source = Path(structperc.__file__).parent
    shutil.copytree(source, folder / "structperc", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def start(package: Path, **environment: str) -> subprocess.Popen[str]:
    given = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=given, cwd=package)


def end(process: subprocess.Popen[str]) -> tuple[list[str], str]:
    printed, said = process.communicate()
    assert process.returncode == 0, said
    return printed.splitlines(), said


@pytest.mark.slow
def test_one_process_compiles_what_is_kept_until_a_file_of_the_kernels_changes(package: Path) -> None:
    """It says so, once; a change in another file than the kernel's own counts, too."""
    both = sorted(end(process) for process in [start(package), start(package)])
    assert [printed for printed, _ in both] == [["[[[1, 1, 1]]]", "0 1"], ["[[[1, 1, 1]]]", "1 0"]]
    assert both[0][1].count("Compiling the operators of structperc") == 1
    assert both[1][1] == ""
    with (package / "structperc/ops/cpu/log_sums.py").open("a") as file:
        file.write("\n# changed\n")
    assert end(start(package))[0] == both[0][0]


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_to_is_no_obstacle(package: Path) -> None:
    for path in (package / "structperc/ops/cpu").rglob("*"):
        if path.suffix in (".nbi", ".nbc"):
            path.unlink()
    folder = package / "structperc/ops/cpu"
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        nowhere = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
        if os.access(folder, os.W_OK):  # who may do everything is kept out by a file where the folder would be
            shutil.rmtree(folder / "__pycache__", ignore_errors=True)
            (folder / "__pycache__").write_text("")
        assert end(start(package, **nowhere))[0] == ["[[[1, 1, 1]]]", "0 1"]
    finally:
        folder.chmod(stat.S_IRWXU)


MADE = """
from structperc.kernels.jit import inner_kernel, kernel

def doubled(part):
    part = subkernel_no_alloc(part)

    @kernel
    def double(x):
        return 2 * part(x)

    return double
"""


@pytest.fixture
def doubling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Module with a part -> the kernel that doubles it, as a new process would make it. The parts have one name."""
    (tmp_path / "doubling.py").write_text(MADE)
    monkeypatch.syspath_prepend(tmp_path)

    def made(module: str) -> Any:
        compiled._stamp.cache_clear()
        part = importlib.reload(importlib.import_module(module)).part
        return importlib.import_module("doubling").doubled(part)

    return made


def test_kernels_made_of_a_part_are_kept_whatever_is_made_of_other_parts(doubling: Any, tmp_path: Path) -> None:
    for folder, code in (("first", "x"), ("second", "-x")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "of_doubling.py").write_text(f"def part(x):\n    return {code}\n")
    for module, wanted, kept in (("first", 6, 0), ("second", -6, 0), ("first", 6, 1), ("second", -6, 1)):
        double = doubling(f"{module}.of_doubling")
        assert double(3) == wanted
        assert sum(double.stats.cache_hits.values()) == kept
    (tmp_path / "second" / "of_doubling.py").write_text("def part(x):\n    return x + 1\n")
    assert doubling("second.of_doubling")(3) == 8


def test_results_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "WORTH_A_THREAD", 1)
    threads = torch.get_num_threads()
    torch.manual_seed(0)
    unary, edge, lengths = torch.randn(70, 40, 9), torch.randn(1, 1, 9, 9), torch.randint(41, (70,))
    noise = torch.rand(70, 3, 40, dtype=torch.float64)
    found = []
    try:
        for n in (1, 2, 5):
            torch.set_num_threads(n)
            lattice = (unary, edge, lengths)
            found.append(
                [
                    *ops.viterbi(*lattice),
                    *ops.kbest(*lattice, 7),
                    *ops.expectations(*lattice, True),
                    *ops.best_before_and_after(*lattice),
                    ops.sample(*lattice, noise),
                    ops.log_following(*lattice),
                    *ops.push_back(*lattice, unary, unary),
                    *ops.following_shares(*lattice, unary),
                ]
            )
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(x.equal(y) for x, y in zip(found[0], other, strict=True))


def test_views_whose_memory_holds_the_negative_are_read_as_what_they_are() -> None:
    scores, edge, lengths = torch.randn(3, 5, 4), torch.randn(1, 1, 4, 4), torch.tensor([5, 2, 4])
    found, wanted = (ops.viterbi(unary, edge, lengths) for unary in (torch._neg_view(scores), -scores))
    assert all(x.equal(y) for x, y in zip(found, wanted, strict=True))


def test_scores_and_lengths_that_are_none_are_refused_in_one_line() -> None:
    unary, edge, lengths = make("dense", 3, 4, torch.float32, 0)
    edge[3, 2, 1, 0], lengths[3] = torch.inf, 4
    with pytest.raises(InvalidScore, match=r"\+inf at token 2 of sequence 3, label 1 before label 0;"):
        ops.viterbi(unary, edge, lengths)
    edge[3, 2, 1, 0], unary[5, 0, 2], lengths[5] = 0, torch.inf, 1
    with pytest.raises(InputError, match=r"^scores: there is \+inf at token 0 of sequence 5, label 2;"):
        ops.kbest(unary, edge, lengths, 3)
    wrong = ops.expectations(unary, edge, lengths, False)[0].isnan()  # a loss that a training stops at
    assert wrong.nonzero().tolist() == [[5]]
    unary[5, 0, 2], lengths[7] = 0, 5
    with pytest.raises(InputError, match=r"^lengths: sequence 7 of 24 has 5 tokens, expected 0\.\.4$"):
        ops.expectations(unary, edge, lengths, False)
    lengths[7] = -1
    with pytest.raises(InputError, match=r"^lengths: sequence 7 of 24 has -1 tokens"):
        ops.best_before_and_after(unary, edge, lengths)
