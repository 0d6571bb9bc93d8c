"""The exportable search: the labels of `viterbi` and its confidence, as it is, as an exported program and as ONNX."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn.functional import pad

from structperc.chain import ExportableViterbi, exportable_viterbi, log_partition, marginals, viterbi
from structperc.chain.viterbi import exportable_marginals
from structperc.data.labels import LabelSet
from structperc.data.tag_schemes import first_violation
from structperc.structures import Lattice
from tests import oracle

DOCS = Path(__file__).parents[2] / "docs" / "how_to" / "export.md"


def assert_same(found, lattice: Lattice) -> None:
    """The same labels, and scores that were summed in another order."""
    expected = viterbi(lattice)
    assert [x.dtype for x in found] == [x.dtype for x in expected]
    torch.testing.assert_close(found[0], expected[0])
    assert found[1].equal(expected[1])


def test_equals_viterbi(lattice: Lattice) -> None:
    assert_same(exportable_viterbi(lattice), lattice)


def test_marginals_equal_the_operators(lattice: Lattice) -> None:
    torch.testing.assert_close(exportable_marginals(lattice), (log_partition(lattice), marginals(lattice)))


# -- exported ------------------------------------------------------------------------------------------------

L = 4


class Sure(nn.Module):
    """Scores and labels, the probability (B,) of each label sequence, and that (B, T, L) of each label."""

    def forward(self, unary: Tensor, edge: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
        lattice = Lattice(unary, edge, lengths)
        (scores, labels), (log_z, each) = exportable_viterbi(lattice), exportable_marginals(lattice)
        return scores, labels, (scores - log_z).exp(), each


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Exported with one shape, saved, loaded; float64, L labels, any numbers of sequences and tokens."""
    B, T = Dim("B", min=1), Dim("T", min=1)
    dynamic = {"unary": {0: B, 1: T}, "edge": {0: B, 1: T}, "lengths": {0: B}}
    file = tmp_path_factory.mktemp("exported") / "viterbi.pt2"
    example = torch.randn(3, 7, L).double(), torch.randn(3, 7, L, L).double(), torch.tensor([7, 3, 0])
    torch.export.save(torch.export.export(Sure(), example, dynamic_shapes=dynamic), file)
    return torch.export.load(file)


@pytest.fixture(scope="module")
def program(exported):
    return exported.module()


def test_exported_program_needs_no_operators(exported) -> None:
    targets = [str(node.target) for node in exported.graph.nodes if node.op == "call_function"]
    assert targets
    assert not any("structperc" in target for target in targets)


def widened(lattice: Lattice) -> Lattice:
    """With L labels, as the program wants them; those that are new are impossible."""
    B, T, size = lattice.unary.shape
    more = 0, L - size
    edge = lattice.edge.expand(B, T, size, size)
    return Lattice(pad(lattice.unary, more, value=-torch.inf), pad(edge, more * 2, value=-torch.inf), lattice.lengths)


def test_exported_program_equals_viterbi(lattice: Lattice, program) -> None:
    scores, labels, sure, each = program(*oracle.tables(widened(lattice)))
    assert_same((scores, labels), lattice)
    probability = (viterbi(lattice)[0] - log_partition(lattice)).exp()
    torch.testing.assert_close(sure, probability, equal_nan=True)
    torch.testing.assert_close(each[:, :, : lattice.unary.shape[2]], marginals(lattice))
    for b, n in enumerate(lattice.lengths.tolist()):
        ranked = oracle.sorted_paths(lattice, b)
        assert float(scores[b]) == pytest.approx(oracle.best(ranked), abs=1e-9)
        if ranked:
            assert oracle.score(lattice, b, tuple(labels[b, :n].tolist())) == pytest.approx(ranked[0][0], abs=1e-9)
        assert not labels[b, n if ranked else 0 :].any()


@pytest.mark.parametrize(("B", "T"), [(1, 2), (17, 61)])
def test_program_of_any_shape(B: int, T: int, program) -> None:
    torch.manual_seed(B * T)
    for _ in range(2):
        whole = torch.randint(-2, 3, (B, T, L)).double(), torch.randint(-2, 3, (B, T, L, L)).double()
        lattice = Lattice(*whole, torch.randint(0, T + 1, (B,)))
        assert_same(program(*oracle.tables(lattice))[:2], lattice)


def test_export_of_the_documentation(tmp_path, monkeypatch) -> None:
    code = re.search(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": "documentation"}
    exec(code[1], names)
    labels: LabelSet = LabelSet(("O", "B-PER", "I-PER", "B-LOC", "I-LOC"), "IOB2")
    assert names["labels"].shape == (5, 30)
    for B, T in ((1, 1), (4, 1), (1, 9), (6, 20)):
        vectors, lengths = torch.randn(B, T, 16), torch.randint(0, T + 1, (B,))
        with torch.no_grad():
            scores, found = names["decode"](vectors, lengths)
            eager = names["labeller"](vectors, lengths)
        assert scores.equal(eager[0])
        assert found.equal(eager[1])
        for row, n in zip(found, lengths.tolist(), strict=True):
            assert first_violation(labels.decode(row[:n]), "IOB2") is None


def assert_sure(run: Callable[..., Sequence[Tensor]]) -> None:
    """Whether a program for stationary edges and L labels, of which one is barred, answers as the operators do."""
    torch.manual_seed(0)
    for B, T in ((3, 7), (1, 1), (5, 30)):
        lattice = Lattice(torch.randn(B, T, L), torch.randn(1, 1, L, L), torch.randint(T + 1, (B,)))
        lattice.unary[:, :, 2] = -torch.inf
        scores, labels = viterbi(lattice)
        wanted = [scores, labels, (scores - log_partition(lattice)).exp(), marginals(lattice)]
        torch.testing.assert_close(list(run(*oracle.tables(lattice))), wanted)


def test_onnx_answers_alike(tmp_path: Path) -> None:
    pytest.importorskip("onnxscript", reason="torch.onnx.export needs onnxscript")
    runtime = pytest.importorskip("onnxruntime", reason="ONNX files are run by onnxruntime")
    B, T = Dim("B", min=1), Dim("T", min=1)
    example = torch.randn(3, 7, L), torch.randn(1, 1, L, L), torch.tensor([7, 3, 0])
    stationary = torch.export.export(Sure(), example, dynamic_shapes=({0: B, 1: T}, None, {0: B}))
    torch.onnx.export(stationary, dynamo=True, input_names=["unary", "edge", "lengths"]).save(tmp_path / "v.onnx")
    session = runtime.InferenceSession(tmp_path / "v.onnx")

    def run(unary: Tensor, edge: Tensor, lengths: Tensor) -> list[Tensor]:
        given = {"unary": unary.numpy(), "edge": edge.numpy(), "lengths": lengths.numpy()}
        return [torch.from_numpy(found) for found in session.run(None, given)]

    assert_sure(run)


@pytest.mark.long
def test_ahead_of_time_with_dynamic_lengths(tmp_path: Path) -> None:
    """By AOTInductor, for a fixed number of sequences: torch has no rule yet for scans over any number of both."""
    shapes = {"unary": {1: torch.export.Dim("T", min=1)}, "edge": None, "lengths": None}
    example = torch.randn(3, 6, 4), torch.randn(1, 1, 4, 4), torch.tensor([6, 0, 3])
    program = torch.export.export(ExportableViterbi(), example, dynamic_shapes=shapes)
    package = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "decoder.pt2"))
    decode = torch._inductor.aoti_load_package(package)
    for T in (1, 5, 40):
        given = torch.randn(3, T, 4), torch.randn(1, 1, 4, 4), torch.tensor([T, T // 2, 0])
        assert_same(decode(*given), Lattice(*given))
