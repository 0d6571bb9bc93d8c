"""Small trainings, one of each kind."""

import json
from pathlib import Path
from typing import NamedTuple

CONFIGS = Path(__file__).parents[3] / "configs"
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
STUDY = f"""
seeds: [1]
options: {json.dumps([*SIZES, *QUIET, "--trainer.max_epochs=2"])}
rows:
  averaged: {{configs: [{CONFIGS / "quickstart.yaml"}]}}
  margin: {{configs: [{CONFIGS / "embedded/margin.yaml"}]}}
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
        "perceptron": _kind("fit", "quickstart.yaml", EPOCHS),
        "margin": _kind("fit", "embedded/margin.yaml", [*EPOCHS, *START]),
        "passive-aggressive": _kind("fit", "quickstart.yaml", [*HINGE, *EPOCHS]),
        "CRF": _kind("fit", "embedded/crf.yaml", FULL_BATCH),
        "MCE-F": _kind("fit", "embedded/mce_f.yaml", ["--model.optimizer.first_epochs=2", *FULL_BATCH]),
        "guided": _kind("fit", "embedded/guided.yaml", BATCHES),
        "BiLSTM": _kind("fit", "embedded/bilstm_crf.yaml", [*BILSTM, *BATCHES]),
        "transformer": _kind("fit", "embedded/bilstm_crf.yaml", [*encoder, *BATCHES]),
        "re-ranking 1": _kind("rerank", "embedded/reranking1.yaml", [*FIRST, *EPOCHS]),
        "re-ranking 2": _kind("rerank", "embedded/reranking2.yaml", [*FIRST, *EPOCHS]),
        "boosting": _kind("rerank", "embedded/boosting.yaml", ["--model.ranker.rounds=3", *FIRST, *EPOCHS]),
        "voted": _kind("rerank", "embedded/voted.yaml", [*FIRST, *EPOCHS]),
    }


def series(folder: Path) -> dict[str, Kind]:
    """Of several trainings, by name; a file that describes one of them is written into the folder."""
    (folder / "study.yaml").write_text(STUDY, encoding="utf-8")
    grid = ["--grid=data.batch_size=2,4", "--holdout=3", "--root=sweep"]
    options = [*SIZES, "--data.dev=0", *QUIET, "--trainer.max_epochs=1"]
    return {
        "study": Kind(["study", str(folder / "study.yaml"), "--root=study"]),
        "sweep": Kind(["sweep", f"--config={CONFIGS / 'quickstart.yaml'}", *grid, *options]),
    }


def _kind(command: str, config: str, options: list[str]) -> Kind:
    return Kind([command, "-c", str(CONFIGS / config), "--trainer.default_root_dir=runs", *SIZES, *QUIET, *options])
