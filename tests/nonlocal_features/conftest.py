import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parent))  # naive.py and labelled.py

from labelled import WORDS, Case, make_case


@pytest.fixture(params=[(seed, WORDS) for seed in range(40)], ids=range(40))
def case(request: pytest.FixtureRequest) -> Case:
    return make_case(*request.param)


@pytest.fixture(scope="session")
def cuda() -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    return torch.device("cuda")
