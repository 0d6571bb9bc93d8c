"""Operators inside of what torch does with programs: compilation, export, fake tensors, function transforms."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx.experimental.proxy_tensor import make_fx

from structperc.chain import (
    entropy,
    kbest,
    locally_normalised,
    log_partition,
    marginals,
    max_marginals,
    path_score,
    viterbi,
)
from structperc.structures import Lattice, SegmentScores

OPERATORS = torch.ops.structperc
LENGTHS = torch.tensor([5, 0, 3])
LABELS = torch.tensor([[0, 1, 2, 2, 1], [0, 0, 0, 0, 0], [2, 2, 0, 0, 0]])


def tables(B: int = 3, T: int = 5, L: int = 3, grad: bool = False) -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(B, T, L, requires_grad=grad), torch.randn(B, T, L, L, requires_grad=grad)


def arguments() -> dict[str, tuple[Any, ...]]:
    (unary, edge), plain = tables(grad=True), tables()
    lattice, rows = (unary, edge, LENGTHS), torch.arange(3)
    return {
        "viterbi": (*plain, LENGTHS),
        "kbest": (*plain, LENGTHS, 4),
        "best_before_and_after": lattice,
        "best_before_and_after_backward": (*plain, LENGTHS, plain[0], plain[0]),
        "forward_backward": (*lattice, True),
        "sample": (*plain, LENGTHS, torch.rand(3, 2, 5, dtype=torch.float64)),
        "path_score": (*lattice, LABELS, rows),
        "path_counts": (torch.randn(3, requires_grad=True), LENGTHS, LABELS, rows, [3, 5, 3], [1, 1, 3, 3]),
        "local_log_partition": lattice,
        "local_log_partition_backward": (*plain, LENGTHS, plain[0]),
        "semi_markov_viterbi": (*plain, plain[1][0, 0], LENGTHS),  # L = 3 types, segments of up to 3 tokens
        "semi_markov_log_partition": (
            *tables(B=1, T=2, L=2, grad=True),
            torch.zeros(2, 2),
            torch.tensor([2]),
            True,
        ),
        "semi_markov_sums": (*tables(B=1, T=2, L=2, grad=True), torch.zeros(2, 2), torch.tensor([2])),
    }


@pytest.mark.parametrize("name", arguments())
def test_opcheck(name: str) -> None:
    """Schema, derivative, shapes of fake tensors; of some, compiled against eager with shapes that change."""
    checks = ["test_schema", "test_autograd_registration", "test_faketensor"]
    compiled = ["test_aot_dispatch_dynamic"] if name in ("path_score", "sample", "semi_markov_log_partition") else []
    torch.library.opcheck(getattr(OPERATORS, name).default, arguments()[name], test_utils=[*checks, *compiled])


def everything(unary: Tensor, edge: Tensor) -> tuple[Any, ...]:
    lattice = Lattice(unary, edge, LENGTHS)
    searches = viterbi(lattice), kbest(lattice, 3), path_score(lattice, LABELS), max_marginals(lattice)
    return *searches, log_partition(lattice), marginals(lattice), entropy(lattice), locally_normalised(lattice).unary


def test_full_graph_compilation() -> None:
    torch.testing.assert_close(
        torch.compile(everything, fullgraph=True, backend="aot_eager")(*tables()), everything(*tables())
    )


def loss(unary: Tensor, edge: Tensor) -> Tensor:
    lattice = Lattice(unary, edge, LENGTHS)
    return (log_partition(lattice) - path_score(lattice, LABELS)).sum() + max_marginals(lattice)[0].sum()


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.long)])
def test_compiled_losses_have_the_same_gradients(backend: str) -> None:
    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    gradients = [torch.autograd.grad(f(*x), x) for f, x in ((loss, tables(grad=True)), (compiled, tables(grad=True)))]
    torch.testing.assert_close(*gradients)


class Measures(torch.nn.Module):
    """What a tagger answers with: labels, lists, and how sure it is."""

    def forward(self, unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Any, ...]:
        lattice = Lattice(unary, edge, lengths)
        labels = viterbi(lattice)[1]
        sums = log_partition(lattice), marginals(lattice)
        scores = SegmentScores(unary[:, :, None, :1], torch.tensor([[1, 1, 2, 2], [0, 0, 0, 0]]))  # O, B, I
        segments = lattice._replace(segments=scores)
        return labels, kbest(lattice, 3), path_score(lattice, labels), *sums, viterbi(segments), log_partition(segments)


def test_export_of_decoders_with_confidence() -> None:
    B, T = torch.export.Dim("B", min=1), torch.export.Dim("T", min=1)
    shapes = {"unary": {0: B, 1: T}, "edge": None, "lengths": {0: B}}
    example = (torch.randn(3, 5, 3), torch.randn(1, 1, 3, 3), LENGTHS)
    program = torch.export.export(Measures(), example, dynamic_shapes=shapes).module()
    for sizes in ((3, 5), (1, 1), (7, 20)):
        given = (torch.randn(*sizes, 3), torch.randn(1, 1, 3, 3), torch.randint(sizes[1] + 1, sizes[:1]))
        torch.testing.assert_close(program(*given), Measures()(*given))


def test_function_transforms() -> None:
    unary, edge = tables()

    def total(unary: Tensor) -> Tensor:
        return log_partition(Lattice(unary, edge, LENGTHS)).sum()

    torch.testing.assert_close(torch.func.grad(total)(unary), marginals(Lattice(unary, edge, LENGTHS)))
    both = torch.vmap(lambda u: log_partition(Lattice(u, edge, LENGTHS)))(torch.stack([unary, unary + 1]))
    torch.testing.assert_close(both[1], both[0] + LENGTHS)
    hessian = torch.func.jacrev(torch.func.jacrev(total))(unary)
    torch.testing.assert_close(hessian, torch.autograd.functional.hessian(total, unary))
    per_sequence = torch.vmap(torch.func.grad(lambda u, e, n: log_partition(Lattice(u[None], e[None], n[None])).sum()))
    torch.testing.assert_close(per_sequence(unary, edge, LENGTHS), marginals(Lattice(unary, edge, LENGTHS)))


def test_traced_calls_are_recorded() -> None:
    unary, edge = tables()

    def measure(unary: Tensor) -> tuple[Tensor, Tensor]:
        return viterbi(Lattice(unary, edge, LENGTHS))[1], marginals(Lattice(unary, edge, LENGTHS))

    torch.testing.assert_close(make_fx(measure)(unary)(-unary), measure(-unary))


def test_fake_tensors_have_shapes_and_no_values() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        lattice = Lattice(torch.randn(2, 7, 4), torch.randn(1, 1, 4, 4), torch.ones(2, dtype=torch.int64))
        assert kbest(lattice, 5).labels.shape == (2, 5, 7)
        assert marginals(lattice).shape == (2, 7, 4)
