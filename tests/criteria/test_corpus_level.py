"""Criteria over the counts of a corpus: linear losses, remembered batches, checkpoints."""

import pytest
import torch

from structperc.criteria import CorpusCriterion
from structperc.errors import InputError


class Quotient(CorpusCriterion):
    """a / b of two counts that the 'scored' are."""

    n_counts = 2

    def counts(self, scored):
        return scored

    def objective(self, totals):
        return totals[0] / totals[1]

    def defined(self, totals):
        return bool(totals[1] > 0)


def batches(n=4):
    generator = torch.Generator().manual_seed(0)
    return [torch.rand(3 + i, 2, generator=generator, dtype=torch.float64) for i in range(n)]


def test_at_the_totals_gradients_add_up_to_that_of_the_objective():
    criterion = Quotient()
    counts = [batch.requires_grad_() for batch in batches()]
    criterion.totals = torch.cat(counts).detach().sum(0)
    sum(criterion(batch).sum() for batch in counts).backward()
    whole = torch.cat([batch.detach() for batch in counts]).requires_grad_()
    criterion.objective(whole.sum(0)).backward()
    torch.testing.assert_close(torch.cat([batch.grad for batch in counts]), whole.grad)
    assert not criterion.recent.any()  # nothing is remembered where totals are given


@pytest.mark.parametrize("corpus_size", [None, 200])
@pytest.mark.parametrize("memory", [0.0, 0.5, 0.95])
def test_totals_are_estimated_from_decayed_batches(memory, corpus_size):
    criterion = Quotient(memory)
    criterion.corpus_size = corpus_size
    seen = []
    for batch in batches():
        seen.append(batch)
        losses, acts = criterion.losses_and_updates(batch)
        decay = [memory ** (len(seen) - 1 - i) for i in range(len(seen))]
        a, b = (sum(w * float(x[:, s].sum()) for w, x in zip(decay, seen, strict=True)) for s in (0, 1))
        scale = 1 if corpus_size is None else corpus_size / sum(w * len(x) for w, x in zip(decay, seen, strict=True))
        a, b = a * scale, b * scale
        torch.testing.assert_close(losses, batch[:, 0] / b - batch[:, 1] * a / b**2)
        assert acts.all()


def test_evaluation_remembers_nothing():
    criterion = Quotient()
    first, second = batches(2)
    criterion(first)
    state = {name: value.clone() for name, value in criterion.state_dict().items()}
    losses = criterion.eval()(second)
    assert all(torch.equal(value, state[name]) for name, value in criterion.state_dict().items())
    assert torch.equal(losses, criterion.train()(second))


def test_what_is_remembered_survives_a_checkpoint():
    criterion, again = Quotient(), Quotient()
    first, second = batches(2)
    criterion(first)
    criterion.totals = torch.ones(2)  # of the weights of one epoch: not saved
    state = criterion.state_dict()
    assert set(state) == {"recent", "recent_size"}
    again.load_state_dict(state)
    criterion.totals = None
    assert torch.equal(criterion(second), again(second))


def test_saved_models_need_not_hold_what_is_remembered():
    tagger = torch.nn.ModuleDict({"criterion": Quotient(), "scorer": torch.nn.Linear(2, 2)})
    tagger.load_state_dict({name: p.detach() for name, p in tagger.named_parameters()})
    with pytest.raises(RuntimeError, match="Missing"):
        tagger.load_state_dict({})


def test_no_update_before_the_objective_is_defined():
    criterion = Quotient()
    empty = torch.tensor([[1.0, 0.0], [2.0, 0.0]], requires_grad=True)
    losses, acts = criterion.losses_and_updates(empty)
    losses.sum().backward()
    assert not losses.any()
    assert not acts.any()
    assert not empty.grad.any()
    losses, acts = criterion.losses_and_updates(torch.tensor([[1.0, 2.0], [0.0, 0.0]]))
    assert acts.tolist() == [True, False]
    assert losses[0] != 0


def test_bad_options_are_named():
    for memory in (1.0, -0.1, float("nan")):
        with pytest.raises(InputError, match="Quotient: memory must be >= 0 and < 1"):
            Quotient(memory)
