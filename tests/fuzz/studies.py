"""Studies: lists of configurations over seeds."""

from pathlib import Path
from random import Random

import yaml

from tests.fuzz.attempt import Attempt
from tests.fuzz.configurations import TEXTS
from tests.fuzz.damage import CHANGES, TEXT_CHANGES, damage
from tests.fuzz.trees import changed


def studies(draw: Random, folder: Path) -> Attempt:
    """A study spoiled, in a key or as a file, or a record of its root."""
    file, command = folder / "study.yaml", ["study", "study.yaml", "--root", "runs/study"]
    if draw.random() < 0.25:
        return Attempt(damage(draw, file, CHANGES, TEXT_CHANGES, TEXTS), command)
    tree, done = changed(draw, yaml.safe_load(file.read_text()))
    file.write_text(yaml.dump(tree, sort_keys=False, allow_unicode=False))
    return Attempt(done, command)
