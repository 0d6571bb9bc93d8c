"""One process against several that learn online and mix their weights: speed and accuracy.

Each trains by `fit`: on CoNLL-2003, once and fifteen times over, where there is a folder of corpora, else on the
embedded corpus. Epochs are timed by the program, without reading, extraction and development data. What processors
give to several processes at the same time is less than so many times what they give to one: how much it is, trainings
say that know nothing of each other. One process, several that mix, and several trainings take turns, since machines
are slower at times; the fastest epoch of each counts.
"""

import csv
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks.growth import grown
from benchmarks.processes import at_once

SENTENCES, DOCUMENTS = "studies/kazama2007#sentences_pa", "studies/kazama2007#margin"
NONLOCAL = "studies/kazama2007#local_and_nonlocal_sentences"
LARGE = 3_000_000  # tokens
SPEED = "≥ 1.6"  # target


class Case(NamedTuple):
    """What is trained."""

    config: str
    epochs: int
    times: int
    options: tuple[str, ...] = ()
    name: str = ""  # of the corpus, if it is not that of the configuration


class Run(NamedTuple):
    speed: float  # epochs a second, of the fastest one but for the first
    score: float  # of the last epoch, on development data


def run(smoke: bool) -> list[dict]:
    """Return epochs a second, and F1 after all epochs, of as many processes as there are processors, up to 4."""
    with ExitStack() as stack:
        corpora = None if smoke or "STRUCTPERC_DATA" not in os.environ else Path(os.environ["STRUCTPERC_DATA"])
        if corpora is None:
            cases = [Case("quickstart", 2, 1)]
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            small = [Case(SENTENCES, 15, 3), Case(DOCUMENTS, 15, 3), Case(NONLOCAL, 15, 2)]
            cases = [*small, _large(corpora / "conll2003", folder)]
        numbers = [n for n in (2, 4) if n <= max(2, os.cpu_count() or 1)]
        return [row for case in cases for row in _rows(case, numbers)]


def _large(corpus: Path, folder: Path) -> Case:
    """The training file again and again; the development file is that of the corpus."""
    train = grown(folder / "train", LARGE, corpus / "eng.train")
    (folder / "dev").symlink_to(corpus / "eng.testa")
    files = ("--data.path", str(folder), "--data.files.train", "train", "--data.files.dev", "dev")
    return Case(SENTENCES, 15, 2, files, f", {train.tokens} tokens")


def _rows(case: Case, numbers: Iterable[int]) -> list[dict]:
    rows = []
    for n in numbers:
        turns = [_turn(case, n) for _ in range(case.times)]
        ones, mixtures, others = zip(*turns, strict=True)
        alone, found = max(ones), max(mixtures)  # the fastest
        apart = max(sum(run.speed for run in runs) for runs in others)
        what = {"size": f"{case.config}{case.name}, {n} against one"}
        mixing = {"what": "online learning by processes that mix", "unit": "epochs/s", "target": SPEED}
        stack_parts = {"what": "online learning by trainings at the same time", "unit": "epochs/s", "target": None}
        score = {"what": f"development F1 after {case.epochs} epochs, processes that mix", "unit": "F1", "target": None}
        rows.append({**what, **mixing, **_against(found.speed, alone.speed)})
        rows.append({**what, **stack_parts, **_against(apart, alone.speed)})
        rows.append({**what, **score, **_against(100 * found.score, 100 * alone.score)})
    return rows


def _turn(case: Case, n: int) -> tuple[Run, Run, list[Run]]:
    """One process, several that mix, and several trainings; a case of a single turn has one training for both ends."""
    others = at_once(n if case.times > 1 else 1, lambda: _fit(case, 1))
    return _fit(case, 1) if case.times > 1 else others[0], _fit(case, n), others


def _against(ours: float, peer: float) -> dict:
    return {"ours": ours, "peer": peer, "ratio": ours / peer}


def _fit(case: Case, processes: int) -> Run:
    with tempfile.TemporaryDirectory() as root:
        several = [f"--trainer.devices={processes}", "--trainer.strategy=ddp"] if processes > 1 else []
        limits = [f"--trainer.max_epochs={case.epochs}", "--trainer.accelerator=cpu"]
        options = [*case.options, *limits, f"--trainer.default_root_dir={root}", *several]
        command = [sys.executable, "-m", "structperc", "fit", "-c", f"pkg:{case.config}", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        seconds = [float(s) for s in re.findall(r"updates in ([0-9.]+) s", done.stdout + done.stderr)]
        (metrics,) = Path(root).rglob("metrics.csv")
        with metrics.open(encoding="utf-8") as file:
            scores = [float(row["dev/score"]) for row in csv.DictReader(file) if row.get("dev/score")]
    return Run(1 / max(1e-3, min(seconds[1:])), scores[-1])
