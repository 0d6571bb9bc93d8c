import os
import sys
from pathlib import Path

import pytest

from structperc.cli import main

sys.path.append(str(Path(__file__).parent))  # oracle.py, terminal.py


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Folder with real corpora (conll2003/, conll2000/, gazetteers/, ...), from STRUCTPERC_DATA."""
    folder = os.environ.get("STRUCTPERC_DATA")
    if not folder:
        pytest.skip("set STRUCTPERC_DATA to a folder with conll2003/, conll2000/, ... to run tests on real corpora")
    return Path(folder)


@pytest.fixture
def fails(capsys):
    """Runs a command that must fail; -> its one line of complaint."""

    def fails(*arguments):
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("structperc: error: ")
        assert err.count("\n") == 1
        return err

    return fails


@pytest.fixture
def run(capsys):
    """Runs a command that must do well; -> what it printed."""

    def run(*arguments):
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == 0
        return capsys.readouterr().out

    return run
