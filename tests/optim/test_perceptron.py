"""Optimizers against naive arithmetic: plain loops, all weight vectors stored."""

import pytest
import torch

from structperc.errors import InputError
from structperc.optim import PassiveAggressive, Perceptron


def sparse(index, values, size):
    return torch.sparse_coo_tensor(torch.tensor(index).T, torch.tensor(values), size)


def random_gradients(steps, size, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        dense = torch.randint(-2, 3, size, generator=generator).float()
        dense[torch.rand(size, generator=generator) < 0.7] = 0
        yield dense


LAYOUTS = {
    "dense": torch.clone,
    "sparse": torch.Tensor.to_sparse,
    "repeated": lambda dense: twice((dense / 2).to_sparse()),
    "rows": lambda dense: dense.to_sparse(1),
}


def twice(half):
    """Every entry two times, uncoalesced."""
    indices, values = torch.cat([half.indices()] * 2, 1), torch.cat([half.values()] * 2)
    return torch.sparse_coo_tensor(indices, values, half.shape, check_invariants=True)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_average_of_all_steps(layout):
    p = torch.nn.Parameter(torch.arange(12.0).view(4, 3))
    optimizer = Perceptron([p])
    history, w = [], p.detach().clone()
    for dense in random_gradients(17, (4, 3)):
        p.grad = LAYOUTS[layout](dense)
        optimizer.step()
        w = w - dense
        history.append(w)
        assert torch.equal(p.detach(), w)
    with optimizer.evaluation_weights():
        torch.testing.assert_close(p.detach(), torch.stack(history).double().mean(0).float())
    assert torch.equal(p.detach(), w)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_marks_of_moved_weights(layout):
    p = torch.nn.Parameter(torch.zeros(4, 3))
    optimizer = Perceptron([p])
    assert not optimizer.moved_weights
    optimizer.mark_moved()
    moved = torch.zeros(4, 3, dtype=torch.bool)
    for dense in random_gradients(3, (4, 3)):
        p.grad = LAYOUTS[layout](dense)
        optimizer.step()
        moved |= dense != 0
        assert torch.equal(optimizer.moved_weights[p], moved.to(torch.uint8))
    assert 0 < moved.sum() < 12
    assert "moved_weights" not in optimizer.state[p]


def test_steps_without_a_gradient_count():
    # w is 1 after the first of four steps and stays: the average over every step is 1, not 1/4 of a sum per change
    p = torch.nn.Parameter(torch.zeros(2))
    optimizer = Perceptron([p])
    for gradient in (torch.tensor([0.0, 0.0]), torch.tensor([-1.0, 0.0]), None, None):
        p.grad = gradient
        optimizer.step()
    with optimizer.evaluation_weights():
        assert p[0].item() == pytest.approx(0.75)


def test_without_average_nothing_is_kept():
    p = torch.nn.Parameter(torch.zeros(3))
    optimizer = Perceptron([p], average=False)
    p.grad = torch.ones(3)
    optimizer.step()
    assert not optimizer.state[p]
    with optimizer.evaluation_weights():
        assert torch.equal(p.detach(), -torch.ones(3))


@pytest.mark.parametrize("variant", ["PA", "PA-I", "PA-II"])
@pytest.mark.parametrize("to_sparse", [False, True])
def test_passive_aggressive_step_sizes(variant, to_sparse):
    a, b = torch.nn.Parameter(torch.zeros(3)), torch.nn.Parameter(torch.zeros(2))
    optimizer = PassiveAggressive([a, b], variant=variant, C=0.05)

    def closure():
        optimizer.zero_grad()
        a.grad, b.grad = torch.tensor([1.0, 0.0, -2.0]), torch.tensor([0.0, 3.0])
        if to_sparse:
            a.grad, b.grad = a.grad.to_sparse(), b.grad.to_sparse()
        return torch.tensor(7.0)

    optimizer.step(closure)
    norm = 1 + 4 + 9
    tau = {"PA": 7 / norm, "PA-I": 0.05, "PA-II": 7 / (norm + 1 / (2 * 0.05))}[variant]
    torch.testing.assert_close(a.detach(), -tau * torch.tensor([1.0, 0.0, -2.0]))
    torch.testing.assert_close(b.detach(), -tau * torch.tensor([0.0, 3.0]))


def test_no_loss_no_step():
    w = torch.nn.Parameter(torch.zeros(2))
    with pytest.raises(RuntimeError, match="closure"):
        PassiveAggressive([w]).step()


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda p: Perceptron(p, lr=0), "lr"),
        (lambda p: PassiveAggressive(p, C=-1), "C must"),
        (lambda p: PassiveAggressive(p, variant="PA-III"), "variant"),
    ],
)
def test_bad_options_are_named(make, named):
    with pytest.raises(InputError, match=named):
        make([torch.nn.Parameter(torch.zeros(1))])
