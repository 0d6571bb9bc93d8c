"""Lightning checkpoints: raw weights and optimizer states in files, evaluation weights in loaded taggers."""

import io
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning.plugins.io import TorchCheckpointIO

from structperc.data.output import open_atomic, write_errors
from structperc.errors import InputError
from structperc.optim.perceptron import lazy_average

ENTRIES = {  # entries of every checkpoint and their types
    "epoch": int,
    "global_step": int,
    "state_dict": dict,
    "loops": dict,
    "callbacks": dict,
    "optimizer_states": list,
    "vocabulary": dict,
}


class CheckpointStorage(TorchCheckpointIO):
    """The checkpoint files of a trainer: written whole or not at all, and read by `read_checkpoint`."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        """Write a checkpoint. Raises InputError with the reason if it cannot be written; an older file stays."""
        content = io.BytesIO()  # torch gives no reason when it cannot write to a file
        torch.save(checkpoint, content)
        with write_errors(path):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        with open_atomic(path) as file:
            file.write(content.getbuffer())

    def load_checkpoint(self, path: str | Path, map_location: Any = None, weights_only: Any = None) -> dict[str, Any]:
        """Read a checkpoint onto the CPU; the trainer copies tensors to its device."""
        return read_checkpoint(path)


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
        if not isinstance(saved, dict) or not isinstance(saved.get(name), kind):
            raise InputError(f"{path}: not a checkpoint of structperc (it has no {name!r}); use one that fit wrote")
    for name, tensor in saved["state_dict"].items():
        if not isinstance(tensor, torch.Tensor) or not torch.isfinite(tensor).all():
            raise InputError(f"{path}: {name} holds NaN or infinite numbers; use another checkpoint, or train again")
    return saved


def load_weights(tagger: Any, vocabulary: dict[str, Any], path: str | Path) -> int:
    """Load the evaluation weights of a checkpoint (raw ones, if there are no others) into a tagger.

    Args:
        tagger: The tagger.
        vocabulary: Its vocabulary, see `check_vocabulary`.
        path: The checkpoint.

    Returns:
        The epoch, from 1, in which the checkpoint was written.
    """
    saved = read_checkpoint(path)
    check_vocabulary(saved, vocabulary)
    replace_raw_weights(saved, tagger.optimized_names())
    tagger.load_state_dict(saved["state_dict"])
    return saved["epoch"] + 1


def check_vocabulary(checkpoint: dict[str, Any], expected: dict[str, Any]) -> None:
    """Raise InputError if the checkpoint's weights belong to other labels or features."""
    saved = checkpoint.get("vocabulary", {})
    for what in expected:
        if saved.get(what) != expected[what]:
            raise InputError(
                f"the checkpoint has {what} {saved.get(what)}, this training has {expected[what]}: "
                "use the same configuration and data"
            )


def replace_raw_weights(checkpoint: dict[str, Any], names: list[str]) -> None:
    """Replace the raw weights of a checkpoint, in place, by the evaluation weights of its optimizer states.

    These are the entry `best` or `average` of a state, or the average of its `sums`.

    Args:
        checkpoint: Content of the checkpoint.
        names: Names of the parameters, in the order in which the optimizers received them.
    """
    weights = checkpoint["state_dict"]
    for optimizer in checkpoint.get("optimizer_states", []):
        for group in optimizer["param_groups"]:
            for key in group["params"]:
                state = optimizer["state"].get(key, {})
                kept = state.get("best", state.get("average"))
                if kept is not None:
                    weights[names[key]] = kept
                elif "sums" in state and group["steps"]:
                    weights[names[key]] = lazy_average(weights[names[key]], state["sums"], group["steps"])
