"""One process against several that learn online and mix their weights: speed and accuracy.

Each trains by `fit`, on CoNLL-2003 sentences where there is a folder of corpora, else on the embedded corpus. Epochs
are timed by the program, without reading, extraction and development data; the first one is left out.
"""

import csv
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

CONFIGS = Path(__file__).parents[1] / "configs"
EPOCHS = 15


class Run(NamedTuple):
    sequences: float  # a second
    scores: list[float]  # of the epochs, on development data


def run(smoke: bool) -> list[dict]:
    """Return sequences a second, and F1 after all epochs, of as many processes as there are processors, up to 4."""
    corpus = not smoke and "STRUCTPERC_DATA" in os.environ
    config, size = ("conll2003/sentences_pa", 14041) if corpus else ("quickstart", 300)
    epochs = 2 if smoke else EPOCHS
    alone = _fit(config, 1, epochs, size)
    rows = []
    for processes in (n for n in (2, 4) if n <= max(2, os.cpu_count() or 1)):
        found = _fit(config, processes, epochs, size)
        what = {"size": f"{config}, {processes} processes against one"}
        speed = {"what": "online learning by several processes", "unit": "sequences/s", "target": "≥ 1.6"}
        score = {"what": f"development F1 after {epochs} epochs, several processes", "unit": "F1", "target": None}
        rows.append({**what, **speed, **_against(found.sequences, alone.sequences)})
        rows.append({**what, **score, **_against(100 * found.scores[-1], 100 * alone.scores[-1])})
    return rows


def _against(ours: float, peer: float) -> dict:
    return {"ours": ours, "peer": peer, "ratio": ours / peer}


def _fit(config: str, processes: int, epochs: int, size: int) -> Run:
    with tempfile.TemporaryDirectory() as root:
        several = [f"--trainer.devices={processes}", "--trainer.strategy=ddp"] if processes > 1 else []
        options = [f"--trainer.max_epochs={epochs}", "--trainer.accelerator=cpu", f"--trainer.default_root_dir={root}"]
        command = [sys.executable, "-m", "structperc", "fit", "-c", str(CONFIGS / f"{config}.yaml"), *options, *several]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr)
        seconds = [float(s) for s in re.findall(r"updates in ([0-9.]+) s", done.stdout + done.stderr)]
        (metrics,) = Path(root).rglob("metrics.csv")
        with metrics.open(encoding="utf-8") as file:
            scores = [float(row["dev/score"]) for row in csv.DictReader(file) if row.get("dev/score")]
    return Run(size / max(1e-9, min(seconds[1:])), scores)
