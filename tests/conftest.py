import os
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))  # oracle.py, terminal.py


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Folder with real corpora (conll2003/, conll2000/, gazetteers/, ...), from STRUCTPERC_DATA."""
    folder = os.environ.get("STRUCTPERC_DATA")
    if not folder:
        pytest.skip("set STRUCTPERC_DATA to a folder with conll2003/, conll2000/, ... to run tests on real corpora")
    return Path(folder)
