"""The progress bar of a trainer: one line for all epochs, with what was measured last."""

import logging
from collections.abc import Iterable
from contextlib import ExitStack
from time import perf_counter
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ProgressBar
from tqdm.auto import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from structperc.progress import bar
from structperc.reports.logged import all_shown

LOGGER = logging.getLogger("pytorch_lightning")
RUNNING = "{desc} |{bar}| {remaining} left{postfix}"
DONE = "{desc} |{bar}| {elapsed}{postfix}"


class EpochBar(ProgressBar):
    """One line on standard error for a whole training: the epoch, the time that is left, speed, the last scores.

    Scores are in per cent, and those of the epoch before while one is under way; the speed is its own. What else takes
    more than two seconds (development data after an epoch, test, predict) has a bar of its own for that time.
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_enabled = True
        self._epochs: tqdm | None = None
        self._look: tqdm | None = None
        self._open = ExitStack()
        self._start, self._sequences, self._speed = 0.0, 0, 0.0
        self._scores = ""

    def enable(self) -> None:
        """Let bars be shown; standard error must still be a terminal that shows them."""
        self.is_enabled = True

    def disable(self) -> None:
        """Let no bar be shown; the trainer asks this of processes other than the first."""
        self.is_enabled = False

    # -- training --------------------------------------------------------------------------------------------

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Open the bar of the training; messages of the program are printed above it from here on."""
        batches, epochs = trainer.num_training_batches, trainer.max_epochs
        finite = epochs is not None and epochs > 0 and batches != float("inf")
        self._epochs = self._open.enter_context(
            bar(
                total=int(epochs * batches) if finite else None,  # type: ignore[operator]
                show=self.is_enabled,
                initial=trainer.fit_loop.total_batch_idx + 1 if finite else 0,
                bar_format=RUNNING,
                smoothing=0,  # epochs end with development data, so that steps are no measure of each other
                delay=0,
                leave=True,
            )
        )
        if not self._epochs.disable and LOGGER.handlers:
            self._open.enter_context(logging_redirect_tqdm([LOGGER]))
        if trainer.fit_loop.restarted_mid_epoch:
            self.on_train_epoch_start(trainer, pl_module)  # which the trainer does not call then

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Show the number of the epoch that begins, and the scores of the one before it."""
        self._start, self._sequences = perf_counter(), 0
        self._say(trainer, trainer.current_epoch + 1)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Move the bar of the training on by one mini-batch, and show how many sequences a second are learned."""
        if self._epochs is None:
            return
        self._sequences += len(batch.lengths)
        self._speed = self._sequences / max(perf_counter() - self._start, 1e-9)
        self._epochs.set_postfix_str(self._postfix(), refresh=False)
        self._epochs.update()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Show the scores of the last epoch, and close the bar so that its last line stays on the screen."""
        if self._epochs is not None:
            self._epochs.bar_format = DONE
            self._say(trainer, trainer.current_epoch)
        self._close()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Close all bars, so that the message about the exception begins on a line of its own."""
        self._close()

    def _say(self, trainer: pl.Trainer, epoch: int) -> None:
        if self._epochs is None:
            return
        of = f"/{trainer.max_epochs}" if trainer.max_epochs is not None and trainer.max_epochs > 0 else ""
        self._epochs.set_description_str(f"epoch {epoch}{of}", refresh=False)
        self._scores = all_shown(trainer.progress_bar_metrics)
        self._epochs.set_postfix_str(self._postfix())

    def _postfix(self) -> str:
        speed = f", {self._speed:,.0f} sequences/s" if self._speed else ""
        return (self._scores + speed).removeprefix(", ")

    # -- validation, test, predict ---------------------------------------------------------------------------

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Open a bar for the development data, also where they are evaluated within a training."""
        self._begin(trainer.num_val_batches, "validating")

    def on_test_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Open a bar for the test data."""
        self._begin(trainer.num_test_batches, "testing")

    def on_predict_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Open a bar for the data that are labelled."""
        self._begin(trainer.num_predict_batches, "predicting")

    def on_validation_batch_end(self, *args: Any) -> None:
        """Move the bar of the evaluation on by one mini-batch."""
        if self._look is not None:
            self._look.update()

    def on_test_batch_end(self, *args: Any) -> None:
        """Move the bar of the test on by one mini-batch."""
        self.on_validation_batch_end()

    def on_predict_batch_end(self, *args: Any) -> None:
        """Move the bar of the prediction on by one mini-batch."""
        self.on_validation_batch_end()

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Close the bar of the evaluation; test and prediction end in the same way."""
        if self._look is not None:
            self._look.close()
            self._look = None

    on_test_end = on_predict_end = on_validation_end

    def _begin(self, batches: Iterable[float], what: str) -> None:
        total = sum(batches)
        self._look = bar(None, what, None if total == float("inf") else int(total), self.is_enabled)

    def _close(self) -> None:
        if self._look is not None:
            self._look.close()
        self._open.close()
        self._epochs = self._look = None


def epoch_bars(wanted: bool | None, callbacks: Iterable[pl.Callback]) -> list[pl.Callback]:
    """Return [EpochBar()], or an empty list if no bar is wanted or one of the callbacks is a progress bar already."""
    if wanted is False or any(isinstance(callback, ProgressBar) for callback in callbacks):
        return []
    return [EpochBar()]
