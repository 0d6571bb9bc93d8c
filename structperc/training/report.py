"""Scores of a tagger on the splits of its data, as a table and as JSON."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from structperc.data.output import write_lines
from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.distributed import all_gather_objects, share
from structperc.metrics import Evaluation
from structperc.progress import bar
from structperc.reports.tables import percent, text_table
from structperc.taggers.base import BaseTagger, evaluation_mode, flat_labels
from structperc.training.cost import Clock


class LabelledSplit(NamedTuple):
    """A split as a tagger labels it: its scores, its labels and the seconds that it took."""

    evaluation: Evaluation
    labels: list[str]  # of all N tokens
    seconds: float  # of finding them, in mini-batches of features that were extracted before

    @property
    def tokens_per_second(self) -> float:
        """The number of tokens labelled per second; 0.0 for a split without tokens, which takes no time."""
        return len(self.labels) / self.seconds if self.seconds else 0.0


@torch.no_grad()
def label_split(tagger: BaseTagger, data: SequenceDataModule, split: str) -> LabelledSplit:
    """Label a split with the tagger's present weights; return its labels and scores.

    The split must be encoded and have gold labels. Several processes label it together, and each gets all of the
    result.
    """
    labels = tagger.gold_labels(data.corpus(split))
    evaluation, parts = Evaluation(labels, tagger.beta).to(tagger.device), []
    clock = Clock(tagger.device)
    batches = bar(data.loader(split), f"scoring {split}", show=share().process == 0)
    with evaluation_mode(tagger):
        for batch in batches:
            with clock:
                moved = tagger.transfer_batch_to_device(batch, tagger.device, 0)
                best = tagger.decode(moved)
            evaluation.update(best, moved.gold, moved.lengths, moved.sentences)
            parts.append((batch.rows, best.cpu()))
    return LabelledSplit(
        evaluation, flat_labels(data.corpus(split), tagger.labels, all_gather_objects(parts)), clock.seconds
    )


def evaluate(tagger: BaseTagger, data: SequenceDataModule, split: str) -> Evaluation:
    """Return the scores of a split, labelled as `label_split` does."""
    return label_split(tagger, data, split).evaluation


def by_type(evaluation: Evaluation) -> dict[str, dict[str, float]]:
    """Return score, precision and recall (shares) and the number of gold segments for each segment type.

    Types without a gold or a predicted segment are left out.
    """
    if "segments" not in evaluation:
        return {}
    return {
        name: {"score": one.f(evaluation.beta), "precision": one.precision, "recall": one.recall, "gold": one.gold}
        for name, one in evaluation["segments"].compute().seen.items()
    }


def results_table(results: dict[str, dict[str, float]]) -> str:
    """Return a table with one line per split, in per cent and within 80 columns, from {split: {name: share}}."""
    names = next(iter(results.values()))
    rows = [["split", *(name.replace("_", " ") for name in names)]]
    rows += [[split, *(percent(row[name]) for name in names)] for split, row in results.items()]
    return "\n".join(text_table(rows))


def outcome_lines(labelled: dict[str, LabelledSplit], results: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield the full table of each split, and the table of all."""
    for split, one in labelled.items():
        yield f"{split}:\n{one.evaluation.table()}\n"
        if advice := advice_for_no_prediction(one.evaluation):
            yield f"{split}: {advice}\n"
    if results:
        yield results_table(results)


def advice_for_no_prediction(evaluation: Evaluation) -> str:
    """Return what to try, in one line, where gold has segments and not one is predicted; else an empty string."""
    if "segments" not in evaluation:
        return ""
    found = evaluation["segments"].compute().total
    if found.found or not found.gold:
        return ""
    gold = f"{found.gold} segments" if found.gold > 1 else "1 segment"
    return (
        f"nothing is predicted, and gold has {gold}: train longer (trainer.max_epochs) or with a higher learning rate "
        "(model.optimizer.init_args.lr; for a transformer and a few hundred sentences try 3e-4)"
    )


def write_json(path: Path, results: dict[str, Any]) -> None:
    """Write results as JSON that people can read; the file appears under its name only when it is complete."""
    write_lines(path, [json.dumps(results, indent=2, ensure_ascii=False), "\n"])
