"""Brute force: all segmentations of a sequence with their scores."""

import math
from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor

Segment = tuple[int, int, int]  # first token, number of tokens, type


def segmentations(t: int, length: int, longest: int, types: int) -> Iterator[list[Segment]]:
    """All segmentations of the tokens from t on."""
    if t == length:
        yield []
    for size in range(1, min(longest, length - t) + 1):
        for kind in range(types):
            for rest in segmentations(t + size, length, longest, types):
                yield [(t, size, kind), *rest]


def labels_of(segments: list[Segment], types: int) -> list[int]:
    return [kind if i == 0 else types + kind for _, size, kind in segments for i in range(size)]


def ranked(token: Tensor, segment: Tensor, pair: Tensor, length: int) -> list[tuple[float, list[Segment]]]:
    """Possible segmentations of one sequence, best first, ties in lexicographic order of labels."""
    _, D, C = segment.shape
    table, own, between = segment.expand(len(token), D, C).tolist(), token.tolist(), pair.tolist()

    def score(one: list[Segment]) -> float:
        tokens = sum(own[u][c] for t, d, c in one for u in range(t, t + d))
        return tokens + sum(table[t][d - 1][c] for t, d, c in one) + sum(between[a[2]][b[2]] for a, b in pairwise(one))

    scored = [(score(one), one) for one in segmentations(0, length, D, C)]
    scored.sort(key=lambda found: (-found[0], labels_of(found[1], C)))
    return [found for found in scored if found[0] > -math.inf]


def expected(
    listed: list[tuple[float, list[Segment]]], shape: torch.Size
) -> tuple[float, Tensor, Tensor, Tensor, float]:
    """log Z, probabilities (T, D, C) of segments and (T, C) of types, expected numbers (C, C) of pairs, the entropy."""
    scores = torch.tensor([s for s, _ in listed], dtype=torch.float64)
    log_z, p = scores.logsumexp(0).item(), scores.softmax(0).tolist()
    segments, pairs = torch.zeros(shape, dtype=torch.float64), torch.zeros(*shape[-1:] * 2, dtype=torch.float64)
    tokens = torch.zeros(shape[0], shape[2], dtype=torch.float64)
    for share, (_, one) in zip(p, listed, strict=True):
        for t, d, c in one:
            segments[t, d - 1, c] += share
            tokens[t : t + d, c] += share
        for before, after in pairwise(one):
            pairs[before[2], after[2]] += share
    return log_z, segments, tokens, pairs, -sum(x * math.log(x) for x in p if x)
