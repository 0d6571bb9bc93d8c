"""The prior against naive sums, its gradient against finite differences."""

import pytest
import torch

from structperc.criteria import Prior
from structperc.errors import InputError


@pytest.mark.parametrize(("phi", "expected"), [(1, (3 + 0 + 4 + 0.5) / 10), (2, (9 + 0 + 16 + 0.25) / 20)])
def test_hand_worked(phi, expected):
    tables = [torch.tensor([[3.0, 0.0]]), torch.tensor([-4.0]), torch.tensor(0.5), torch.zeros(0, 7)]
    assert Prior(10.0, phi)(iter(tables)).item() == pytest.approx(expected)
    assert Prior(10.0, phi)([]).item() == 0


@pytest.mark.parametrize("phi", [1, 2])
def test_gradcheck(phi):
    torch.manual_seed(0)
    tables = torch.randn(3, 4, dtype=torch.float64, requires_grad=True), torch.randn(5).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda *tables: 3 * Prior(0.7, phi)(tables), tables)


@pytest.mark.parametrize("phi", [1, 2])
def test_double_precision_of_large_tables(phi):
    torch.manual_seed(0)
    table = (1000 + torch.rand(700_001, 2))[:, 0].requires_grad_()  # three parts, not contiguous
    value = Prior(2.0, phi)([table])
    assert value.dtype == torch.float64
    assert value.item() == pytest.approx((table.detach().double().abs() ** phi).sum().item() / (2 * phi), rel=1e-12)
    value.backward()
    expected = (table.detach() if phi == 2 else torch.ones(700_001)) / 2
    torch.testing.assert_close(table.grad, expected)


def test_no_slope_at_zero():
    weights = torch.tensor([0.0, -2.0], requires_grad=True)
    Prior(0.5, 1)([weights]).backward()
    assert weights.grad.tolist() == [0.0, -2.0]


def test_frozen_weights_count_without_a_gradient():
    frozen, free = torch.tensor([1.0]), torch.tensor([2.0], requires_grad=True)
    value = Prior(1.0)([frozen, free])
    value.backward()
    assert value.item() == 2.5
    assert free.grad.item() == 2


def test_bad_options_are_named():
    for options, name in (({"C": 0.0}, "C"), ({"C": -1.0}, "C"), ({"C": 1.0, "phi": 3}, "phi")):
        with pytest.raises(InputError, match=f"Prior: {name} "):
            Prior(**options)
