"""structperc tag on corpora of several sizes, by one process and by two workers, with the model of the quickstart."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.growth import COLUMNS, Grown
from benchmarks.processes import Taken, at_once, taken
from benchmarks.tagging import _trained
from structperc.data import Synthetic
from structperc.features import FeatureExtractor

SPEED, SHARED, MEMORY, GROWTH = "100000 tokens/s", "1.6", "≤ 1200 MB", "≤ 1.1"  # targets
NAME = "structperc tag"


def tagging_rows(corpora: Sequence[Grown], folder: Path, times: int) -> list[dict]:
    """Return tokens/s and peak memory at each size, of several runs, and last how memory grows from a tenth of it."""
    tagger = _trained(FeatureExtractor(["kazama2007"], progress=False), Synthetic(unit="document"))
    tagger.save(folder / "model")
    if len(corpora) > 1:  # else times are not looked at
        _taken(folder, corpora[0], 1)  # after which what is compiled lies on disk
    found = [(corpus, *_in_turns(folder, corpus, times)) for corpus in corpora]
    rows = [row for three in found for row in _rows(*three)]
    most, alone, _ = found[-1]
    tenth = next(one.memory for corpus, one, _ in found if 11 * corpus.tokens >= most.tokens)
    what = f"{NAME}, peak memory, against a tenth of the tokens"
    pair = at_once(2, lambda: _taken(folder, most, 1))
    speeds = 2 * most.tokens / max(one.seconds for one in pair), most.tokens / alone.seconds
    return [
        *rows,
        _row(f"{NAME}, two files at the same time, against one", most, speeds[0], "tokens/s", None, speeds[1]),
        _row(what, most, alone.memory, "MB", GROWTH, tenth),
    ]


def _in_turns(folder: Path, corpus: Grown, times: int) -> list[Taken]:
    """What one process takes and what two workers take, which take turns: machines are slower at times."""
    runs = [[_taken(folder, corpus, workers) for workers in (1, 2)] for _ in range(times)]
    return [Taken(min(r.seconds for r in each), max(r.memory for r in each)) for each in zip(*runs, strict=True)]


def _taken(folder: Path, corpus: Grown, workers: int) -> Taken:
    columns = [*COLUMNS[:-1], "_"]
    with tempfile.NamedTemporaryFile(dir=folder) as labelled:
        own = [str(folder / "model"), str(corpus.path), "-o", labelled.name, "--workers", str(workers)]
        command = [sys.executable, "-m", "structperc", "tag", *own, "--columns", *columns]
        return taken(*command)


def _rows(corpus: Grown, alone: Taken, shared: Taken) -> list[dict]:
    speeds = [corpus.tokens / each.seconds for each in (alone, shared)]
    return [
        _row(NAME, corpus, speeds[0], "tokens/s", SPEED),
        _row(f"{NAME} --workers 2, against one process", corpus, speeds[1], "tokens/s", SHARED, speeds[0]),
        _row(f"{NAME}, peak memory", corpus, alone.memory, "MB", MEMORY),
        _row(f"{NAME} --workers 2, peak memory of all processes", corpus, shared.memory, "MB"),
    ]


def _row(
    what: str, corpus: Grown, ours: float, unit: str, target: str | None = None, peer: float | None = None
) -> dict:
    size, ratio = f"{corpus.tokens} tokens, one of twenty new", None if peer is None else ours / peer
    return {"what": what, "size": size, "ours": ours, "peer": peer, "ratio": ratio, "unit": unit, "target": target}
