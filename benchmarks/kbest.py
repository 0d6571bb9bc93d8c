"""k-best labellings, against list Viterbi in a batch and one sequence at a time, and the longest lists of a corpus."""

import time
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.timing import interleaved
from structperc.ops.operators import kbest
from structperc.structures import Lattice

DOCUMENTS, MEAN_LENGTH = 216, 238  # of the CoNLL-2003 development set


def run(smoke: bool) -> list[dict]:
    """Return rows of milliseconds, and one of seconds; all methods must find the same scores."""
    size, repeats = ((4, 20, 9), 1) if smoke else ((16, 215, 9), 5)
    rows = [row for k in (20, 100) for row in _against_peers(*size, k=k, repeats=repeats)]
    return [*rows, _corpus(6 if smoke else DOCUMENTS, 50 if smoke else 6400)]


def _against_peers(B: int, T: int, L: int, k: int, repeats: int) -> list[dict]:
    torch.manual_seed(0)
    random = Lattice(torch.randn(B, T, L) * 4, torch.randn(L, L).expand(B, T, L, L), torch.full((B,), T))
    peaked = _peaked(random.lengths, L)
    batched, single = "list Viterbi, k per label, batched", "top-k Viterbi, one sequence at a time (AllenNLP's method)"
    return [
        _row(f"k-best, k = {k}, against {batched}", random, k, _list_viterbi, repeats, "15"),
        _row(f"k-best, k = {k}, peaked scores, against {batched}", peaked, k, _list_viterbi, repeats, "15"),
        _row(f"k-best, k = {k}, against {single}", random, k, _one_by_one, repeats, "60"),
    ]


def _search(lattice: Lattice, k: int) -> tuple[Tensor, Tensor, Tensor]:
    return kbest(lattice.unary, lattice.edge, lattice.lengths, k)


def _row(what: str, lattice: Lattice, k: int, peer: Callable[..., tuple], repeats: int, target: str) -> dict:
    torch.testing.assert_close(peer(lattice, k)[0], _search(lattice, k)[1])
    ours, theirs = interleaved(repeats, lambda: _search(lattice, k), lambda: peer(lattice, k))
    B, T, L = lattice.unary.shape
    return {
        "what": what,
        "size": f"(B, T, L) = ({B}, {T}, {L})",
        "ours": ours,
        "peer": theirs,
        "ratio": theirs / ours,
        "unit": "ms",
        "target": target,
    }


def _corpus(documents: int, k: int) -> dict:
    """Documents whose lengths and peaked scores resemble those of a trained tagger on newswire."""
    torch.manual_seed(0)
    lengths = (torch.randn(documents) * 0.65).exp().mul(MEAN_LENGTH / 1.235).long().clamp(15, 1500).sort()[0]
    seconds = 0.0
    for part in lengths.split(4):
        lattice = _peaked(part, 9)
        start = time.perf_counter()
        _search(lattice, k)
        seconds += time.perf_counter() - start
    return {
        "what": f"k-best, k = {k}, a whole corpus",
        "size": f"{documents} documents, {int(lengths.sum())} tokens, L = 9",
        "ours": seconds,
        "peer": None,
        "ratio": None,
        "unit": "s",
        "target": "≤ 10 s",
    }


def _peaked(lengths: Tensor, L: int) -> Lattice:
    """Observation-dependent scores that prefer one labelling, most clearly at most tokens."""
    B, T = len(lengths), int(lengths.max())
    unary, edge = torch.randn(B, T, L) * 3, torch.randn(B, T, L, L) * 2
    preferred = torch.randint(L, (B, T, 1))
    unary.scatter_add_(2, preferred, torch.randn(B, T, 1) * 5 + 12)
    return Lattice(unary, edge, lengths)


@torch.no_grad()
def _list_viterbi(lattice: Lattice, k: int) -> tuple[Tensor, Tensor]:
    """k best prefixes per label -> scores (B, k), labels (B, k, T); for sequences that fill T."""
    T, L = lattice.unary.shape[1:]
    scores, picks = lattice.unary[:, 0].unsqueeze(1), []
    for t in range(1, T):
        terms = (scores.unsqueeze(3) + lattice.edge[:, t].unsqueeze(1)).flatten(1, 2)
        best, pick = terms.topk(min(k, terms.shape[1]), 1)
        scores = best + lattice.unary[:, t].unsqueeze(1)
        picks.append(pick)
    final, slot = scores.flatten(1).topk(k, 1)
    labels = [slot % L]
    for pick in reversed(picks):
        slot = pick.flatten(1).gather(1, slot)
        labels.append(slot % L)
    return final, torch.stack(labels[::-1], 2)


@torch.no_grad()
def _one_by_one(lattice: Lattice, k: int) -> tuple[Tensor, Tensor]:
    """As AllenNLP's `viterbi_decode(..., top_k)`: one sequence after the other, labels read out one by one."""
    found = [_top_k(unary, edge[0], k) for unary, edge in zip(lattice.unary, lattice.edge, strict=True)]
    return torch.stack([scores for scores, _ in found]), torch.tensor([labels for _, labels in found])


def _top_k(unary: Tensor, transitions: Tensor, k: int) -> tuple[Tensor, list[list[int]]]:
    L = unary.shape[1]
    scores, picks = unary[0].unsqueeze(0), []
    for observed in unary[1:]:
        terms = (scores.unsqueeze(2) + transitions).flatten(0, 1)
        best, pick = terms.topk(min(k, len(terms)), 0)
        scores = best + observed
        picks.append(pick.flatten())
    final, slots = scores.flatten().topk(k)
    paths = []
    for slot in slots.tolist():
        path = [slot]
        for pick in reversed(picks):
            path.append(int(pick[path[-1]]))
        paths.append([slot % L for slot in reversed(path)])
    return final, paths
