import pytest
import torch

from structperc.structures import Lattice

KINDS = ["dense", "stationary", "matrix", "ties", "equal", "impossible", "short", "poisoned"]


def make(kind: str, seed: int) -> Lattice:
    """Five sequences of random lengths, one empty, one of length 1, with at most 256 labellings each."""
    torch.manual_seed(seed)
    L = 1 + seed
    T = int(torch.randint(1, {1: 7, 2: 7, 3: 6, 4: 5}[L], ()))
    unary, edge = (torch.randn(5, T, L, dtype=torch.float64), torch.randn(5, T, L, L, dtype=torch.float64))
    lengths = torch.randint(0, T + 1, (5,))
    lengths[torch.randperm(5)[:2]] = torch.tensor([0, 1])
    if kind in ("stationary", "short"):
        edge = edge[0, 0].expand(5, T, L, L)
    if kind == "matrix":
        edge = edge[:1, :1] if T else edge.new_zeros(1, 1, L, L)
    if kind == "ties":
        unary, edge = unary.round(), edge.round()
    if kind == "equal":
        unary, edge = torch.zeros_like(unary), torch.zeros_like(edge)
    if kind == "impossible":
        unary[torch.rand_like(unary) < 0.25] = -torch.inf
        edge[torch.rand_like(edge) < 0.25] = -torch.inf
    if kind == "short":  # no sequence fills T
        unary = torch.cat([unary, torch.randn(5, 3, L, dtype=torch.float64)], 1)
        edge = edge[0, 0].expand(5, T + 3, L, L)
    if kind == "poisoned":
        padding = torch.arange(T) >= lengths.unsqueeze(1)
        unary[padding] = torch.nan
        edge[padding] = torch.tensor([torch.nan, -torch.inf, torch.inf]).double()[seed % 3]
        edge[:, 0] = torch.nan
    return Lattice(unary, edge, lengths)


@pytest.fixture(params=[("dense", 0), *((kind, 2) for kind in KINDS)], ids=lambda case: f"{case[0]}-{case[1] + 1}")
def lattice(request: pytest.FixtureRequest) -> Lattice:
    """A lattice of one label, and of each kind with three labels; operators are tested on many more."""
    return make(*request.param)


@pytest.fixture(scope="session")
def documents() -> Lattice:
    """Sequences of a few hundred tokens, float64: too long to enumerate."""
    torch.manual_seed(7)
    lengths = torch.tensor([300, 17, 0, 299, 1, 120])
    return Lattice(torch.randn(6, 310, 5).double() * 3, torch.randn(6, 310, 5, 5).double() * 3, lengths)


@pytest.fixture(scope="session")
def cuda() -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device here")
    return torch.device("cuda")
