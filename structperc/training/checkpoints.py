"""Lightning checkpoints: raw weights and sums inside, averages out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from structperc.errors import InputError
from structperc.optim.averaged import lazy_average

if TYPE_CHECKING:
    from structperc.training.tagger import Tagger


def load_weights(tagger: "Tagger", path: str | Path) -> None:
    """Put a checkpoint's averaged weights (raw ones, if its optimizer keeps no average) into the tagger."""
    saved = torch.load(path, map_location="cpu", weights_only=True)
    check_vocabulary(saved, tagger.vocabulary())
    average(saved, [name for name, _ in tagger.named_parameters()])
    tagger.load_state_dict(saved["state_dict"])


def check_vocabulary(checkpoint: dict[str, Any], own: dict[str, Any]) -> None:
    """InputError when the checkpoint's weights belong to other labels or features."""
    saved = checkpoint.get("vocabulary", {})
    for what in own:
        if saved.get(what) != own[what]:
            raise InputError(
                f"checkpoint was trained with {what} {saved.get(what)}, this data gives {own[what]}: "
                "use the configuration and data it was trained with"
            )


def average(checkpoint: dict[str, Any], names: list[str]) -> None:
    """Replace the raw weights of a checkpoint by the averages that its optimizer states hold, in place.

    `names`: the parameters' names in the order in which the optimizers received them.
    """
    weights = checkpoint["state_dict"]
    for optimizer in checkpoint.get("optimizer_states", []):
        for group in optimizer["param_groups"]:
            for key in group["params"]:
                sums = optimizer["state"].get(key, {}).get("sums")
                if sums is not None and group["steps"]:
                    weights[names[key]] = lazy_average(weights[names[key]], sums, group["steps"])
