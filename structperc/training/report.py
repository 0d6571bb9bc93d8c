"""Scores of a tagger on the splits of its data, as a table and as JSON."""

import json
from pathlib import Path
from typing import Any

import torch
from tqdm.auto import tqdm

from structperc.metrics import Evaluation
from structperc.training.datamodule import SequenceData
from structperc.training.tagger import Tagger


@torch.no_grad()
def evaluate(tagger: Tagger, data: SequenceData, split: str) -> Evaluation:
    """Labels a split with the tagger's present weights and counts."""
    evaluation = Evaluation(tagger.labels).to(tagger.device)
    for batch in tqdm(data.loader(split), desc=f"scoring {split}", leave=False, delay=2):
        moved = tagger.transfer_batch_to_device(batch, tagger.device, 0)
        evaluation.update(tagger.decode(moved), moved.gold, moved.lengths, moved.sentences)
    return evaluation


def results_table(results: dict[str, dict[str, float]]) -> str:
    """One line per split, percentages; {split: {name: share}}."""
    names = list(next(iter(results.values())))
    head = f"{'split':<8}" + "".join(f"{name:>20}" for name in names)
    lines = [f"{split:<8}" + "".join(f"{100 * row[name]:>20.2f}" for name in names) for split, row in results.items()]
    return "\n".join([head, *lines])


def write_json(path: Path, results: dict[str, Any]) -> None:
    """Results as JSON, readable by people too."""
    path.write_text(json.dumps(results, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
