import math

import pytest
import torch

from structperc.taggers.learning import EpochStatistics

CPU = torch.device("cpu")


@pytest.mark.parametrize("independent", [False, True])
def test_sums_of_one_process(independent):
    sums = EpochStatistics(CPU, independent)
    for losses, penalty, updates, wrong, tokens in [(1.5, 0.25, 1, 2, 7), (0.1, 0.2, torch.tensor(3), 0, 4)]:
        sums.add(torch.tensor([losses, penalty], dtype=torch.float64))
        sums.count(updates, wrong, tokens)
    for _ in range(2):
        assert sums.losses.tolist() == pytest.approx([1.6, 0.45], rel=1e-15)
        assert (sums.updates, sums.error) == (4, 2 / 11)
        sums.sync()


def test_no_share_of_no_tokens_is_wrong():
    sums = EpochStatistics(CPU)
    sums.count(2)
    assert sums.updates == 2
    assert math.isnan(sums.error)
