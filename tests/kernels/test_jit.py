"""Compiled code on disk: compiled once, kept until a source file changes, and no obstacle without a writable folder."""

import importlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest

from structperc.kernels import numba_internals

PROGRAM = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(message)s")
import numpy as np
from structperc.kernels.inner_products import inner_products
products = np.empty((1, 1))
inner_products(np.ones((1, 3)), np.ones((1, 3)), products)
print(int(products[0, 0]))
kept = inner_products.stats
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
    given.pop("NUMBA_CACHE_DIR", None)  # beside the source files, as by default
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=given, cwd=package)


def end(process: subprocess.Popen[str]) -> tuple[list[str], str]:
    printed, said = process.communicate()
    assert process.returncode == 0, said
    return printed.splitlines(), said


@pytest.mark.slow
def test_code_is_compiled_once(package: Path) -> None:
    """The compilation is announced once."""
    both = sorted(end(process) for process in [start(package), start(package)])
    assert [printed for printed, _ in both] == [["3", "0 1"], ["3", "1 0"]]
    assert both[0][1].count("Compiling kernels") == 1
    assert both[1][1] == ""


@pytest.mark.slow
def test_kernels_work_without_a_writable_folder(package: Path) -> None:
    folder = package / "structperc/kernels"
    for path in folder.rglob("*"):
        if path.suffix in (".nbi", ".nbc"):
            path.unlink()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        nowhere = {"HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"}
        if os.access(folder, os.W_OK):  # who may do everything is kept out by a file where the folder would be
            shutil.rmtree(folder / "__pycache__", ignore_errors=True)
            (folder / "__pycache__").write_text("")
        assert end(start(package, **nowhere))[0] == ["3", "0 1"]
    finally:
        folder.chmod(stat.S_IRWXU)


FORKED = """
import os
from added import add
pid = os.fork()
if pid == 0:
    os._exit(add(3))
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_kernels_compile_in_a_forked_process(tmp_path: Path) -> None:
    source = "from structperc.kernels.jit import kernel\n\n@kernel\ndef add(x):\n    return x + 1\n"
    (tmp_path / "added.py").write_text(source)
    command = [sys.executable, "-c", FORKED]
    assert subprocess.run(command, capture_output=True, text=True, cwd=tmp_path).stdout == "4\n"


MADE = """
from structperc.kernels.jit import kernel, subkernel_no_alloc

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
        numba_internals._source_stamp.cache_clear()
        part = importlib.reload(importlib.import_module(module)).part
        return importlib.import_module("doubling").doubled(part)

    return made


def test_cache_of_generated_kernels(doubling: Any, tmp_path: Path) -> None:
    for folder, code in (("first", "x"), ("second", "-x")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "of_doubling.py").write_text(f"def part(x):\n    return {code}\n")
    for module, wanted, kept in (("first", 6, 0), ("second", -6, 0), ("first", 6, 1), ("second", -6, 1)):
        double = doubling(f"{module}.of_doubling")
        assert double(3) == wanted
        assert sum(double.stats.cache_hits.values()) == kept
    (tmp_path / "first" / "other.py").write_text("# a change in another file of the kernels counts, too")
    double = doubling("first.of_doubling")
    assert double(3) == 6
    assert sum(double.stats.cache_hits.values()) == 0
    (tmp_path / "second" / "of_doubling.py").write_text("def part(x):\n    return x + 1\n")
    assert doubling("second.of_doubling")(3) == 8


SUMS = """
from structperc.kernels.jit import kernel

@kernel
def total(pair):
    return pair.a + pair.b
"""
PAIRS = """
from typing import NamedTuple

class Pair(NamedTuple):
    a: int
    b: int
"""


def test_moved_module_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "sums.py").write_text(SUMS)
    for module in ("pairs", "moved_pairs"):
        (tmp_path / f"{module}.py").write_text(PAIRS)
        pair = importlib.import_module(module).Pair(1, 2)
        sums = importlib.reload(importlib.import_module("sums"))
        assert sums.total(pair) == 3
        (tmp_path / f"{module}.py").unlink()
        del sys.modules[module]


def test_numba_internals() -> None:
    """With another version, run all tests of kernels and operators, then raise CHECKED_WITH."""
    assert tuple(map(int, numba.__version__.split(".")[:2])) <= numba_internals.CHECKED_WITH
