"""Confidence against accuracy as text, and as rows of a CSV file."""

from collections.abc import Iterator, Sequence

from structperc.inspection.model_reliability import ModelReliability
from structperc.metrics import Reliability
from structperc.reports.table import percent, text_table

HEADER = ("model", "of", "low", "high", "n", "confidence", "accuracy")


def reliability_lines(found: Sequence[ModelReliability]) -> Iterator[str]:
    """Yield a line of sums for each model, in per cent, then its bins."""
    rows = [["model", "of", "n", "accuracy", "confidence", "ECE", "Brier"]]
    for one in found:
        for level, result in one.levels:
            shares = (result.all.accuracy, result.all.confidence, result.ece, result.brier)
            rows.append([one.name, level, str(result.all.n), *map(percent, shares)])
    yield from text_table(rows, "<<>", [5, 8, 12, 10])
    for one in found:
        for level, result in one.levels:
            yield ""
            yield f"{one.name}: {level}"
            yield from _bin_lines(result)


def _bin_lines(result: Reliability) -> Iterator[str]:
    rows = [["confidence", "n", "mean", "accuracy"]]
    for one in result.bins:
        shares = [percent(one.confidence), percent(one.accuracy)] if one.n else []
        rows.append([f"{one.low:.2f} .. {one.high:.2f}", str(one.n), *shares])
    return text_table(rows, "<>", [12, 10])


def bin_rows(found: Sequence[ModelReliability]) -> Iterator[tuple[object, ...]]:
    """Yield a row of the CSV file for each bin of each model; see HEADER for its columns."""
    for one in found:
        for level, result in one.levels:
            for b in result.bins:
                yield one.name, level, b.low, b.high, b.n, b.confidence, b.accuracy
