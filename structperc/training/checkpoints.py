"""Lightning checkpoints: raw weights and the state of optimizers inside, the weights that they serve out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from structperc.errors import InputError
from structperc.optim.averaged import lazy_average

if TYPE_CHECKING:
    from structperc.training.sequence_tagger import SequenceTagger


def load_weights(tagger: "SequenceTagger", path: str | Path) -> None:
    """Put the weights that a checkpoint's optimizer serves (raw ones, if it knows no others) into the tagger."""
    saved = torch.load(path, map_location="cpu", weights_only=True)
    check_vocabulary(saved, tagger.vocabulary())
    serve(saved, [name for name, _ in tagger.named_parameters()])
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


def serve(checkpoint: dict[str, Any], names: list[str]) -> None:
    """Replace the raw weights of a checkpoint, in place, by those that its optimizer states serve.

    These are the average where a state holds `sums`, and where it holds `best` that.

    `names`: the parameters' names in the order in which the optimizers received them.
    """
    weights = checkpoint["state_dict"]
    for optimizer in checkpoint.get("optimizer_states", []):
        for group in optimizer["param_groups"]:
            for key in group["params"]:
                state = optimizer["state"].get(key, {})
                if "best" in state:
                    weights[names[key]] = state["best"]
                elif "sums" in state and group["steps"]:
                    weights[names[key]] = lazy_average(weights[names[key]], state["sums"], group["steps"])
