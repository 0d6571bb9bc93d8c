"""python -m benchmarks.certified_recall MODEL [--conll2003] --recall 0.95: how often a certified recall holds.

The documents of the embedded corpus, or of eng.testa, are divided 200 times at random into two halves. On one half a
threshold is chosen, as by `calibrate --recall R --guarantee P`, with several tests. The table has the share of halves
for which recall on the whole corpus, and on the other half, reaches the goal, the share without a threshold, and means
over the others. Tests of means over documents are scored by such means.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import binom, ttest_1samp
from tqdm import tqdm

from structperc import Corpus, Tagger
from structperc.analysis import fit_temperature
from structperc.analysis.bias_fitting import SegmentCounter, document_numbers
from structperc.analysis.certified_bias import choosing_documents, threshold_counts
from structperc.data import Conll, Synthetic
from structperc.metrics import recall_p_value
from structperc.metrics.certified_recall import fixed_sequence

RecallTest = Callable[[np.ndarray, float], float]  # (counts (D, 3), goal) -> p-value


def pooled(counts: np.ndarray) -> float:
    """Return the recall of all segments."""
    return counts[:, 0].sum() / counts[:, 2].sum()


def by_document(counts: np.ndarray) -> np.ndarray:
    """Return the recall of each document with segments."""
    counts = counts[counts[:, 2] > 0]
    return counts[:, 0] / counts[:, 2]


def estimate(counts: np.ndarray, recall: float) -> float:
    """Certify each threshold whose recall on the same documents reaches the goal."""
    return float(pooled(counts) < recall)


def student(counts: np.ndarray, recall: float) -> float:
    """Student's t-test of correct - recall * gold."""
    return float(ttest_1samp(counts[:, 0] - recall * counts[:, 2], 0, alternative="greater").pvalue)


def betting(x: np.ndarray, mean: float, probability: float) -> float:
    """Return a p-value of E[x] <= mean, 0 <= x <= 1. Waudby-Smith & Ramdas 2024, Theorem 3 and Eq. 26."""
    n = np.arange(1, len(x) + 1)
    means = (0.5 + np.cumsum(x)) / (n + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (n + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    bets = np.minimum(np.sqrt(2 * np.log(1 / (1 - probability)) / (len(x) * before)), 0.99 / mean)
    return float(np.exp(-np.cumsum(np.log1p(bets * (x - mean))).max(initial=0)))


def hoeffding_bentkus(x: np.ndarray, mean: float) -> float:
    """Return a p-value of E[x] <= mean, 0 <= x <= 1. Angelopoulos et al. 2021, Proposition 1 (Bates et al. 2021)."""
    loss, goal, n = 1 - x.mean(), 1 - mean, len(x)
    if loss >= goal:
        return 1.0
    terms = [a * np.log(a / b) for a, b in ((loss, goal), (1 - loss, mean)) if a > 0]
    return float(min(np.exp(-n * sum(terms)), np.e * binom.cdf(np.ceil(n * loss), n, goal), 1))


def tests(largest: int, other: int, probability: float) -> dict[str, tuple[RecallTest, bool]]:
    """Return the tests by name, with whether they are of a mean over documents."""

    def pooled_betting(counts: np.ndarray, recall: float) -> float:
        excess = counts[:, 0] - recall * counts[:, 2]  # between -recall * largest and (1 - recall) * largest
        return betting(excess / largest + recall, recall, probability)

    return {
        "none (recall on the half reaches the goal)": (estimate, False),
        "studentised bootstrap, all text": (recall_p_value, False),
        "studentised bootstrap, next documents": (partial(recall_p_value, next_documents=other), False),
        "Student's t, all text": (student, False),
        f"betting, documents of at most {largest} segments": (pooled_betting, False),
        "Hoeffding-Bentkus, mean over documents": (lambda c, r: hoeffding_bentkus(by_document(c), r), True),
        "betting, mean over documents": (lambda c, r: betting(by_document(c), r, probability), True),
    }


def halves(
    tagger: Tagger, corpus: Corpus, options: argparse.Namespace
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield the documents of the tests, the others, and the counts (N, D, 3) of a sequence of N thresholds."""
    numbers, counter = document_numbers(corpus), SegmentCounter(tagger, corpus)
    D, generator = int(numbers.max()) + 1, np.random.default_rng(options.seed)
    for _ in tqdm(range(options.halves)):
        order = generator.permutation(D)
        half, other = np.sort(order[: D // 2]), order[D // 2 :]
        choosing = choosing_documents(len(half))
        temperature = fit_temperature(tagger, corpus.subset(np.isin(numbers, half[choosing])))
        sequence = threshold_counts(counter, numbers, "overlap", temperature)
        yield half[~choosing], other, np.stack([counts for _, counts in sequence])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--conll2003", action="store_true", help="eng.testa; default: the embedded corpus")
    parser.add_argument("--documents", type=int, default=200, help="of the embedded corpus")
    parser.add_argument("--recall", type=float, default=0.95)
    parser.add_argument("--guarantee", type=float, default=0.9)
    parser.add_argument("--halves", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tagger = Tagger.load(options.model)
    if options.conll2003:
        folder, columns = str(Path(os.environ["STRUCTPERC_DATA"]) / "conll2003"), ["word", "pos", "chunk", "label"]
        corpus = Conll(folder, {"dev": "eng.testa"}, columns, labels="IOB1", scheme=tagger.labels.scheme).corpus("dev")
    else:
        corpus = Synthetic(dev=options.documents).corpus("dev")
    found: dict[str, list[tuple[bool, bool, float, float]]] = {}
    for tested, other, counts in halves(tagger, corpus, options):
        D = counts.shape[1]
        for name, (test, mean) in tests(int(counts[0, :, 2].max()), len(other), options.guarantee).items():
            p_values = (test(one[tested], options.recall) for one in counts)
            certified = fixed_sequence(p_values, options.guarantee)
            rows = found.setdefault(name, [])
            if certified:
                chosen = max(counts[:certified], key=lambda one: one[tested, 0].sum() / one[tested, 1].sum())
                score = (lambda one: by_document(one).mean()) if mean else pooled
                reached = [bool(score(chosen[which]) >= options.recall) for which in (np.arange(D), other)]
                rows.append((*reached, chosen[:, 0].sum() / chosen[:, 1].sum(), pooled(chosen)))
    print(
        "| test | whole corpus | other half | no threshold | precision | recall |",
        "|---|---|---|---|---|---|",
        sep="\n",
    )
    for name, rows in found.items():
        none = f"{100 - 100 * len(rows) / options.halves:.1f} %"
        means = [f"{100 * value:.2f}" for value in np.mean(rows, 0)] if rows else [""] * 4
        print("|", " | ".join([name, *means[:2], none, *means[2:]]), "|")


if __name__ == "__main__":
    main()
