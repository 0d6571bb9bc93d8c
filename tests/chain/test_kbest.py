from importlib import import_module

import pytest
import torch

from structperc.chain import KBest, kbest, path_score, viterbi
from structperc.errors import InputError
from structperc.ops.registration import implementation
from structperc.structures import Candidates, Lattice
from tests import oracle

memory = import_module("structperc.chain.kbest")  # the package exports the function of this name


def check(lattice: Lattice, k: int) -> None:
    found = kbest(lattice, k)
    assert found.labels.shape == (len(lattice.unary), k, lattice.unary.shape[1])
    for b, n in enumerate(lattice.lengths.tolist()):
        ranked = oracle.ranked(lattice, b)[:k]
        size = len(ranked)
        assert found.valid[b].tolist() == [True] * size + [False] * (k - size)
        assert found.scores[b, :size].tolist() == pytest.approx([s for s, _ in ranked], abs=1e-9)
        labellings = [tuple(y) for y in found.labels[b, :size, :n].tolist()]
        assert [oracle.score(lattice, b, y) for y in labellings] == pytest.approx([s for s, _ in ranked], abs=1e-9)
        assert len(set(labellings)) == size
        assert not found.labels[b, :, n:].any()
        assert not found.labels[b, size:].any()
        assert (found.scores[b, size:] == -torch.inf).all()


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9, 2])
def test_matches_enumeration(lattice: Lattice, share: float) -> None:
    _, T, L = lattice.unary.shape
    check(lattice, max(1, round(share * L**T)))


def test_every_k_of_one_lattice() -> None:
    torch.manual_seed(3)
    lattice = Lattice(torch.randn(2, 4, 3).double(), torch.randn(2, 4, 3, 3).double(), torch.tensor([4, 3]))
    for k in range(1, 85):
        check(lattice, k)


def test_first_candidate_is_viterbi(documents: Lattice) -> None:
    scores, labels = viterbi(documents)
    for k in (1, 2, 7):
        found = kbest(documents, k)
        torch.testing.assert_close(found.scores[:, 0], scores)
        assert found.labels[:, 0].equal(labels)


def distinct(found: Candidates) -> bool:
    return all(len(y[v].unique(dim=0)) == v.sum() for y, v in zip(found.labels, found.valid, strict=True))


@pytest.mark.parametrize("k", [2, 20, 500])
def test_long_lists(documents: Lattice, k: int) -> None:
    found = kbest(documents, k)
    assert (found.scores[:, :-1] >= found.scores[:, 1:]).all()
    torch.testing.assert_close(found.scores, path_score(documents, found.labels).where(found.valid, -torch.inf))
    assert distinct(found)
    torch.testing.assert_close(kbest(documents, 2 * k).scores[:, :k], found.scores)


def test_6400_candidates_in_float32() -> None:
    torch.manual_seed(5)
    unary, edge = torch.randn(1, 1000, 9) * 4, torch.randn(1, 1000, 9, 9) * 4
    single = Lattice(unary, edge, torch.tensor([1000]))
    double = Lattice(unary.double(), edge.double(), single.lengths)
    found, exact = kbest(single, 6400), kbest(double, 6400)
    assert distinct(found)
    torch.testing.assert_close(path_score(double, found.labels), exact.scores, rtol=0, atol=0.01)
    torch.testing.assert_close(found.scores.double(), exact.scores, rtol=1e-5, atol=0)


@pytest.mark.parametrize("scale", [1, 1e29])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_of_any_scale(scale: float, dtype: torch.dtype) -> None:
    torch.manual_seed(11)
    unary, edge = torch.randn(5, 90, 7, dtype=dtype), torch.randn(5, 90, 7, 7, dtype=dtype)
    unary[0], edge[0] = (3 * unary[0]).round(), edge[0].round()  # ties
    unary[1:3] += 9 * torch.nn.functional.one_hot(torch.randint(7, (2, 90)), 7)  # few choices
    edge[3][torch.rand(90, 7, 7) < 0.6] = -torch.inf
    lattice = Lattice(unary * scale, edge * scale, torch.tensor([90, 89, 0, 70, 1]))
    found, (_, scores, valid) = kbest(lattice, 40), implementation("reference", "kbest")(*oracle.tables(lattice), 40)
    assert found.valid.equal(valid)
    torch.testing.assert_close(found.scores / scale, scores / scale)
    assert distinct(found)


def test_single_path() -> None:
    edge = torch.full((2, 200, 3, 3), -torch.inf)
    edge[:, :, [0, 1, 2], [1, 2, 0]] = 0
    unary = torch.randn(2, 200, 3)
    unary[:, 0, 1:] = -torch.inf
    lengths = torch.tensor([200, 150])
    found = kbest(Lattice(unary, edge, lengths), 5)
    assert found.valid.tolist() == [[True] + [False] * 4] * 2
    assert found.labels[1, 0].tolist() == [0, 1, 2] * 50 + [0] * 50
    unary[1, 149] = -torch.inf
    assert kbest(Lattice(unary, edge, lengths), 5).valid.sum(1).tolist() == [1, 0]


def test_a_hand_worked_lattice() -> None:
    unary = torch.tensor([[0.0, -1], [0, -9], [0, -2], [0, -9], [0, -4]]).unsqueeze(0)
    lattice = Lattice(unary, torch.zeros(1, 5, 2, 2), torch.tensor([5]))
    for k in (2, 3, 4, 8):
        check(lattice, k)


def test_ties_in_long_sequences() -> None:
    """Two labellings lead, whose labels mix in the best labels of the single tokens."""
    for T in (200, 260):
        unary, edge = torch.zeros(1, T, 2), torch.zeros(1, T, 2, 2)
        unary[0, 2:, 1] = -100
        edge[0, 1] = torch.tensor([[-1, 0], [0, -1]])
        found = kbest(Lattice(unary, edge, torch.tensor([T])), 3)
        assert found.valid.tolist() == [[True] * 3]
        assert found.scores.tolist() == [[0, 0, -1]]
        assert found.labels[0, :, :2].tolist() == [[0, 1], [1, 0], [0, 0]]


def test_ties_in_lexicographic_order() -> None:
    found = kbest(Lattice(torch.zeros(1, 3, 2), torch.zeros(1, 1, 2, 2), torch.tensor([3])), 6)
    assert found.labels[0].tolist() == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1]]
    torch.manual_seed(0)
    for _ in range(40):
        lattice = Lattice(torch.randint(-2, 3, (4, 9, 3)).float(), torch.randint(-1, 2, (4, 9, 3, 3)).float(), LENGTHS)
        six, five = kbest(lattice, 6), kbest(lattice, 5)
        assert six.labels[:, :5].equal(five.labels)
        assert six.labels[:, 0].equal(viterbi(lattice)[1])


LENGTHS = torch.tensor([9, 0, 4, 8])


def test_huge_scores() -> None:
    edge = torch.tensor([[-1e30, -torch.inf], [-1e30, -1e30]]).expand(1, 4, 2, 2)
    found = kbest(Lattice(torch.full((1, 4, 2), -1e30), edge, torch.tensor([4])), 9)
    assert found.labels[0, :5].unique(dim=0).tolist() == [
        [0] * 4,
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [1, 1, 1, 0],
        [1] * 4,
    ]
    assert found.valid.sum() == 5


def test_no_tokens_at_all() -> None:
    for B, T in ((0, 3), (2, 0), (2, 3)):
        found = kbest(Lattice(torch.randn(B, T, 3), torch.randn(B, T, 3, 3), torch.zeros(B, dtype=torch.int64)), 4)
        assert found.valid.tolist() == [[True, False, False, False]] * B
        assert found.labels.shape == (B, 4, T)


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one(k: int, documents: Lattice) -> None:
    with pytest.raises(InputError, match=rf"^k .*>= 1.* {k}"):
        kbest(documents, k)
    with pytest.raises(InputError, match=rf"^k .*>= 1.* {k}"):
        KBest(k)


def test_lists_beyond_memory(documents: Lattice, monkeypatch) -> None:
    """They are refused before anything is allocated, which 10^15 candidates would not survive."""
    with pytest.raises(InputError, match=r"^k = 1000000000000000: .* GiB"):
        kbest(documents, 10**15)
    B, T, L = documents.unary.shape
    k = memory.UNCHECKED // (B * (T * memory.BYTES_PER_TOKEN + L * memory.BYTES_PER_LABEL))
    for free in (0, None):
        monkeypatch.setattr(memory, "free_memory", lambda device, free=free: free)
        memory.check_memory(k, documents.unary.shape, documents.unary.device)
    memory.check_memory(k + 1, documents.unary.shape, documents.unary.device)
    monkeypatch.setattr(memory, "free_memory", lambda device: 0)
    with pytest.raises(InputError, match="set k lower"):
        memory.check_memory(k + 1, documents.unary.shape, documents.unary.device)


def test_free_memory(tmp_path, monkeypatch) -> None:
    cpu = torch.device("cpu")
    monkeypatch.setattr(memory, "_SYSTEM", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    assert memory.free_memory(cpu) is None
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:  5 kB\n")
    assert memory.free_memory(cpu) == 5 * 1024
    for most, free in (("max\n", 5 * 1024), ("3000\n", 1000), ("90000\n", 5 * 1024)):
        (tmp_path / "memory.max").write_text(most)
        (tmp_path / "memory.current").write_text("2000\n")
        assert memory.free_memory(cpu) == free
