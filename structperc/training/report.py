"""Results of a run: scores of each split as a table and as JSON; time, memory and size; the model card."""

import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytorch_lightning as pl
import torch
import yaml
from huggingface_hub import EvalResult
from torch import nn

from structperc.data.json_data import check_fields
from structperc.data.normalise import count_segments
from structperc.data.output import write_lines
from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.distributed import all_gather_objects, process_group
from structperc.metrics.torchmetrics_classes import Evaluation
from structperc.models.base import evaluation_mode, flat_labels
from structperc.models.hub import CARD, code, code_block, model_card
from structperc.progress import bar
from structperc.reports.tables import markdown_table, percent, text_table
from structperc.taggers.base import BaseTagger
from structperc.training.loggers import logged_options

STATUS = Path("/proc/self/status")
MIB = 2**20
SPLITS = ("train", "dev", "test")
HUB_NAMES = {"score": "f1", "precision": "precision", "recall": "recall"}  # names of segment scores


class Stopwatch(pl.Callback):
    """Seconds since its creation; a resumed run adds the seconds before its checkpoint."""

    def __init__(self) -> None:
        self.started, self.before = time.perf_counter(), 0.0

    @property
    def seconds(self) -> float:
        """The seconds of the run until now, with those before it was resumed."""
        return self.before + time.perf_counter() - self.started

    def state_dict(self) -> dict[str, Any]:
        """Return the seconds until now, for checkpoints."""
        return {"seconds": self.seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the seconds of a checkpoint. Raises InputError for one without them."""
        check_fields(state_dict, {"seconds": float}, "callbacks.Stopwatch")
        self.before = state_dict["seconds"]


class Clock:
    """Adds up the seconds of work on a device in blocks `with clock: ...`."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.seconds = device, 0.0

    def __enter__(self) -> None:
        self._finish()
        self.started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._finish()
        self.seconds += time.perf_counter() - self.started

    def _finish(self) -> None:
        """Wait for the work of a GPU."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def by_part(seconds: dict[str, float]) -> str:
    """Return " (folds 70.1, first model 16.0, ...)", or an empty text for a single part."""
    return f" ({', '.join(f'{part} {spent:.1f}' for part, spent in seconds.items())})" if len(seconds) > 1 else ""


def parameters(model: nn.Module) -> int:
    """Return the number of weights of a model, including fixed ones such as those of a re-ranker's first model.

    Args:
        model: A module.
    """
    return sum(p.numel() for p in model.parameters())


def size_on_disk(folder: Path) -> float:
    """Return the size of the files of a folder, in MiB."""
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) / MIB


def peak_memory(device: torch.device) -> dict[str, float]:
    """Return the peak memory of this process in MiB: `peak_memory_mb` and `peak_gpu_memory_mb`.

    The latter is the peak of tensors on a GPU. Unknown values are missing.
    """
    resident = peak_resident()
    peaks = {} if resident is None else {"peak_memory_mb": resident / MIB}
    if device.type == "cuda":
        peaks["peak_gpu_memory_mb"] = torch.cuda.max_memory_allocated(device) / MIB
    return peaks


def peak_resident() -> int | None:
    """Return the peak memory of this process in bytes, or None on Windows.

    On Linux a child process inherits the ru_maxrss of its parent, but not its VmHWM.
    """
    if STATUS.is_file():
        for line in STATUS.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024  # KiB elsewhere


class LabelledSplit(NamedTuple):
    """The labels of a split by a tagger, with their scores and the seconds of labelling."""

    evaluation: Evaluation
    labels: list[str]  # labels of all N tokens
    seconds: float  # decoding time, without feature extraction

    @property
    def tokens_per_second(self) -> float:
        """The number of tokens labelled per second; 0.0 for a split without tokens."""
        return len(self.labels) / self.seconds if self.seconds else 0.0


@torch.no_grad()
def label_split(tagger: BaseTagger, data: SequenceDataModule, split: str) -> LabelledSplit:
    """Label a split with the tagger's current weights; return its labels and scores.

    The split must be encoded and have gold labels. Several processes label it together, and each returns the whole
    result.
    """
    labels = tagger.gold_labels(data.corpus(split))
    evaluation, parts = Evaluation(labels, tagger.beta).to(tagger.device), []
    clock = Clock(tagger.device)
    batches = bar(data.loader(split), f"scoring {split}", show=process_group().rank == 0)
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
    """Return the scores of a split under the current weights of a tagger.

    The data must be encoded, as after a fit, and the split must have gold labels. In distributed training each process
    labels its share, and each returns the scores of the whole split.

    Args:
        tagger: A trained tagger.
        data: Data module of the training or evaluation.
        split: "train", "dev" or "test".
    """
    return label_split(tagger, data, split).evaluation


def results_table(results: dict[str, dict[str, float]]) -> str:
    """Return a table with one line per split, in per cent and within 80 columns.

    Args:
        results: Scores as shares in 0..1, {split: {name: share}}.

    Example:
        >>> print(results_table({"dev": {"score": 0.875, "precision": 0.9}, "test": {"score": 0.8, "precision": 0.85}}))
        split  score  precision
        dev    87.50      90.00
        test   80.00      85.00
    """
    names = next(iter(results.values()))
    rows = [["split", *(name.replace("_", " ") for name in names)]]
    rows += [[split, *(percent(row[name]) for name in names)] for split, row in results.items()]
    return "\n".join(text_table(rows))


def outcome_lines(labelled: dict[str, LabelledSplit], results: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield the full table of each split, and the table of all."""
    for split, result in labelled.items():
        yield f"{split}:\n{result.evaluation.table()}\n"
        if advice := advice_for_no_prediction(result.evaluation):
            yield f"{split}: {advice}\n"
    if results:
        yield results_table(results)


def advice_for_no_prediction(evaluation: Evaluation) -> str:
    """Return advice of one line if there are gold segments and none is predicted; else an empty string."""
    if "segments" not in evaluation:
        return ""
    score = evaluation["segments"].compute().total
    if score.found or not score.gold:
        return ""
    gold = f"{score.gold} segments" if score.gold > 1 else "1 segment"
    return (
        f"nothing is predicted, and gold has {gold}: train longer (trainer.max_epochs) or with a higher learning rate "
        "(model.optimizer.init_args.lr; for a transformer and a few hundred sentences try 3e-4)"
    )


# -- model card ----------------------------------------------------------------------------------------------


class RunRecord(NamedTuple):
    """The facts about a finished run for its model card."""

    name: str
    command: Sequence[str]
    configuration: Mapping[str, Any]  # plain values of all options
    epochs: int
    best_epoch: int | None
    evaluations: Mapping[str, Evaluation]  # evaluations of the splits with gold labels


def write_card(folder: Path, tagger: BaseTagger, data: SequenceDataModule, record: RunRecord) -> None:
    """Set the tagger's card and write it into the folder of its saved model. Raises InputError if that fails."""
    sections = [*_data_section(data), *_scores_section(record.evaluations), *_training_section(record)]
    config, tensors = tagger.to_state()
    results = [*hub_results(data, record.evaluations)]
    text = model_card(config, tensors, tagger.columns, record.name, sections, results)
    tagger.card = text.replace(str(Path.home()), "~")  # it contains the name of the user
    write_lines(folder / CARD, [tagger.card])


def _data_section(data: SequenceDataModule) -> Iterator[str]:
    rows = [["split", "read from", f"{data.unit}s", "sentences", "tokens", "segments"]]
    for split in SPLITS:
        if data.has(split):
            corpus = data.corpus(split)
            counted = data.scheme != "none" and "label" in corpus.columns
            segments = count_segments(corpus, data.scheme) if counted else None
            sizes = [len(corpus), len(corpus.sentences) - 1, corpus.tokens, segments]
            rows.append([split, code(corpus.name), *("" if size is None else f"{size:,}" for size in sizes)])
    if data.unit == "sentence":
        rows = [[*row[:2], *row[3:]] for row in rows]  # sequences are sentences
    yield "## Data"
    yield "\n".join(markdown_table(rows))


def _scores_section(evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    if not evaluations:
        return
    yield "## Scores"
    yield "In per cent; `score` is the F score of segments, or the accuracy of tokens if the labels are not segments."
    scores = {split: e.compute() for split, e in evaluations.items()}
    names = next(iter(scores.values()))
    rows = [["split", *(name.replace("_", " ") for name in names)]]
    yield "\n".join(markdown_table([*rows, *([split, *map(percent, row.values())] for split, row in scores.items())]))
    for split, evaluation in evaluations.items():
        if types := evaluation.scores().by_type():
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

    A data set of the hub has its id as name, others the name of their folder or class. F scores other than F1 are left
    out: the hub has no name for them.
    """
    hub, path = getattr(data, "hub", None), getattr(data, "path", None)
    name = hub or (path and Path(path).resolve().name) or type(data).__name__
    for split, evaluation in evaluations.items():
        scores = evaluation.compute()
        names = HUB_NAMES if "segments" in evaluation else {}  # without segments the score is the accuracy of tokens
        for score, metric in {**names, "token_accuracy": "accuracy"}.items():
            if metric != "f1" or evaluation.beta == 1:
                yield EvalResult(
                    task_type="token-classification",
                    dataset_type=hub or name.lower(),
                    dataset_name=name,
                    dataset_split=split,
                    metric_type=metric,
                    metric_name=score.replace("_", " ") if metric == "accuracy" else metric,
                    metric_value=round(scores[score], 6),
                )
