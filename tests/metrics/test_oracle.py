import pytest
import torch

from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import spans
from structperc.metrics import OracleF1
from structperc.metrics.counts import oracle
from structperc.structures import Candidates

LABELS = LabelSet(("O", "B-P", "I-P", "B-L", "I-L"))


def candidates_of(labels, valid=None):
    B, K, _ = labels.shape
    valid = torch.ones(B, K, dtype=torch.bool) if valid is None else valid
    return Candidates(labels, torch.arange(K, 0, -1.0).expand(B, K).where(valid, -torch.inf), valid)


def random_lists(B=40, K=6, T=7):
    generator = torch.Generator().manual_seed(11)
    gold = torch.randint(0, 5, (B, T), generator=generator)
    changed = torch.rand(B, K, T, generator=generator) < 0.4
    labels = torch.randint(0, 5, (B, K, T), generator=generator).where(changed, gold[:, None])
    valid = torch.rand(B, K, generator=generator) < 0.8
    valid[:, 0] = True
    return (
        candidates_of(labels.where(valid[..., None], 0), valid),
        gold,
        torch.randint(0, T + 1, (B,), generator=generator),
    )


def plain_f1(gold, predicted):
    g, p = set(spans(LABELS.decode(gold))), set(spans(LABELS.decode(predicted)))
    return (2 * len(g & p) / max(1, len(g) + len(p)), -len(p))


def test_choice_by_plain_spans():
    candidates, gold, lengths = random_lists()
    choice = oracle(candidates, gold, lengths, LABELS)
    for b, n in enumerate(lengths.tolist()):
        rated = [
            (*plain_f1(gold[b, :n], row[:n]), -k)
            for k, row in enumerate(candidates.labels[b])
            if candidates.valid[b, k]
        ]
        assert int(choice[b]) == -max(rated)[2]


def test_ties():
    gold = torch.tensor([[0, 0, 0], [1, 0, 0], [1, 2, 0]])
    labels = torch.tensor(
        [
            [[1, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]],  # nothing to find: the first empty one
            [[0, 3, 0], [3, 3, 0], [0, 1, 0], [0, 0, 0]],  # F1 = 0 for all: the one without segments
            [[0, 0, 0], [1, 2, 0], [2, 2, 0], [1, 2, 1]],  # both readings are right: the first
        ]
    )
    assert oracle(candidates_of(labels), gold, torch.tensor([3, 3, 3]), LABELS).tolist() == [2, 3, 1]


def test_invalid_candidates_are_never_chosen():
    gold = torch.tensor([[0, 0]])
    labels = torch.tensor([[[1, 0], [0, 0]]])
    candidates = candidates_of(labels, torch.tensor([[True, False]]))
    assert oracle(candidates, gold, torch.tensor([2]), LABELS).tolist() == [0]


def test_by_hand():
    gold = torch.tensor([[1, 0, 3], [1, 2, 2]])
    labels = torch.tensor([[[1, 0, 0], [1, 1, 3], [0, 0, 0]], [[1, 2, 0], [0, 0, 0], [3, 4, 4]]])
    metric = OracleF1(LABELS)
    metric.update(candidates_of(labels), gold, torch.tensor([3, 3]))
    # first: 2*1/3 = .67 against 2*2/5 = .8; second: nothing right anywhere, so the empty one
    assert metric.compute().total == (2, 3, 3)
    assert metric.compute().f1 == pytest.approx(2 / 3)
    assert int(metric.sequences) == 2


def test_sentence_boundaries_hold_in_candidates():
    gold, candidate = torch.tensor([[1, 1]]), torch.tensor([[[1, 2], [1, 0]]])
    without, within = OracleF1(LABELS), OracleF1(LABELS)
    without.update(candidates_of(candidate), gold, torch.tensor([2]))
    within.update(candidates_of(candidate), gold, torch.tensor([2]), torch.tensor([[0, 1]]))
    assert without.compute().total == (1, 1, 2)
    assert within.compute().total == (2, 2, 2)
