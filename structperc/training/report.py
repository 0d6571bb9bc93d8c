"""Scores of a tagger on the splits of its data, as a table and as JSON."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import torch

from structperc.batching.processes import gathered, share
from structperc.batching.sequence_data import SequenceData
from structperc.data.output import write_lines
from structperc.metrics import Evaluation
from structperc.progress import bar
from structperc.reports.table import percent, text_table
from structperc.taggers.inference import flat_labels
from structperc.taggers.modes import evaluating
from structperc.taggers.sequence_tagger import SequenceTagger
from structperc.training.cost import Clock


class Labelled(NamedTuple):
    """A split as a tagger labels it."""

    evaluation: Evaluation
    labels: list[str]  # of all N tokens
    seconds: float  # of finding them, in mini-batches of features that were extracted before

    @property
    def tokens_per_second(self) -> float:
        """0.0 of nothing."""
        return len(self.labels) / self.seconds if self.seconds else 0.0


@torch.no_grad()
def label_split(tagger: SequenceTagger, data: SequenceData, split: str) -> Labelled:
    """Labels a split with the tagger's present weights and counts; the split is encoded and has gold labels.

    Several processes label it together, and each gets all of the result.
    """
    evaluation, parts = Evaluation(tagger.labels, tagger.gamma).to(tagger.device), []
    clock = Clock(tagger.device)
    batches = bar(data.loader(split), f"scoring {split}", show=share().process == 0)
    with evaluating(tagger):
        for batch in batches:
            with clock:
                moved = tagger.transfer_batch_to_device(batch, tagger.device, 0)
                best = tagger.decode(moved)
            evaluation.update(best, moved.gold, moved.lengths, moved.sentences)
            parts.append((batch.rows, best.cpu()))
    return Labelled(evaluation, flat_labels(data.corpus(split), tagger.labels, gathered(parts)), clock.seconds)


def evaluate(tagger: SequenceTagger, data: SequenceData, split: str) -> Evaluation:
    """The scores of `label_split`."""
    return label_split(tagger, data, split).evaluation


def by_type(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    """Types with a gold or a predicted segment -> score, precision and recall (shares), number of gold segments."""
    if "segments" not in evaluation:
        return {}
    return {
        name: {"score": one.f(evaluation.gamma), "precision": one.precision, "recall": one.recall, "gold": one.gold}
        for name, one in evaluation["segments"].compute().seen.items()
    }


def results_table(results: dict[str, dict[str, float]]) -> str:
    """One line per split, percentages, within 80 columns; {split: {name: share}}."""
    names = next(iter(results.values()))
    rows = [["split", *(name.replace("_", " ") for name in names)]]
    rows += [[split, *(percent(row[name]) for name in names)] for split, row in results.items()]
    return "\n".join(text_table(rows, least=[6]))


def write_json(path: Path, results: dict[str, Any]) -> None:
    """Results as JSON, readable by people too; the file appears under its name only when it is complete."""
    write_lines(path, [json.dumps(results, indent=2, ensure_ascii=False), "\n"])
