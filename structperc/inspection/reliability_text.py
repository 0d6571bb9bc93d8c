"""Confidence against accuracy as text, and as rows of a CSV file."""

from collections.abc import Iterator, Sequence

from structperc.inspection.reliability import ModelReliability
from structperc.metrics import Reliability

HEADER = ("model", "of", "low", "high", "n", "confidence", "accuracy")


def reliability_lines(found: Sequence[ModelReliability]) -> Iterator[str]:
    """A line of sums for each model, in per cent, then its bins."""
    width = max(5, *(len(one.name) for one in found)) + 2
    heads = ("n", "accuracy", "confidence", "ECE", "Brier")
    yield f"{'model':<{width}}{'of':<10}" + "".join(f"{head:>12}" for head in heads)
    for one in found:
        for level, result in one.levels:
            shares = (result.all.accuracy, result.all.confidence, result.ece, result.brier)
            yield f"{one.name:<{width}}{level:<10}{result.all.n:>12}" + "".join(f"{100 * s:>12.2f}" for s in shares)
    for one in found:
        for level, result in one.levels:
            yield ""
            yield f"{one.name}: {level}"
            yield from _bin_lines(result)


def _bin_lines(result: Reliability) -> Iterator[str]:
    yield f"{'confidence':<14}{'n':>10}{'mean':>12}{'accuracy':>12}"
    for one in result.bins:
        shares = f"{100 * one.confidence:>12.2f}{100 * one.accuracy:>12.2f}" if one.n else ""
        yield f"{one.low:.2f} .. {one.high:.2f}  {one.n:>10}{shares}"


def bin_rows(found: Sequence[ModelReliability]) -> Iterator[tuple[object, ...]]:
    """A row of the CSV file for each bin of each model; see HEADER."""
    for one in found:
        for level, result in one.levels:
            for b in result.bins:
                yield one.name, level, b.low, b.high, b.n, b.confidence, b.accuracy
