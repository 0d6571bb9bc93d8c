"""Candidate lists as compact arrays against the padded lists they were made from; files whole, damaged, cut short."""

import random

import pytest
import torch
from safetensors.torch import save_file

from structperc.data import output
from structperc.errors import InputError
from structperc.reranking import candidate_lists as lists
from structperc.reranking.candidate_lists import CandidateLists, ListBatch
from structperc.structures import Candidates
from tests.checkpoints import assert_same
from tests.errors import error_message


def made(seed, lengths, k, n_labels):
    """Random lists: per sequence (labels (K, length), scores, valid, gold score)."""
    torch.manual_seed(seed)
    chance = random.Random(seed)
    rows = []
    for length in lengths:
        valid = torch.arange(k) < chance.randint(1, k)
        labels = torch.randint(n_labels, (k, length)) * valid[:, None]
        rows.append((labels, torch.randn(k).where(valid, -torch.inf), valid, torch.randn(())))
    return rows


def padded(rows, order):
    """The lists of some sequences as a batch, naively."""
    chosen = [rows[i] for i in order]
    T = max((labels.shape[1] for labels, *_ in chosen), default=0)
    labels = torch.stack([torch.nn.functional.pad(x, (0, T - x.shape[1])) for x, *_ in chosen])
    scores, valid, gold = (torch.stack(part) for part in list(zip(*chosen, strict=True))[1:])
    return ListBatch(Candidates(labels, scores, valid), gold)


def collected(rows, k, n_labels, size=3):
    """Through `collect`, in mini-batches in random order."""
    order = random.Random(0).sample(range(len(rows)), len(rows))
    batches = [order[i : i + size] for i in range(0, len(order), size)]
    lengths = [labels.shape[1] for labels, *_ in rows]
    return CandidateLists.collect(lengths, k, n_labels, ((torch.tensor(b), padded(rows, b)) for b in batches))


CASES = {
    "unequal": ([4, 1, 7, 3, 3], 5, 9),
    "empty ones": ([0, 2, 0, 5], 3, 4),
    "only empty": ([0, 0], 2, 3),
    "one token": ([1], 2, 2),
    "one label": ([3, 2], 2, 1),
    "many labels": ([6, 2, 3], 4, 300),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_cut_collected_lists(case):
    lengths, k, n_labels = case
    rows = made(1, lengths, k, n_labels)
    kept = collected(rows, k, n_labels)
    assert kept.labels.dtype == (torch.uint8 if n_labels <= 256 else torch.int32)
    assert (len(kept), kept.k, kept.lengths.tolist()) == (len(lengths), k, lengths)
    for order in ([0], list(range(len(lengths))), [len(lengths) - 1, 0]):
        assert_same(kept.batch(torch.tensor(order)), padded(rows, order))


def test_take_and_concat():
    rows = made(2, [3, 0, 5, 1], 4, 6)
    kept = collected(rows, 4, 6)
    parts = [kept.take(torch.tensor([2, 0])), kept.take(torch.tensor([1, 3]))]
    whole = CandidateLists.concat(parts).take(torch.tensor([1, 2, 0, 3]))
    for name in lists.TENSORS:
        assert torch.equal(getattr(whole, name), getattr(kept, name))


def test_contain():
    rows = made(3, [4, 2, 3, 0], 3, 4)
    rows[1] = (torch.tensor([[1, 2], [0, 0], [0, 0]]), rows[1][1], torch.tensor([True, False, False]), rows[1][3])
    gold = [rows[0][0][0], torch.tensor([0, 0]), rows[2][0][0].add(1), torch.tensor([], dtype=torch.int64)]
    rows[2] = (rows[2][0][:1].expand(3, -1), *rows[2][1:])
    assert collected(rows, 3, 4).contains(torch.cat(gold)).tolist() == [True, False, False, True]


@pytest.fixture
def kept():
    return collected(made(5, [4, 0, 2], 3, 5), 3, 5)


def test_loaded_equals_saved(kept, tmp_path):
    kept.save(tmp_path / "lists", {"seconds": 1.5, "Ü": ["x"]})
    loaded, about = CandidateLists.load(tmp_path / "lists")
    assert about == {"seconds": 1.5, "Ü": ["x"]}
    for name in lists.TENSORS:
        assert getattr(loaded, name).dtype == getattr(kept, name).dtype
        assert torch.equal(getattr(loaded, name), getattr(kept, name))
    assert [path.name for path in tmp_path.iterdir()] == ["lists"]


def test_full_disk(kept, tmp_path, monkeypatch):
    kept.save(tmp_path / "lists", {"old": True})

    def full(_):
        raise OSError("no space left on device")

    monkeypatch.setattr(output.os, "fsync", full)
    with pytest.raises(InputError, match=r"lists: .*\(no space"):
        kept.save(tmp_path / "lists", {"old": False})
    assert CandidateLists.load(tmp_path / "lists")[1] == {"old": True}
    assert [path.name for path in tmp_path.iterdir()] == ["lists"]


DAMAGE = {
    "empty": lambda data: b"",
    "garbage": lambda data: b"\x00\xff garbage",
    "cut short": lambda data: data[:-5],
    "one bit": lambda data: data[:-3] + bytes([data[-3] ^ 1]) + data[-2:],
    "no header": lambda data: b"{}" + data[2:],
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_file(kept, tmp_path, damage):
    path = tmp_path / "lists"
    kept.save(path, {})
    path.write_bytes(damage(path.read_bytes()))
    assert str(path) in error_message(CandidateLists.load, path)


def test_other_tensors_are_no_lists(tmp_path):
    save_file({"labels": torch.zeros(2)}, tmp_path / "lists")
    with pytest.raises(InputError, match=str(tmp_path / "lists")):
        CandidateLists.load(tmp_path / "lists")
