import sys
from functools import partial
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parent))  # naive.py and labelled.py

from each import Each
from labelled import WORDS, make_case

from structperc.nonlocal_features import segments


@pytest.fixture(params=[(40, WORDS)], ids=["words"])
def case(request: pytest.FixtureRequest) -> Each:
    """So many cases with these words; tests are called with one after the other."""
    number, words = request.param
    return Each({seed: partial(make_case, seed, words) for seed in range(number)})


@pytest.fixture(params=[10**6, 0], ids=["compiled", "tensors"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of counting, whatever the number of labellings."""
    monkeypatch.setattr(segments, "FEW", request.param)


@pytest.fixture
def tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting by tensor operations."""
    monkeypatch.setattr(segments, "FEW", 0)


@pytest.fixture(scope="session")
def cuda() -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    return torch.device("cuda")
