import numpy as np
import pytest

from structperc.datamodules.distributed import ProcessGroup
from structperc.datamodules.sampler import TOKENS, LengthBatchSampler, TokenBatchSampler, sequential_batch_size
from structperc.errors import InputError

LENGTHS = np.random.default_rng(0).integers(1, 200, 1003)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("batch_size", [1, 8, 5000])
def test_every_row_once(shuffle, batch_size):
    batches = list(LengthBatchSampler(LENGTHS, batch_size, shuffle))
    assert sorted(row for batch in batches for row in batch) == list(range(1003))
    assert len(batches) == len(LengthBatchSampler(LENGTHS, batch_size, shuffle))
    assert max(map(len, batches)) <= batch_size


def test_order_is_a_function_of_seed_and_epoch():
    def order(seed, epoch):
        sampler = LengthBatchSampler(LENGTHS, 8, True, seed)
        sampler.set_epoch(epoch)
        return list(sampler)

    assert order(1, 5) == order(1, 5)
    assert order(1, 5) != order(1, 6)
    assert order(1, 5) != order(2, 5)


def test_order_of_sequences():
    """That of batches of one, whatever their size."""
    alone = [row for batch in LengthBatchSampler(LENGTHS, 1, True) for row in batch]
    for batch_size in (1, 8, 5000):
        batches = LengthBatchSampler(LENGTHS, batch_size, True, by_length=False)
        assert [row for batch in batches for row in batch] == alone
        assert len(batches) == len(list(batches)) == -(-1003 // batch_size)


def test_batches_hold_similar_lengths():
    def padding(sampler):
        return sum(LENGTHS[b].max() * len(b) - LENGTHS[b].sum() for b in sampler)

    unsorted = [list(range(i, min(i + 8, 1003))) for i in range(0, 1003, 8)]
    assert padding(LengthBatchSampler(LENGTHS, 8, True)) < padding(unsorted) / 4


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("processes", [2, 3])
def test_processes_share_the_batches_of_one(processes, shuffle):
    one = list(LengthBatchSampler(LENGTHS, 4 * processes, shuffle, seed=3))
    shares = [list(LengthBatchSampler(LENGTHS, 4, shuffle, 3, ProcessGroup(i, processes))) for i in range(processes)]
    assert min(map(len, one)) >= processes
    for whole, *parts in zip(one, *shares, strict=True):
        assert sorted(row for part in parts for row in part) == sorted(whole)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("processes", [2, 3])
def test_tokens_per_process(processes):
    """They differ by a sequence at most, and each keeps the order of the batch."""
    order = next(iter(LengthBatchSampler(LENGTHS, 1003, True, by_length=False)))
    samplers = [
        LengthBatchSampler(LENGTHS, 32, True, 0, ProcessGroup(i, processes), by_length=False) for i in range(processes)
    ]
    for shares in zip(*samplers, strict=True):
        tokens = [LENGTHS[share].sum() for share in shares]
        assert max(tokens) - min(tokens) <= LENGTHS[np.concatenate(shares)].max()
        assert all(share == sorted(share, key=order.index) for share in shares)


@pytest.mark.parametrize(("tokens", "processes", "steps"), [(32, 1, 32), (64, 2, 32), (96, 3, 33)])
def test_batches_for_online_learning(tokens, processes, steps):
    """They are of equal size, and as many as processes or a multiple of it; tokens: in the corpus, in TOKENS."""
    lengths = np.resize(LENGTHS, int(tokens * TOKENS / LENGTHS.mean()))
    size = sequential_batch_size(lengths, processes)
    batches = list(LengthBatchSampler(lengths, size, True, group=ProcessGroup(0, processes), by_length=False))
    assert len(batches) == steps
    assert len(batches[-1]) > 0.75 * len(batches[0])
    assert sequential_batch_size([3], 2) == 1
    assert sequential_batch_size([5] * 20, 1) == 20
    assert sequential_batch_size([5] * 320, 1) == 20  # 16 mini-batches
    assert sequential_batch_size([5] * 320, 2) == 16  # 10, a multiple of 2


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("rows", [2, 3, 8, 9, 128, 129, 130, 257, 1003])
def test_batches_for_every_process(rows, shuffle):
    samplers = [LengthBatchSampler(LENGTHS[:rows], 4, shuffle, group=ProcessGroup(i, 2)) for i in range(2)]
    shares = [list(sampler) for sampler in samplers]
    assert len(shares[0]) == len(shares[1]) == len(samplers[0])
    assert min(len(batch) for share in shares for batch in share) >= 1
    assert sorted(row for share in shares for batch in share for row in batch) == list(range(rows))


def test_impossible_batches():
    for kind, name in ((LengthBatchSampler, "batch_size"), (TokenBatchSampler, "batch_tokens")):
        with pytest.raises(InputError, match=name):
            kind(LENGTHS, 0, True)
    with pytest.raises(InputError, match=r"1 sequence.*2 processes; .*trainer.devices: 1"):
        LengthBatchSampler(LENGTHS[:1], 4, False, group=ProcessGroup(0, 2))
    assert list(LengthBatchSampler([], 4, False, group=ProcessGroup(1, 2))) == []


def padded(batch):
    return LENGTHS[batch].max() * len(batch)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("limit", [100, 256, 3000])
def test_padded_size_of_batches(limit, shuffle):
    """A batch is within the limit or one row, and it is not much smaller than the limit."""
    batches = list(TokenBatchSampler(LENGTHS, limit, shuffle))
    assert sorted(row for batch in batches for row in batch) == list(range(1003))
    assert all(padded(batch) <= limit or len(batch) == 1 for batch in batches)
    assert len(batches) <= 1.5 * LENGTHS.clip(limit // 2).sum() / limit


def test_all_epochs_have_the_same_number_of_batches():
    sampler = TokenBatchSampler(LENGTHS, 512, True, seed=2)
    orders = []
    for epoch in range(5):
        sampler.set_epoch(epoch)
        orders.append([tuple(batch) for batch in sampler])
    assert {len(order) for order in orders} == {len(sampler)}
    shared = set(map(frozenset, orders[0])) & set(map(frozenset, orders[1]))
    assert len(shared) < len(orders[0]) / 4
    sampler.set_epoch(3)
    assert [tuple(batch) for batch in sampler] == orders[3]


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("rows", [3, 4, 10, 1003])
def test_processes_share_batches_of_tokens(rows, processes, shuffle):
    samplers = [
        TokenBatchSampler(LENGTHS[:rows], 512, shuffle, 3, ProcessGroup(i, processes)) for i in range(processes)
    ]
    shares = [list(sampler) for sampler in samplers]
    assert {len(one) for one in shares} == {len(samplers[0])}
    assert all(padded(batch) <= 512 + LENGTHS[batch].max() for one in shares for batch in one)
    assert sorted(row for one in shares for batch in one for row in batch) == list(range(rows))
