"""Lightning checkpoints: files that hold the whole model, and the states of its training."""

import json
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch

from structperc.errors import InputError
from structperc.models.model_format import FORMAT
from structperc.models.saving import CRITERION

MODEL = "model"  # the configuration of the model, as JSON, and the arrays of its features, as in a saved model
CONFIG, ARRAYS = "config", "arrays"
ENTRIES = {  # entries of every checkpoint and their types
    "epoch": int,
    "global_step": int,
    "state_dict": dict,
    "loops": dict,
    "vocabulary": dict,
    MODEL: dict,
}
EARLIER = "the checkpoint was written by an earlier version, whose weights differ; train again"


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Return the content of a checkpoint: tensors and plain values. Reading it runs no code.

    Args:
        path: File that a trainer wrote.

    Raises:
        InputError: The file is missing or damaged, is of another program, or contains other values.

    Example:
        >>> import pytorch_lightning as pl
        >>> from structperc import FeatureExtractor
        >>> from structperc.chain import KBest
        >>> from structperc.criteria import PerceptronLoss
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.scorers import SparseLinear
        >>> from structperc.taggers import Tagger
        >>> tagger = Tagger(FeatureExtractor(["w[0]"]), SparseLinear(), PerceptronLoss(), KBest(1))
        >>> trainer = pl.Trainer(max_epochs=2, logger=False, enable_progress_bar=False, enable_model_summary=False)
        >>> trainer.fit(tagger, datamodule=Synthetic(train=2, dev=0, test=0))
        >>> trainer.save_checkpoint("last.ckpt")
        >>> read_checkpoint("last.ckpt")["epoch"]  # completed epochs
        2
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # about pickles that other programs write
            saved = torch.load(path, map_location="cpu", weights_only=True)
        with zipfile.ZipFile(path) as parts:  # torch writes checksums and does not verify them
            damaged = parts.testzip()
    except OSError as error:
        raise InputError(f"{path}: cannot read this checkpoint ({error.strerror or error})") from None
    except Exception as error:  # damaged or hostile files raise any exception
        code = re.search("unsupported (global|class)", str(error), re.IGNORECASE)
        what = "contains code, not only tensors and plain values" if code else "not a readable checkpoint"
        raise InputError(f"{path}: {what} ({type(error).__name__}); use another checkpoint, or train again") from None
    if damaged is not None:
        raise InputError(
            f"{path}: damaged (the checksum of {damaged} is wrong); use another checkpoint, or train again"
        )
    for name, kind in ENTRIES.items():
        if isinstance(saved, dict) and MODEL not in saved and "vocabulary" in saved:
            raise InputError(f"{path}: {EARLIER}")
        if not isinstance(saved, dict) or not isinstance(saved.get(name), kind):
            raise InputError(f"{path}: not a checkpoint of structperc (it has no {name!r}); use one that fit wrote")
    for name, tensor in saved["state_dict"].items():
        if not isinstance(tensor, torch.Tensor) or not torch.isfinite(tensor).all():
            raise InputError(f"{path}: {name} holds NaN or infinite numbers; use another checkpoint, or train again")
    return saved


def load_weights(tagger: Any, path: str | Path) -> int:
    """Load the weights of a checkpoint of the same vocabulary into a tagger; return its epoch, from 1."""
    saved = read_checkpoint(path)
    check_vocabulary(saved, tagger.vocabulary())
    tagger.load_state_dict(saved["state_dict"])
    return saved["epoch"] + 1


def read_model(path: str | Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """Return the model of a checkpoint as `models.saving.read_folder` does: its configuration and its tensors.

    Raises InputError as `read_checkpoint` does, and for a model of another format.
    """
    saved = read_checkpoint(path)
    try:
        config, arrays = json.loads(saved[MODEL][CONFIG]), saved[MODEL][ARRAYS]
    except (KeyError, TypeError, ValueError, RecursionError):
        config, arrays = None, None
    if not isinstance(config, dict) or not isinstance(arrays, dict):
        raise InputError(f"{path}: the entry {MODEL!r} is damaged; use another checkpoint, or train again")
    if config.get("format") != FORMAT:
        number = config.get("format")
        raise InputError(f"{path}: its model has format {number}, this version reads {FORMAT}: train the model again")
    weights = {name: tensor for name, tensor in saved["state_dict"].items() if not name.startswith(CRITERION)}
    return config, {**weights, **arrays}


def check_resumable(checkpoint: dict[str, Any]) -> None:
    """Raise InputError for a checkpoint without the states of its training."""
    if "optimizer_states" not in checkpoint:
        raise InputError(
            "the checkpoint has only weights and cannot be resumed: use one that was saved with save_weights_only "
            "False, or start a training from its model"
        )


def check_vocabulary(checkpoint: dict[str, Any], expected: dict[str, Any]) -> None:
    """Raise InputError if the checkpoint's weights belong to other labels or features."""
    if MODEL not in checkpoint:
        raise InputError(EARLIER)
    saved = checkpoint.get("vocabulary", {})
    for what in expected:
        if saved.get(what) != expected[what]:
            raise InputError(
                f"the checkpoint has {what} {saved.get(what)}, this training has {expected[what]}: "
                "use the same configuration and data"
            )
