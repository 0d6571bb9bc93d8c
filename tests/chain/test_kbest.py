from importlib import import_module

import pytest
import torch

from structperc.chain import KBest, kbest
from structperc.errors import InputError
from structperc.ops.registration import implementation
from structperc.structures import Candidates, Lattice
from tests import oracle

memory = import_module("structperc.chain.kbest")  # the package exports the function of this name


def check(lattice: Lattice, k: int) -> None:
    found = kbest(lattice, k)
    assert found.labels.shape == (len(lattice.unary), k, lattice.unary.shape[1])
    for b, n in enumerate(lattice.lengths.tolist()):
        ranked = oracle.sorted_paths(lattice, b)[:k]
        size = len(ranked)
        assert found.valid[b].tolist() == [True] * size + [False] * (k - size)
        assert found.scores[b, :size].tolist() == pytest.approx([s for s, _ in ranked], abs=1e-9)
        labellings = [tuple(y) for y in found.labels[b, :size, :n].tolist()]
        assert [oracle.score(lattice, b, y) for y in labellings] == pytest.approx([s for s, _ in ranked], abs=1e-9)
        assert len(set(labellings)) == size
        assert not found.labels[b, :, n:].any()
        assert not found.labels[b, size:].any()
        assert (found.scores[b, size:] == -torch.inf).all()


@pytest.mark.parametrize("share", [0.02, 0.3, 2])
def test_matches_enumeration(lattice: Lattice, share: float) -> None:
    _, T, L = lattice.unary.shape
    check(lattice, max(1, round(share * L**T)))


def distinct(found: Candidates) -> bool:
    return all(len(y[v].unique(dim=0)) == v.sum() for y, v in zip(found.labels, found.valid, strict=True))


@pytest.mark.parametrize(("scale", "dtype"), [(1, torch.float64), (1e29, torch.float32)])
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
