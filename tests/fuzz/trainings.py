"""Small trainings, one of each kind, and what they leave, without what no two trainings have alike."""

import csv
import json
from pathlib import Path
from typing import Any, NamedTuple

import torch

from structperc.experiments.experiment import finished_run
from structperc.reranking.candidate_lists import TENSORS, CandidateLists
from structperc.training.curves import read_curve

SIZES = ["--data.train=10", "--data.dev=4", "--data.test=4", "--trainer.accelerator=cpu"]
QUIET = ["--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false"]
EPOCHS = ["--trainer.max_epochs=3"]
BATCHES = ["--data.batch_size=4", *EPOCHS]
FULL_BATCH = ["--trainer.max_epochs=6", "--checkpoint.every_n_epochs=2", "--trainer.check_val_every_n_epoch=2"]
START = ["--trainer.callbacks+=structperc.reranking.BayesPoint", "--trainer.callbacks.passes=2"]
HINGE = ["--model.criterion=structperc.criteria.HingeLoss", "--model.optimizer=structperc.optim.PassiveAggressive"]
TOKENS = [
    {"class_path": "structperc.encoders.WordEmbedding", "init_args": {"width": 8, "cutoff": 1, "word_dropout": 0.2}},
    {"class_path": "structperc.encoders.CharCNN", "init_args": {"width": 4, "characters": 4, "dropout": 0.2}},
]
BILSTM = [f"--model.scorer.encoder.inputs={json.dumps(TOKENS)}", "--model.scorer.encoder.hidden=8"]
FIRST = ["--model.jackknife.folds=2", "--model.jackknife.epochs=3", "--model.jackknife.cache=cache"]
STUDY = """
seeds: [1]
with:
  data: {train: 10, dev: 4, test: 4}
  trainer: {accelerator: cpu, enable_progress_bar: false, enable_model_summary: false, max_epochs: 2}
rows:
  averaged: {configs: [pkg:quickstart]}
  margin: {configs: [pkg:studies/embedded#margin]}
"""


class Kind(NamedTuple):
    """Arguments of the program. Runs of single trainings lie in the folder runs, candidate lists in cache."""

    arguments: list[str]

    def next(self, place: Path) -> list[str]:
        """What a user calls in a folder: a training goes on from its last checkpoint, anything else begins anew."""
        resumable = any(place.glob("runs/*/checkpoints/last.ckpt"))
        return [*self.arguments, "--ckpt_path=last"] if resumable else self.arguments


def trainings(bert: Path) -> dict[str, Kind]:
    """Of taggers, by name; a small BERT is in that folder."""
    encoder = ["--model.scorer.encoder=structperc.encoders.Transformer", f"--model.scorer.encoder.model={bert}"]
    return {
        "perceptron": _kind("fit", "pkg:quickstart", EPOCHS),
        "margin": _kind("fit", "pkg:studies/embedded#margin", [*EPOCHS, *START]),
        "passive-aggressive": _kind("fit", "pkg:quickstart", [*HINGE, *EPOCHS]),
        "CRF": _kind("fit", "pkg:studies/embedded#crf", FULL_BATCH),
        "MCE-F": _kind("fit", "pkg:studies/embedded#mce_f", ["--model.optimizer.first_epochs=2", *FULL_BATCH]),
        "guided": _kind("fit", "pkg:studies/embedded#guided", BATCHES),
        "BiLSTM": _kind("fit", "pkg:studies/embedded#bilstm_crf", [*BILSTM, *BATCHES]),
        "transformer": _kind("fit", "pkg:studies/embedded#bilstm_crf", [*encoder, *BATCHES]),
        "re-ranking 1": _kind("rerank", "pkg:studies/embedded#reranking1", [*FIRST, *EPOCHS]),
        "re-ranking 2": _kind("rerank", "pkg:studies/embedded#reranking2", [*FIRST, *EPOCHS]),
        "boosting": _kind("rerank", "pkg:studies/embedded#boosting", ["--model.ranker.rounds=3", *FIRST, *EPOCHS]),
        "voted": _kind("rerank", "pkg:studies/embedded#voted", [*FIRST, *EPOCHS]),
    }


def series(folder: Path) -> dict[str, Kind]:
    """Of several trainings, by name; a file that describes one of them is written into the folder."""
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    grid = ["--grid=data.batch_size=2,4", "--holdout=3", "--root=sweep"]
    options = [*SIZES, "--data.dev=0", *QUIET, "--trainer.max_epochs=1"]
    return {
        "study": Kind(["study", str(folder / "study.yaml"), "--root=study"]),
        "sweep": Kind(["study", "--config=pkg:quickstart", *grid, *options]),
    }


def _kind(command: str, config: str, options: list[str]) -> Kind:
    return Kind([command, "-c", config, "--trainer.default_root_dir=runs", *SIZES, *QUIET, *options])


# -- what they leave ------------------------------------------------------------------------------------------

MEASURED = {"seconds", "seconds_by_part", "tokens_per_second", "peak_memory_mb"}
TOLD = {"current_score", "epoch_loop.val_loop.batch_progress"}  # of a process's own last validation
TELLS_SECONDS = {"study.md", "study.png"}
CURVES = "curves.png"  # lacks the objective of an epoch that was killed before it was logged
CARD = "README.md"  # of a model, which tells the command that trained it: another one where the run went on


def left(place: Path) -> dict[str, Any]:
    """Name -> content of every file below a folder, but for logs; of those the scores by epoch of finished runs.

    A run that was given up for a later one may have any of the files that a finished one has, and nothing else.
    """
    done = finished_runs(place)
    names = {str(place): "PLACE", **{str(run.relative_to(place)): f"{run.parent.name}/RUN" for run in done}}
    found = {plain(f"{run.relative_to(place)}/scores", names): read_curve(run, "dev/score") for run in done}
    for path in sorted(path for path in place.rglob("*") if path.is_file() and "logs" not in path.parts):
        if not any(_given_up(path, run) for run in done):
            found[plain(str(path.relative_to(place)), names)] = content(path, names)
    return found


def finished_runs(place: Path) -> list[Path]:
    """The finished run among each set of runs below a folder."""
    roots = {run.parent for run in place.rglob("[0-9]*") if (run / "logs").is_dir()}
    return [run for root in sorted(roots) if (run := finished_run(root)) is not None]


def _given_up(path: Path, finished: Path) -> bool:
    """Whether this is a file of another run of the same training, and one that runs have."""
    if not path.is_relative_to(finished.parent):
        return False
    number, *rest = path.relative_to(finished.parent).parts
    return number != finished.name and bool(rest) and finished.joinpath(*rest).exists()


def content(path: Path, names: dict[str, str]) -> Any:
    """To be compared; paths within are spelled by other names."""
    if path.name in (*TELLS_SECONDS, CURVES, CARD):
        return None
    if path.suffix == ".ckpt":
        return plain(torch.load(path, weights_only=True), names)
    if path.name.startswith("fold-"):
        lists, _ = CandidateLists.load(path)
        return {name: getattr(lists, name) for name in TENSORS}
    if path.suffix == ".json" and path.parent.name != "model":
        return plain(json.loads(path.read_text(encoding="utf-8")), names)
    if path.suffix == ".csv":
        with open(path, encoding="utf-8", newline="") as lines:
            return plain(list(csv.DictReader(lines)), names)
    return path.read_bytes()


def plain(value: Any, names: dict[str, str]) -> Any:
    """Nested values without what is measured or only told, and with names for paths."""
    if isinstance(value, dict):
        kept = {key: part for key, part in value.items() if str(key).removesuffix("_sd") not in MEASURED | TOLD}
        return {plain(key, names): plain(part, names) for key, part in kept.items()}
    if isinstance(value, list | tuple):
        return [plain(part, names) for part in value]
    if isinstance(value, str):
        for path, name in names.items():
            value = value.replace(path, name)
    return value


def differences(a: Any, b: Any, where: str = "") -> list[str]:
    """Where two nested values are not the same to the last bit."""
    if isinstance(a, dict) and isinstance(b, dict):
        odd = [f"{where}/{key}: {'missing' if key in a else 'left behind'}" for key in a.keys() ^ b.keys()]
        return odd + [line for key in a.keys() & b.keys() for line in differences(a[key], b[key], f"{where}/{key}")]
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = enumerate(zip(a, b, strict=True))
        return [line for i, (x, y) in pairs for line in differences(x, y, f"{where}/{i}")]
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return [] if a.dtype == b.dtype and torch.equal(a, b) else [f"{where}: other numbers"]
    return [] if type(a) is type(b) and a == b else [f"{where}: {str(a)[:80]} | {str(b)[:80]}"]
