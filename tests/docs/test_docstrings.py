"""The examples of docstrings run and print what they show, each module's in a folder of its own.

Those that need a network, a trained run or seconds are marked by `# doctest: +SKIP`.
"""

import doctest
from importlib import import_module
from pathlib import Path

import pytest
import torch

import structperc
from docs import api

PACKAGE = Path(structperc.__file__).parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
MODULES = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__") for path in FILES]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    result = doctest.testmod(import_module(name), optionflags=FLAGS)
    assert not result.failed


def test_each_module_with_public_names_has_an_example():
    modules = {one.__module__ for names in api.entries().values() for one in names.values()}
    assert sorted(modules - set(MODULES)) == []
