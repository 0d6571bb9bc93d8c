import oracle
import pytest
import torch

from structperc.chain import Segments, best_with, best_without, path_score, segment_marginals, viterbi
from structperc.structures import Lattice


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


@pytest.mark.parametrize("differ", [False, True])
def test_best_labellings_match_enumeration(lattice: Lattice, differ: bool) -> None:
    segments, labels = every_segment(lattice), labelling(lattice)
    scores, paths = (best_without if differ else best_with)(lattice, labels, segments)
    for s, (b, start, end) in enumerate(zip(*(x.tolist() for x in segments), strict=True)):
        ranked = [(v, y) for v, y in oracle.ranked(lattice, b) if agrees(y, labels[b], start, end) != differ]
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


def test_whole_sequence_without_gold_is_the_rival(documents: Lattice) -> None:
    _, labels = viterbi(documents)
    rows = torch.tensor([0, 1, 3, 5])
    segments = Segments(rows, torch.zeros(4, dtype=torch.int64), documents.lengths[rows])
    scores, paths = best_without(documents, labels, segments)
    torch.testing.assert_close(scores, path_score(documents, paths, rows))
    assert (paths != labels[rows]).any(1).all()
    with_scores, with_paths = best_with(documents, labels, segments)
    assert with_paths.equal(labels[rows])
    torch.testing.assert_close(with_scores, path_score(documents, labels)[rows])


def test_segments_of_one_token_are_max_marginals_and_marginals(documents: Lattice) -> None:
    from structperc.chain import marginals, max_marginals

    labels = labelling(documents)
    segments = Segments(torch.tensor([0, 5]), torch.tensor([17, 119]), torch.tensor([18, 120]))
    at = (segments.rows, segments.starts, labels[segments.rows, segments.starts])
    torch.testing.assert_close(best_with(documents, labels, segments)[0], max_marginals(documents)[at])
    torch.testing.assert_close(segment_marginals(documents, labels, segments), marginals(documents)[at])


def test_no_segments(documents: Lattice) -> None:
    none = Segments(*torch.zeros(3, 0, dtype=torch.int64).unbind())
    labels = torch.zeros(6, 310, dtype=torch.int64)
    assert best_with(documents, labels, none)[1].shape == (0, 310)
    assert best_without(documents, labels, none)[0].shape == (0,)
    assert segment_marginals(documents, labels, none).shape == (0,)


def test_cuda_equals_cpu(documents: Lattice, cuda: torch.device) -> None:
    segments, labels = (
        Segments(torch.tensor([0]), torch.tensor([17]), torch.tensor([30])),
        labelling(documents),
    )
    moved = (
        Lattice(*(x.to(cuda) for x in documents)),
        labels.to(cuda),
        Segments(*(x.to(cuda) for x in segments)),
    )
    for search in (best_with, best_without):
        for found, expected in zip(search(*moved), search(documents, labels, segments), strict=True):
            torch.testing.assert_close(found.cpu(), expected)
