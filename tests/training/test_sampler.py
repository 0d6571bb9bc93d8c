import numpy as np
import pytest

from structperc.errors import InputError
from structperc.training.sampler import LengthBatches

LENGTHS = np.random.default_rng(0).integers(1, 200, 1003)


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("batch_size", [1, 8, 5000])
def test_every_row_once(shuffle, batch_size):
    batches = list(LengthBatches(LENGTHS, batch_size, shuffle))
    assert sorted(row for batch in batches for row in batch) == list(range(1003))
    assert len(batches) == len(LengthBatches(LENGTHS, batch_size, shuffle))
    assert max(map(len, batches)) <= batch_size


def test_order_is_a_function_of_seed_and_epoch():
    def order(seed, epoch):
        sampler = LengthBatches(LENGTHS, 8, True, seed)
        sampler.set_epoch(epoch)
        return list(sampler)

    assert order(1, 5) == order(1, 5)
    assert order(1, 5) != order(1, 6)
    assert order(1, 5) != order(2, 5)


def test_batches_hold_similar_lengths():
    def padding(sampler):
        return sum(LENGTHS[b].max() * len(b) - LENGTHS[b].sum() for b in sampler)

    unsorted = [list(range(i, min(i + 8, 1003))) for i in range(0, 1003, 8)]
    assert padding(LengthBatches(LENGTHS, 8, True)) < padding(unsorted) / 4


def test_bad_batch_size():
    with pytest.raises(InputError, match="batch_size"):
        LengthBatches(LENGTHS, 0, True)
