"""Hashed features against the index: what they reach, what they take, how small the saved models are.

Each trains by `fit`, on CoNLL-2003 sentences where there is a folder of corpora, else on the embedded corpus.
"""

import csv
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

BITS = (22, 20, 18)
MEASURED = """
import pathlib, resource, sys
from structperc.cli.main import main
root, *fit = sys.argv[1:]
failed = main(["fit", *fit])
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
(model,) = pathlib.Path(root).rglob("model")
sys.exit(failed or main(["push", str(model), "-o", root + "/small", "--below", "0", "--table", "int8"]))
"""


class Run(NamedTuple):
    score: float  # F1 of the development data after the last epoch
    megabytes: float  # of the saved model
    int8: float  # after `shrink --table int8`
    epoch: float  # seconds, the fastest
    peak: float  # megabytes of the process
    told: str  # about buckets


def run(smoke: bool) -> list[dict]:
    """Return F1, sizes, times and memory for some numbers of bits, each beside the index."""
    corpus = not smoke and "STRUCTPERC_DATA" in os.environ
    config = "studies/kazama2007#sentences_pa" if corpus else "quickstart"
    index = _fit(config, None, smoke)
    looked = BITS[-1:] if smoke else BITS
    rows = []
    for bits in looked:
        found = _fit(config, bits, smoke)
        size = f"{config}, 2^{bits} buckets; {found.told}"
        for what, unit, ours, peer in (
            ("development F1, hashed features against an index", "F1", found.score, index.score),
            ("saved model", "MB", found.megabytes, index.megabytes),
            ("saved model, shrunk to int8", "MB", found.int8, index.int8),
            ("fastest epoch", "s", found.epoch, index.epoch),
            ("peak memory of fit", "MB", found.peak, index.peak),
        ):
            row = {"what": what, "size": size, "unit": unit, "target": None}
            rows.append({**row, "ours": ours, "peer": peer, "ratio": ours / max(peer, 1e-9)})
        if bits == looked[0]:
            lost = {"what": "development F1 that hashing loses", "size": size, "unit": "F1", "target": "≤ 0.2 F1"}
            rows.append({**lost, "ours": index.score - found.score, "peer": None, "ratio": None})
    return rows


def _fit(config: str, bits: int | None, smoke: bool) -> Run:
    with tempfile.TemporaryDirectory() as root:
        hashed = [] if bits is None else [f"--model.features.init_args.hash_bits={bits}"]
        few = ["--trainer.max_epochs=2"] if smoke else []
        options = ["--trainer.accelerator=cpu", f"--trainer.default_root_dir={root}", *few, *hashed]
        told = _run(["-c", MEASURED, root, "-c", f"pkg:{config}", *options])
        (model,) = Path(root).rglob("model")
        (metrics,) = Path(root).rglob("metrics.csv")
        with metrics.open(encoding="utf-8") as file:
            scores = [100 * float(row["dev/score"]) for row in csv.DictReader(file) if row.get("dev/score")]
        seconds = map(float, re.findall(r"updates in ([0-9.]+) s", told))
        peak = int(re.findall(r"^peak (\d+)$", told, re.MULTILINE)[0]) / 1024
        buckets = re.search(r"about [\d,]+ different ones in [\d,]+", told)
        sizes = _megabytes(model), _megabytes(Path(root) / "small")
        return Run(scores[-1], *sizes, min(seconds), peak, buckets[0] if buckets else "")


def _run(arguments: list[str]) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout + done.stderr


def _megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir()) / 1e6
