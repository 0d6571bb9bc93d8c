"""Rounds of boosting on random lists as large as those of Collins 2002, without a peer.

Frequencies of features are as in text (Zipf). Which candidate is correct depends on weights of a few of the features,
and on chance; the first model's log-probability is a noisy view of the same. A second table of rows shows what a round
costs by how many pairs its feature touches: steps along features that were chosen, from the final weights.
"""

import time

import numpy as np
import torch

from structperc.reranking import Boosting, Examples
from structperc.reranking.boosting import ExpLoss

K = 20
DRAWS = 110  # features of a candidate, before those it has twice
CHUNK = 500  # sequences at a time
QUANTILES = (0.1, 0.5, 0.9, 0.99, 1.0)


def run(smoke: bool) -> list[dict]:
    """Return seconds of the start and of the rounds, then milliseconds of single rounds."""
    S, F, rounds = (200, 5_000, 200) if smoke else (14_000, 500_000, 10_000)
    examples = made(S, F)
    ranker = Boosting(rounds=100)
    start = _seconds(ranker.start, examples)
    entries = ranker.pairs.by_pair.nnz
    size = f"{S} lists of {K}, {F} features, {entries / 1e6:.1f} M entries"
    seconds = sum(_seconds(ranker.epoch) for _ in range(rounds // ranker.rounds))
    return [
        _row("start of boosting: index of pairs and features", size, start, "s", None),
        _row(f"{len(ranker.losses)} rounds of boosting", size, seconds, "s", "≤ 600 s"),
        *_single(ranker, size),
    ]


def _row(what: str, size: str, figure: float, unit: str, target: str | None) -> dict:
    return {
        "what": what,
        "size": size,
        "ours": figure,
        "peer": None,
        "ratio": None,
        "unit": unit,
        "target": target,
    }


def _single(ranker: Boosting, size: str) -> list[dict]:
    """What a round costs at quantiles of the pairs that rounds touched."""
    touched = ranker.touched.numpy()
    loss = ExpLoss(ranker.pairs, ranker.first_weight, ranker.weights.numpy().copy())
    rows = []
    for quantile in QUANTILES:
        at = np.argsort(touched, kind="stable")[round(quantile * (len(touched) - 1))]
        milliseconds = 1000 * min(_seconds(_round, loss, int(ranker.chosen[at])) for _ in range(5))
        what = f"round of boosting that touches {touched[at]} pairs (quantile {quantile:g} of all rounds)"
        rows.append(_row(what, size, milliseconds, "ms", None))
    return rows


def _round(loss: ExpLoss, k: int) -> None:
    loss.best()
    loss.step(k, 0.0025)


def _seconds(function, *arguments) -> float:
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def made(S: int, F: int) -> Examples:
    """S random lists, F features."""
    rng = np.random.default_rng(0)
    weights = torch.from_numpy(rng.normal(size=F) * (rng.random(F) < 0.1))
    sizes = [CHUNK] * (S // CHUNK) + [S % CHUNK] * (S % CHUNK > 0)
    return Examples.concat([_part(size, weights, rng) for size in sizes])


def _part(S: int, weights: torch.Tensor, rng: np.random.Generator) -> Examples:
    ids = torch.from_numpy(np.exp(rng.random((S * K, DRAWS)) * np.log(len(weights))).astype(np.int64))
    quality = weights[ids].sum(1).view(S, K)
    correct = (quality + torch.from_numpy(rng.gumbel(size=(S, K)))).argmax(1)
    first = quality / 2 + torch.from_numpy(rng.normal(size=(S, K)))
    candidate_ids = torch.arange(S * K).repeat_interleave(DRAWS)
    valid = torch.ones(S, K, dtype=torch.bool)
    return Examples.from_pairs(candidate_ids, ids.flatten(), first, valid, correct, len(weights)).drop_shared()
