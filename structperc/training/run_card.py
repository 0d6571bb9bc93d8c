"""The model card of a trained model: data, scores, command and configuration."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from huggingface_hub import EvalResult

from structperc.data.corpus import Corpus
from structperc.data.normalise import count_segments
from structperc.data.output import write_lines
from structperc.datamodules.base import SequenceDataModule
from structperc.metrics import Evaluation
from structperc.reports.tables import markdown_table, percent
from structperc.taggers.base import BaseTagger
from structperc.taggers.hub import CARD, code, code_block, model_card
from structperc.training.loggers import logged_options
from structperc.training.report import by_type

SPLITS = ("train", "dev", "test")
HUB_NAMES = {"score": "f1", "precision": "precision", "recall": "recall"}  # of scores of segments


class RunRecord(NamedTuple):
    """The facts about a finished run that its model card states."""

    name: str
    command: Sequence[str]
    configuration: Mapping[str, Any]  # all of it, as plain values
    epochs: int
    best_epoch: int | None
    evaluations: Mapping[str, Evaluation]  # of the splits that have gold labels


def write_card(folder: Path, tagger: BaseTagger, data: SequenceDataModule, record: RunRecord) -> None:
    """Set the tagger's card and write it into the folder of its saved model. Raises InputError if that fails."""
    sections = [*_data_section(data), *_scores_section(record.evaluations), *_training_section(record)]
    config, tensors = tagger.to_state()
    results = [*hub_results(data, record.evaluations)]
    text = model_card(config, tensors, tagger.features.columns, record.name, sections, results)
    tagger.card = text.replace(str(Path.home()), "~")  # which tells the name of whoever trained it
    write_lines(folder / CARD, [tagger.card])


def _data_section(data: SequenceDataModule) -> Iterator[str]:
    rows = [["split", "read from", f"{data.unit}s", "sentences", "tokens", "segments"]]
    for split in SPLITS:
        if data.has(split):
            corpus = data.corpus(split)
            sizes = [len(corpus), len(corpus.sentences) - 1, corpus.tokens, _segments(corpus, data.scheme)]
            rows.append([split, code(corpus.name), *("" if size is None else f"{size:,}" for size in sizes)])
    if data.unit == "sentence":
        rows = [[*row[:2], *row[3:]] for row in rows]  # they are the sequences
    yield "## Data"
    yield "\n".join(markdown_table(rows))


def _segments(corpus: Corpus, scheme: str) -> int | None:
    """The number of segments of a corpus with labels that have some."""
    if scheme == "none" or "label" not in corpus.columns:
        return None
    return count_segments(corpus)


def _scores_section(evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    if not evaluations:
        return
    yield "## Scores"
    yield "In per cent; `score` is the F score of segments, or the accuracy of tokens where labels are no segments."
    found = {split: one.compute() for split, one in evaluations.items()}
    names = next(iter(found.values()))
    rows = [["split", *(name.replace("_", " ") for name in names)]]
    yield "\n".join(markdown_table([*rows, *([split, *map(percent, row.values())] for split, row in found.items())]))
    for split, one in evaluations.items():
        if types := by_type(one):
            shares = ("score", "precision", "recall")
            rows = [[f"{split}, type", *shares, "gold segments"]]
            rows += [[code(t), *(percent(row[s]) for s in shares), f"{row['gold']:,}"] for t, row in types.items()]
            yield "\n".join(markdown_table(rows))


def _training_section(record: RunRecord) -> Iterator[str]:
    best = "" if record.best_epoch is None else f", of which number {record.best_epoch} is kept"
    text = yaml.safe_dump(logged_options(record.configuration), sort_keys=False, allow_unicode=True)
    yield "## Training"
    yield f"{record.epochs} epochs{best}."
    yield code_block(shlex.join(record.command), "bash")
    yield f"<details><summary>The whole configuration</summary>\n\n{code_block(text.rstrip(), 'yaml')}\n\n</details>"


def hub_results(data: SequenceDataModule, evaluations: Mapping[str, Evaluation]) -> Iterator[EvalResult]:
    """Yield the scores of each split in the form of the hub, shares in 0..1.

    A data set of the hub stands under its id, any other under the name of its folder or class. An F score with another
    weight of precision than F1 has no name there and is left out.
    """
    hub, path = getattr(data, "hub", None), getattr(data, "path", None)
    name = hub or (path and Path(path).resolve().name) or type(data).__name__
    for split, one in evaluations.items():
        scores = one.compute()
        names = HUB_NAMES if "segments" in one else {}  # without segments the score is the accuracy of tokens
        for score, metric in {**names, "token_accuracy": "accuracy"}.items():
            if metric != "f1" or one.beta == 1:
                yield EvalResult(
                    task_type="token-classification",
                    dataset_type=hub or name.lower(),
                    dataset_name=name,
                    dataset_split=split,
                    metric_type=metric,
                    metric_name=score.replace("_", " ") if metric == "accuracy" else metric,
                    metric_value=round(scores[score], 6),
                )
