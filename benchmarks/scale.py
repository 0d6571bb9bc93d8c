"""What time and memory grow with: the embedded corpus grown to several sizes, one word of twenty a new one.

All is measured of processes, start and loading of the model included.
"""

import tempfile
from pathlib import Path

from benchmarks.growth import grown
from benchmarks.scale_tagging import tagging_rows
from benchmarks.scale_training import rank_rows, training_rows

SIZES = (300_000, 1_000_000, 3_000_000, 10_000_000)  # tokens
SMALL = (2_000,)
TIMES = 3  # runs of each, of which the fastest counts, and the largest memory


def run(smoke: bool) -> list[dict]:
    """Return what each thing takes that is done with corpora of all sizes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpora = [grown(folder / f"{size} tokens", size) for size in (SMALL if smoke else SIZES)]
        rows = [*tagging_rows(corpora, folder, 1 if smoke else TIMES), *training_rows(corpora, folder)]
        return rows if smoke else [*rows, *rank_rows(corpora[-2], folder)]
