"""LazyAdamW against torch's AdamW, its SparseAdam, and naive arithmetic over rows."""

import io
import math

import pytest
import torch

from structperc.optim import LazyAdamW
from structperc.optim.lazy import row_gradients

ROWS, WIDTH = 6, 3


def gradients(steps, rows):
    """A sparse gradient over single weights for each step, with repeated entries in some of the given rows."""
    generator = torch.Generator().manual_seed(3)
    for _ in range(steps):
        chosen = torch.tensor(rows)[torch.randint(len(rows), (8,), generator=generator)]
        index = torch.stack([chosen, torch.randint(WIDTH, (8,), generator=generator)])
        values = torch.randn(8, generator=generator, dtype=torch.float64)
        yield torch.sparse_coo_tensor(index, values, (ROWS, WIDTH), check_invariants=True)


def table():
    return torch.nn.Parameter(torch.arange(ROWS * WIDTH, dtype=torch.float64).view(ROWS, WIDTH) / 10)


def test_naive_arithmetic():
    p, lr, decay, beta1, beta2, eps = table(), 0.1, 0.2, 0.8, 0.9, 1e-3
    weights, mean, square = p.tolist(), [[0.0] * WIDTH for _ in range(ROWS)], [[0.0] * WIDTH for _ in range(ROWS)]
    optimizer = LazyAdamW([p], lr, (beta1, beta2), eps, decay)
    for t, gradient in enumerate(gradients(7, [0, 2, 3, 5]), 1):
        p.grad = gradient
        optimizer.step()
        dense = gradient.to_dense().tolist()
        for r in sorted(set(gradient.coalesce().indices()[0].tolist())):
            for c in range(WIDTH):
                mean[r][c] = beta1 * mean[r][c] + (1 - beta1) * dense[r][c]
                square[r][c] = beta2 * square[r][c] + (1 - beta2) * dense[r][c] ** 2
                step = mean[r][c] / (1 - beta1**t) / (math.sqrt(square[r][c] / (1 - beta2**t)) + eps)
                weights[r][c] = weights[r][c] * (1 - lr * decay) - lr * step
        torch.testing.assert_close(p.detach(), torch.tensor(weights, dtype=torch.float64))
    assert torch.equal(p[[1, 4]], table()[[1, 4]])


def test_all_rows_touched_equals_adamw():
    p, q = table(), table()
    lazy, adamw = LazyAdamW([p], lr=0.1, weight_decay=0.5), torch.optim.AdamW([q], lr=0.1, weight_decay=0.5)
    for gradient in gradients(5, list(range(ROWS))):
        whole = gradient.to_dense() + 1
        p.grad, q.grad = whole.to_sparse(1), whole
        lazy.step()
        adamw.step()
    assert torch.equal(p, q)


@pytest.mark.parametrize("fused", [False, True])
def test_dense_gradients_as_adamw(fused):
    ours, theirs = [table(), table()], [table(), table()]
    lazy, adamw = LazyAdamW(ours, lr=0.1, fused=fused), torch.optim.AdamW(theirs[1:], lr=0.1, fused=fused)
    for gradient in gradients(3, [1]):
        ours[0].grad, ours[1].grad, theirs[1].grad = gradient, gradient.to_dense(), gradient.to_dense()
        lazy.step()
        adamw.step()
    assert ours[0].grad is gradient
    assert torch.equal(ours[1], theirs[1])
    assert not torch.equal(ours[0], ours[1])  # the decay of rows without gradient


def test_rows_of_a_gradient():
    (gradient,) = gradients(1, [1, 3, 4])
    rows, values = row_gradients(gradient)
    assert rows.tolist() == sorted(set(gradient.coalesce().indices()[0].tolist()))
    torch.testing.assert_close(values, gradient.to_dense()[rows])
    again = row_gradients(torch.sparse_coo_tensor(rows[None], values, (ROWS, WIDTH), check_invariants=True))
    assert torch.equal(again[0], rows)
    assert torch.equal(again[1], values)


def test_resume_equals_going_on():
    made = list(gradients(6, [0, 2, 5]))
    p = table()
    optimizer = LazyAdamW([p], lr=0.1)
    for gradient in made[:3]:
        p.grad = gradient
        optimizer.step()
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    q = torch.nn.Parameter(p.detach().clone())
    resumed = LazyAdamW([q], lr=0.1)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for gradient in made[3:]:
        for x, one in ((p, optimizer), (q, resumed)):
            x.grad = gradient
            one.step()
    assert torch.equal(p, q)
