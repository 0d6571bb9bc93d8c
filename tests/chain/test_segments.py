from collections.abc import Callable

import pytest
import torch

from structperc.chain import path_score, segment_marginals
from structperc.chain.segments import (
    Segments,
    best_with,
    best_without,
    max_score_with_segment,
    max_score_without_segment,
)
from structperc.chain.viterbi import best_before_and_after
from structperc.errors import InputError
from structperc.structures import Lattice
from tests import oracle


def every_segment(lattice: Lattice) -> Segments:
    spans = [
        (b, start, end)
        for b, n in enumerate(lattice.lengths.tolist())
        for start in range(n)
        for end in range(start + 1, n + 1)
    ]
    return Segments(*torch.tensor(spans).reshape(-1, 3).unbind(1))


def labelling(lattice: Lattice) -> torch.Tensor:
    B, T, L = lattice.unary.shape
    padding = torch.arange(T) >= lattice.lengths.unsqueeze(1)
    return torch.randint(L, (B, T)).where(~padding, 0)


def agrees(y: tuple[int, ...], labels: torch.Tensor, start: int, end: int) -> bool:
    return list(y[start:end]) == labels[start:end].tolist()


BOTH = [(max_score_with_segment, best_with), (max_score_without_segment, best_without)]


def gradients(lattice: Lattice, measure: Callable[[Lattice], torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Of a weighted sum of the finite scores that it gives."""
    unary, edge = lattice.unary.clone().requires_grad_(), lattice.edge.clone().requires_grad_()
    scores = measure(Lattice(unary, edge, lattice.lengths))
    weights = torch.arange(1, len(scores) + 1, device=scores.device)
    return torch.autograd.grad((scores * weights).sum(), (unary, edge))


def spans(lattice: Lattice, longest: int) -> Segments:
    """Segments of random lengths that follow one another through all sequences."""
    found = []
    for b, n in enumerate(lattice.lengths.tolist()):
        start = 0
        while start < n:
            end = min(n, start + int(torch.randint(1, longest + 1, ())))
            found.append((b, start, end))
            start = end
    return Segments(*torch.tensor(found).unbind(1))


@pytest.mark.parametrize(("score", "search"), BOTH)
def test_scores_and_gradients(lattice: Lattice, score: Callable, search: Callable) -> None:
    segments, labels = every_segment(lattice), labelling(lattice)
    expected, paths = search(lattice, labels, segments)
    torch.testing.assert_close(score(lattice, labels, segments), expected)

    def along_paths(moved: Lattice) -> torch.Tensor:
        return path_score(moved, paths, segments.rows).where(expected > -torch.inf, 0)

    found = gradients(lattice, lambda moved: score(moved, labels, segments))
    wanted = gradients(lattice, along_paths)
    scores = [x.nan_to_num(0, 0, 0) for x in (lattice.unary, lattice.edge)]
    totals = [sum((x * y).sum() for x, y in zip(grads, scores, strict=True)) for grads in (found, wanted)]
    torch.testing.assert_close(*totals)  # scores are linear along their paths
    if not lattice.unary.frac().eq(0).all():  # without ties the paths are the same
        assert all(x.equal(y) for x, y in zip(found, wanted, strict=True))  # sums of integers


@pytest.mark.parametrize(("score", "search"), BOTH)
@pytest.mark.parametrize(("stationary", "dtype"), [(True, torch.float32), (False, torch.float64)])
def test_long_documents(
    documents: Lattice, stationary: bool, dtype: torch.dtype, score: Callable, search: Callable
) -> None:
    edge = documents.edge[:1, 1:2] if stationary else documents.edge
    lattice = Lattice(documents.unary.to(dtype), edge.to(dtype), documents.lengths)
    segments, labels = spans(lattice, 20), labelling(lattice)
    expected, paths = search(lattice, labels, segments)
    torch.testing.assert_close(score(lattice, labels, segments), expected)
    found = gradients(lattice, lambda moved: score(moved, labels, segments))
    for grad, wanted in zip(
        found, gradients(lattice, lambda moved: path_score(moved, paths, segments.rows)), strict=True
    ):
        assert grad.dtype == dtype
        assert grad.equal(wanted)


@pytest.mark.parametrize("score", [max_score_with_segment, max_score_without_segment])
@pytest.mark.parametrize("shape", [(1, 1, 3, 3), (3, 4, 3, 3)])
def test_gradcheck(score: Callable, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    unary = torch.randn(3, 4, 3, dtype=torch.float64, requires_grad=True)
    edge = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([4, 1, 3])
    labels = labelling(Lattice(unary, edge, lengths))
    segments = every_segment(Lattice(unary, edge, lengths))
    assert torch.autograd.gradcheck(lambda u, e: score(Lattice(u, e, lengths), labels, segments), (unary, edge))


def test_passes_may_be_shared(documents: Lattice) -> None:
    segments, labels = spans(documents, 5), labelling(documents)

    def apart(lattice: Lattice) -> torch.Tensor:
        return max_score_without_segment(lattice, labels, segments) - max_score_with_segment(lattice, labels, segments)

    def together(lattice: Lattice) -> torch.Tensor:
        passes = best_before_and_after(lattice)
        return max_score_without_segment(lattice, labels, segments, passes) - max_score_with_segment(
            lattice, labels, segments, passes
        )

    assert together(documents).equal(apart(documents))
    for found, expected in zip(gradients(documents, together), gradients(documents, apart), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    "measure", [max_score_with_segment, max_score_without_segment, best_with, best_without, segment_marginals]
)
def test_wrong_segments_and_labels_are_named(documents: Lattice, measure: Callable) -> None:
    labels = labelling(documents)
    for span in ((1, 5, 5), (1, 17, 18), (1, -1, 2), (2, 0, 1)):
        with pytest.raises(InputError, match=f"segment {span[1]}..{span[2]} .*sequence {span[0]} "):
            measure(documents, labels, Segments(*torch.tensor(span).view(3, 1)))
    labels[3, 20] = 5
    with pytest.raises(InputError, match=r"label 5 .*token 20 .*sequence 3 .*0\.\.4"):
        measure(documents, labels, spans(documents, 5))


@pytest.mark.parametrize("differ", [False, True])
def test_best_paths_match_enumeration(lattice: Lattice, differ: bool) -> None:
    segments, labels = every_segment(lattice), labelling(lattice)
    scores, paths = (best_without if differ else best_with)(lattice, labels, segments)
    for s, (b, start, end) in enumerate(zip(*(x.tolist() for x in segments), strict=True)):
        ranked = [(v, y) for v, y in oracle.sorted_paths(lattice, b) if agrees(y, labels[b], start, end) != differ]
        n = int(lattice.lengths[b])
        assert scores[s].item() == pytest.approx(oracle.best(ranked))
        assert not paths[s, n:].any()
        if ranked:
            path = tuple(paths[s, :n].tolist())
            assert agrees(path, labels[b], start, end) != differ
            assert oracle.score(lattice, b, path) == pytest.approx(ranked[0][0])
        else:
            assert not paths[s].any()


def test_segment_marginals_match_enumeration(lattice: Lattice) -> None:
    segments, labels = every_segment(lattice), labelling(lattice)
    found = segment_marginals(lattice, labels, segments)
    for s, (b, start, end) in enumerate(zip(*(x.tolist() for x in segments), strict=True)):
        held = sum(p for p, y in oracle.probabilities(lattice, b) if agrees(y, labels[b], start, end))
        assert found[s].item() == pytest.approx(held, abs=1e-12)


def test_no_segments(documents: Lattice) -> None:
    none = Segments(*torch.zeros(3, 0, dtype=torch.int64).unbind())
    labels = torch.zeros(6, 310, dtype=torch.int64)
    assert best_with(documents, labels, none)[1].shape == (0, 310)
    assert best_without(documents, labels, none)[0].shape == (0,)
    assert segment_marginals(documents, labels, none).shape == (0,)
    for score in (max_score_with_segment, max_score_without_segment):
        own, pairs = gradients(documents, lambda lattice, score=score: score(lattice, labels, none))
        assert not own.any()
        assert not pairs.any()


def test_cuda_equals_cpu(documents: Lattice, cuda: torch.device) -> None:
    segments, labels = (
        Segments(torch.tensor([0]), torch.tensor([17]), torch.tensor([30])),
        labelling(documents),
    )
    moved = (
        Lattice(*(x.to(cuda) for x in oracle.tables(documents))),
        labels.to(cuda),
        Segments(*(x.to(cuda) for x in segments)),
    )
    for search in (best_with, best_without):
        for found, expected in zip(search(*moved), search(documents, labels, segments), strict=True):
            torch.testing.assert_close(found.cpu(), expected)
    for score in (max_score_with_segment, max_score_without_segment):
        found = gradients(moved[0], lambda lattice, score=score: score(lattice, *moved[1:]))
        expected = gradients(documents, lambda lattice, score=score: score(lattice, labels, segments))
        for grad, wanted in zip(found, expected, strict=True):
            torch.testing.assert_close(grad.cpu(), wanted)
