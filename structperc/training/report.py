"""Results of a run: scores of each split as a table and as JSON; time, memory and size."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytorch_lightning as pl
import torch
from torch import nn

from structperc.data.json_data import check_fields
from structperc.data.output import write_lines
from structperc.datamodules.base import SequenceDataModule
from structperc.datamodules.distributed import all_gather_objects, share
from structperc.metrics import Evaluation
from structperc.progress import bar
from structperc.reports.tables import percent, text_table
from structperc.taggers.base import BaseTagger, evaluation_mode, flat_labels

STATUS = Path("/proc/self/status")
MIB = 2**20


class Stopwatch(pl.Callback):
    """Seconds since it was made; a resumed run adds those that had passed when its checkpoint was written."""

    def __init__(self) -> None:
        self.started, self.before = time.perf_counter(), 0.0

    @property
    def seconds(self) -> float:
        """The seconds of all parts of the run until now."""
        return self.before + time.perf_counter() - self.started

    def state_dict(self) -> dict[str, Any]:
        """Return the seconds until now, which are kept in checkpoints."""
        return {"seconds": self.seconds}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the seconds kept in a checkpoint. Raises InputError for one that holds none."""
        check_fields(state_dict, {"seconds": float}, "callbacks.Stopwatch")
        self.before = state_dict["seconds"]


class Clock:
    """Adds up the seconds of stretches of work on a device: `with clock: ...`, as often as there are any."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.seconds = device, 0.0

    def __enter__(self) -> None:
        self._finish()
        self.started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._finish()
        self.seconds += time.perf_counter() - self.started

    def _finish(self) -> None:
        """Wait for what a GPU still has to do."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def by_part(seconds: dict[str, float]) -> str:
    """Return " (folds 70.1, first model 16.0, ...)", or an empty text for a single part."""
    return f" ({', '.join(f'{part} {spent:.1f}' for part, spent in seconds.items())})" if len(seconds) > 1 else ""


def parameters(model: nn.Module) -> int:
    """Return the number of weights of a model, fixed ones included, such as those of a re-ranker's first model."""
    return sum(p.numel() for p in model.parameters())


def size_on_disk(folder: Path) -> float:
    """Return the size of the files of a folder, in MiB."""
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) / MIB


def peak_memory(device: torch.device) -> dict[str, float]:
    """Return the most memory that this process has had, in MiB: `peak_memory_mb` and `peak_gpu_memory_mb`.

    The latter is that of tensors on a GPU. What the system does not say is left out.
    """
    own = peak_resident()
    found = {} if own is None else {"peak_memory_mb": own / MIB}
    if device.type == "cuda":
        found["peak_gpu_memory_mb"] = torch.cuda.max_memory_allocated(device) / MIB
    return found


def peak_resident() -> int | None:
    """Return the most memory that this process has had, in bytes, or None on Windows.

    Linux keeps ru_maxrss over exec: that of a child process is at least what its parent had. VmHWM begins anew.
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
