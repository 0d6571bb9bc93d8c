"""When perceptron training ends."""

from typing import Any

import pytorch_lightning as pl

from structperc.errors import InputError


class StopWhenSettled(pl.Callback):
    """Stops when the training labelling error has settled; Kazama & Torisawa 2007, §6.1.

    The per-word error on the training data is measured during each epoch with the weights of the moment.
    Training stops once its relative change from epoch to epoch stays below `threshold` for `patience`
    epochs in a row (the paper: 0.0001 and 3). An error of zero that stays zero has settled.
    """

    def __init__(self, threshold: float = 1e-4, patience: int = 3) -> None:
        if threshold < 0 or patience < 1:
            raise InputError(f"StopWhenSettled: threshold >= 0 and patience >= 1 needed, got {threshold}, {patience}")
        self.threshold, self.patience = threshold, patience
        self.previous: float | None = None
        self.settled = 0

    def observe(self, error: float) -> bool:
        """Takes the error of one epoch; True when training should stop."""
        change = float("inf") if self.previous is None else abs(error - self.previous)
        self.settled = self.settled + 1 if change < self.threshold * (self.previous or 0) or change == 0 else 0
        self.previous = error
        return self.settled >= self.patience

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stops the trainer when the rule says so."""
        if self.observe(pl_module.training_error()):  # type: ignore[operator]
            trainer.should_stop = True

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs to go on counting."""
        return {"previous": self.previous, "settled": self.settled}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on counting."""
        self.previous, self.settled = state_dict["previous"], state_dict["settled"]
