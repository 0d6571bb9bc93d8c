"""Two processes with shards of unequal size give what one process gives. This file is also what they run."""

import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torchmetrics import MetricCollection

from structperc.data.labels import LabelSet
from structperc.metrics import (
    Calibration,
    OracleF1,
    SegmentF1,
    SegmentFScore,
    SegmentPrecision,
    SentenceAccuracy,
    TokenAccuracy,
)
from structperc.metrics.torchmetrics_classes import Evaluation
from structperc.structures import Candidates
from tests.forks import at_once

LABELS = LabelSet(("O", "B-P", "I-P", "B-L", "I-L"))
SHARDS = [(slice(0, 3), slice(3, 8)), (slice(8, 9),)]  # batches of each process


def data():
    generator = torch.Generator().manual_seed(3)
    gold, predicted = torch.randint(0, 5, (2, 9, 6), generator=generator)
    predicted = predicted.where(torch.rand(9, 6, generator=generator) < 0.3, gold)
    sentences = torch.tensor([0, 0, 1, 1, 2, 3]).repeat(9, 1)
    lengths = torch.tensor([6, 5, 4, 3, 2, 1, 0, 6, 5])
    lists = torch.stack([predicted, predicted.roll(1, 0), gold.roll(1, 1)], 1)
    return predicted, lists, gold, lengths, sentences


def results(shards):
    predicted, lists, gold, lengths, sentences = data()
    metrics = [SegmentF1(LABELS), TokenAccuracy(), SentenceAccuracy(), Evaluation(LABELS)]
    metrics += [SegmentFScore(LABELS, average) for average in ("micro", "macro", "weighted")]
    metrics += [MetricCollection([SegmentFScore(LABELS, beta=2), SegmentPrecision(LABELS)])]
    oracle, calibration = OracleF1(LABELS), Calibration(4)
    for s in shards:
        rest = (gold[s], lengths[s], sentences[s])
        for metric in metrics:
            metric.update(predicted[s], *rest)
        scores = torch.zeros(lists[s].shape[:2])
        oracle.update(Candidates(lists[s], scores, scores == 0), *rest)
        right = (predicted[s] == gold[s]).flatten()
        calibration.update(gold[s].flatten() / 4, right)  # sums of these are exact in any order
    return repr([metric.compute() for metric in (*metrics, oracle, calibration)])


def work(rank, meeting_point):
    dist.init_process_group("gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=2)
    Path(f"{meeting_point}.{rank}").write_text(results(SHARDS[rank]))
    dist.destroy_process_group()


@pytest.mark.skipif(not dist.is_gloo_available(), reason="torch is built without gloo")
def test_two_processes_give_the_result_of_one(fork_server, tmp_path):
    meeting_point = tmp_path / "meeting_point"
    processes = [([str(meeting_point), rank], {}) for rank in "01"]
    log = tmp_path / "log"
    assert fork_server(log, at_once, __file__, *processes).status == 0, log.read_text()
    found = [Path(f"{meeting_point}.{rank}").read_text() for rank in "01"]
    expected = results([batch for shard in SHARDS for batch in shard])
    assert found == [expected, expected]
    assert expected != results(SHARDS[0])


if __name__ == "__main__":
    work(int(sys.argv[2]), sys.argv[1])
