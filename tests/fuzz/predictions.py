"""Prediction files to compare, with gold inside or beside them."""

from pathlib import Path
from random import Random

from tests.fuzz.attempt import Attempt
from tests.fuzz.columns import COLUMNS
from tests.fuzz.damage import CHANGES, TEXT_CHANGES, damage

OPTIONS = (
    [],
    ["--gold", "gold.conll"],
    ["--scheme", "IOB1"],
    ["--scheme", "none"],
    ["--scheme", "BILOU"],
    ["--gold", "gold.conll", "--scheme", "IOBES"],
    ["--beta", "2"],
)


def predictions(draw: Random, folder: Path) -> Attempt:
    """One of the files of a comparison spoiled."""
    options = draw.choice(OPTIONS)
    if draw.random() < 0.2:  # folders of runs
        run = folder / f"runs/{draw.choice(('crf', 'neural'))}/1"
        done = damage(draw, run / "predictions/dev.conll", CHANGES, TEXT_CHANGES, COLUMNS)
        return Attempt(done, ["compare", "runs/crf/1", "runs/neural/1", "--split", "dev"])
    file = draw.choice(("a.conll", "b.conll", *(["gold.conll"] if "--gold" in options else [])))
    done = damage(draw, folder / file, CHANGES, TEXT_CHANGES, COLUMNS)
    more = ["b.conll"] if draw.random() < 0.2 else []
    return Attempt(done, ["compare", "a.conll", "b.conll", *more, *options])
