"""A step on the gradients of several mini-batches is that of one mini-batch of all their sequences."""

import pytest
import torch
from torch.utils.data import DataLoader

from structperc.criteria import CRFLoss, HingeLoss, MCEFLoss, PerceptronLoss, Prior
from structperc.errors import InputError
from structperc.optim import PassiveAggressive
from structperc.optim import Perceptron as PerceptronSteps
from structperc.taggers import tagger as tagger_module
from tests.tiny import Sentences, fit, make_tagger, sentences

EXACT, CLOSE = {"rtol": 0.0, "atol": 0.0}, {"rtol": 1e-4, "atol": 1e-5}
CASES = {  # criterion, optimizer, options of the tagger, how equal the weights are
    "sparse": (PerceptronLoss(), PerceptronSteps, {"sparse_grad": True}, EXACT),
    "loss": (HingeLoss(), lambda p: PassiveAggressive(p, C=10), {"sparse_grad": True}, CLOSE),
    "prior": (CRFLoss(), lambda p: torch.optim.SGD(p, lr=0.1), {"prior": Prior(1.0)}, CLOSE),
    "closure": (CRFLoss(), lambda p: torch.optim.LBFGS(p, lr=0.1, max_iter=2), {}, CLOSE),
}


class InOrder(Sentences):
    """Mini-batches of neighbours; the last one is smaller."""

    def train_dataloader(self):
        rows = self.encoded("train")
        order = torch.arange(len(rows)).split(self.batch_size)
        return DataLoader(rows, batch_size=None, sampler=[batch.tolist() for batch in order])


def weights(case, batch_size, batches):
    criterion, optimizer, options, _ = CASES[case]
    data = InOrder(sentences(7, seed=5), batch_size=batch_size)
    tagger = make_tagger(data, criterion, optimizer, **options)
    with torch.no_grad():
        for p in tagger.parameters():
            p.round_()  # of perceptrons all sums are exact
    fit(tagger, data, 2, accumulate_grad_batches=batches)
    return torch.cat([p.detach().flatten() for p in tagger.parameters()])


@pytest.mark.parametrize("case", CASES)
def test_several_small_ones_are_a_large_one(case, monkeypatch):
    monkeypatch.setattr(tagger_module, "sequence_learner", lambda *_: None)  # which takes no mini-batch as a whole
    accumulated = weights(case, 1, 3)
    torch.testing.assert_close(accumulated, weights(case, 3, 1), **CASES[case][-1])
    assert not torch.allclose(accumulated, weights(case, 1, 1), atol=1e-3)


def test_corpora_are_not_counted_in_parts():
    data = InOrder(sentences(7, seed=5), batch_size=2)
    with pytest.raises(InputError, match=r"^trainer\.accumulate_grad_batches: MCEF"):
        fit(make_tagger(data, MCEFLoss()), data, 1, accumulate_grad_batches=2)
