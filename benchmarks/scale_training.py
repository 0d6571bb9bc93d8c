"""structperc fit with a cache on corpora of several sizes: memory, time per token, second runs, two processes."""

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import yaml

from benchmarks.growth import COLUMNS, Grown
from benchmarks.processes import at_once
from structperc.packaged_configs import packaged_path

MEMORY, PACE, START, RANKS, RANK_MEMORY = "≤ 3000 MB", "≤ 1.2", "≤ 5 s", "1.6", "≤ 0.6"  # targets
NAME, EPOCHS = "structperc fit, averaged perceptron, data.cache", 6
BATCH = 8192  # documents: learning one after the other, it is a matter of speed alone
TOLD, EPOCH = re.compile(r"^run: "), re.compile(r"^epoch \d+ of \d+: .* updates in ([\d.]+) s")


class Fitted(NamedTuple):
    """A training."""

    start: float  # seconds until the first epoch begins
    epoch: float  # seconds of the epoch in the middle, of all but the first by their seconds
    memory: float  # MB


def training_rows(corpora: Sequence[Grown], folder: Path) -> list[dict]:
    """Return peak memory, time per token and seconds until the first epoch of a first and of a second run."""
    if len(corpora) > 1:  # else times are not looked at
        _fitted(folder, corpora[0], folder / "other")  # after which what is compiled lies on disk
    cache = folder / "cache"
    found = [(corpus, _fitted(folder, corpus, cache), _fitted(folder, corpus, cache)) for corpus in corpora]
    pace = [1e6 * min(run.epoch for run in runs) / corpus.tokens for corpus, *runs in found]
    tenth = next(own for own, (corpus, *_) in zip(pace, found, strict=True) if 11 * corpus.tokens >= corpora[-1].tokens)
    rows = [row for own, one in zip(pace, found, strict=True) for row in _rows(*one, own)]
    what = "microseconds per token and epoch, against a tenth of the tokens"
    return [*rows, _row(what, corpora[-1], pace[-1], "us", PACE, tenth)]


def rank_rows(corpus: Grown, folder: Path) -> list[dict]:
    """Return speed and memory of two processes, which mix their weights, against one; the cache is there.

    So is the speed of two that know nothing of each other. Memory is also held against that of one process without a
    cache.
    """
    cache = folder / "cache"
    alone, two = (_fitted(folder, corpus, cache, processes) for processes in (1, 2))
    pair = at_once(2, lambda: _fitted(folder, corpus, cache))
    whole = _fitted(folder, corpus, None)
    ours, apart, peer = (sum(corpus.tokens / one.epoch for one in runs) for runs in ([two], pair, [alone]))
    what = "peak memory of each of two processes"
    return [
        _row("two processes against one", corpus, ours, "tokens/s", RANKS, peer),
        _row("two trainings at the same time, against one", corpus, apart, "tokens/s", None, peer),
        _row(what, corpus, two.memory, "MB", None, alone.memory),
        _row(f"{what}, against one with the corpus in memory", corpus, two.memory, "MB", RANK_MEMORY, whole.memory),
    ]


def _rows(corpus: Grown, first: Fitted, second: Fitted, pace: float) -> list[dict]:
    small = corpus.tokens < 4_000_000
    return [
        _row("peak memory", corpus, first.memory, "MB", MEMORY),
        _row("peak memory of a second run", corpus, second.memory, "MB"),
        _row("microseconds per token and epoch", corpus, pace, "us"),
        _row("until the first epoch", corpus, first.start, "s"),
        _row("until the first epoch of a second run", corpus, second.start, "s", START if small else None),
    ]


def _fitted(folder: Path, corpus: Grown, cache: Path | None, processes: int = 1) -> Fitted:
    """A training by so many processes with what is in a cache, if there is one; it has a run folder of its own."""
    own = Path(tempfile.mkdtemp(dir=folder))
    options = {
        "path": str(folder),
        "files": {"train": corpus.path.name},
        "columns": list(COLUMNS),
        "unit": "document",
        "batch_size": BATCH,
        "cache": None if cache is None else str(cache),
    }
    data = {"data": {"class_path": "structperc.data.Conll", "init_args": options}}
    (own / "data.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    command = ["fit", "-c", str(packaged_path("pkg:quickstart")), "-c", str(own / "data.yaml")]
    command += [f"--trainer.default_root_dir={own}", f"--trainer.max_epochs={EPOCHS}"]
    command += ["--trainer.accelerator=cpu"]
    command += [f"--trainer.devices={processes}", "--trainer.strategy=ddp"] if processes > 1 else []
    begun, start, epochs = time.perf_counter(), 0.0, []
    with subprocess.Popen(
        [sys.executable, "-m", "structperc", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if TOLD.match(line):
                start = time.perf_counter() - begun
            elif told := EPOCH.match(line):
                epochs.append(float(told[1]))
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    memory = json.loads((own / "1" / "results.json").read_text())["peak_memory_mb"]
    return Fitted(start, median(epochs[1:]), memory)


def _row(
    what: str, corpus: Grown, ours: float, unit: str, target: str | None = None, peer: float | None = None
) -> dict:
    size, ratio = f"{corpus.tokens} tokens, one of twenty new", ours / peer if peer else None
    figures = {"ours": ours, "peer": peer, "ratio": ratio, "unit": unit, "target": target}
    return {"what": f"{NAME}, {what}", "size": size, **figures}
