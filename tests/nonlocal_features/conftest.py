import pytest
import torch

from structperc.nonlocal_features import candidate_segments
from tests.nonlocal_features.labelled import WORDS, Case, make_case


@pytest.fixture(params=[(seed, WORDS) for seed in (0, 10)], ids=lambda param: str(param[0]))
def case(request: pytest.FixtureRequest) -> Case:
    """Random documents with candidates, of a few words that often return."""
    return make_case(*request.param)


@pytest.fixture(params=[10**6, 0], ids=["compiled", "tensors"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of counting, whatever the number of labellings."""
    monkeypatch.setattr(candidate_segments, "MAX_COMPILED", request.param)


@pytest.fixture
def tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting by tensor operations."""
    monkeypatch.setattr(candidate_segments, "MAX_COMPILED", 0)


@pytest.fixture(scope="session")
def cuda() -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    return torch.device("cuda")
