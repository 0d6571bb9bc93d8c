"""One process to fork from, and one uninterrupted training of each kind."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[2] / "encoders")]  # tiny_models.py

import pytest
from zygote import Zygote


@pytest.fixture(scope="session")
def zygote():
    with Zygote() as zygote:
        yield zygote
