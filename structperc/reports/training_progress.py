"""Progress of a training: one bar over all epochs with the latest metrics, or a log line for each epoch."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from time import perf_counter
from typing import Any

import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint, ProgressBar
from tqdm.auto import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from structperc.progress import bar, bars_are_shown

LOGGER = logging.getLogger("pytorch_lightning")
logger = logging.getLogger("pytorch_lightning.structperc")
LOG_INTERVAL = 60  # seconds between log lines of a long epoch
MIN_BAR_WIDTH = 10  # columns; fields that do not fit beside it are left out
RUNNING = "{desc} |{bar}| {remaining} left{postfix}"
DONE = "{desc} |{bar}| {elapsed}{postfix}"
SHARES = ("dev/", "test/", "train/error")  # logged as 0..1, shown in per cent


def format_metric(name: str, value: float, score: str = "score") -> str:
    """Return a logged value as text: ("dev/score", 0.8285, "F1") becomes "dev F1 82.85".

    The prefix "train/" is left out, as in "objective 33,994". `score` replaces "score".
    """
    plain = name.removeprefix("train/").replace("/", " ").replace("_", " ")
    plain = f"{plain.removesuffix('score')}{score}" if plain.endswith(" score") else plain
    if name.startswith(SHARES):
        return f"{plain} {100 * value:.2f}"
    return f"{plain} {value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{plain} {value:.4g}"


def format_metrics(values: Mapping[str, float], score: str = "score") -> list[str]:
    """Return all logged values as texts, percentages first."""
    names = sorted(values, key=lambda name: not name.startswith(SHARES))
    return [format_metric(name, float(values[name]), score) for name in names]


def score_name(tagger: Any) -> str:
    """Return the name of a tagger's score: "F1", "F0.5", ... of segments, or "accuracy" of labels without segments."""
    labels = getattr(tagger, "labels", None)
    if labels is None:
        return "score"
    return "accuracy" if labels.scheme == "none" else f"F{tagger.beta:g}"


def best_score(checkpoints: ModelCheckpoint, score: str = "score") -> str:
    """Return name and value of the monitored score of the best epoch."""
    assert checkpoints.monitor is not None
    assert checkpoints.best_model_score is not None
    return format_metric(checkpoints.monitor, float(checkpoints.best_model_score), score)


def duration(seconds: float) -> str:
    """Return a time in readable units: 12 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class EvaluationProgress(pl.Callback):
    """Base class of callbacks with the same progress for validation, test and prediction."""

    def advance(self, trainer: pl.Trainer, batch_idx: int) -> None:
        """Show the progress of an evaluation or prediction after a mini-batch."""

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Call `advance`."""
        self.advance(trainer, batch_idx)

    on_test_batch_end = on_predict_batch_end = on_validation_batch_end


class EpochBar(EvaluationProgress, ProgressBar):
    """Progress bar of a whole training: one line on standard error with epoch, remaining time, speed and latest scores.

    The scores, in per cent, are those of the previous epoch. Evaluations of more than two seconds have their own bar. A
    run of `structperc fit` uses it by default; a trainer in Python gets it as a callback.

    Example:
        >>> import pytorch_lightning as pl
        >>> trainer = pl.Trainer(max_epochs=20, callbacks=[EpochBar()], logger=False)
        >>> type(trainer.progress_bar_callback).__name__
        'EpochBar'
    """

    def __init__(self) -> None:
        super().__init__()
        self.is_enabled = True
        self._epochs: tqdm | None = None
        self._evaluation: tqdm | None = None
        self._open = ExitStack()
        self._start, self._sequences, self._speed = 0.0, 0, 0.0
        self._scores: list[str] = []

    def enable(self) -> None:
        """Show bars if standard error is a terminal."""
        self.is_enabled = True

    def disable(self) -> None:
        """Show no bars; the trainer calls this in all processes but the first."""
        self.is_enabled = False

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Open the bar of the training; log messages are printed above it."""
        epochs = _max_epochs(trainer)
        finite = epochs is not None and trainer.num_training_batches != float("inf")
        self._epochs = self._open.enter_context(
            bar(
                total=int((epochs or 0) * trainer.num_training_batches) if finite else None,
                show=self.is_enabled,
                initial=trainer.fit_loop.total_batch_idx + 1 if finite else 0,
                bar_format=RUNNING,
                smoothing=0,  # steps differ in time, as epochs end with an evaluation
                delay=0,
                leave=True,
            )
        )
        if not self._epochs.disable and LOGGER.handlers:
            self._open.enter_context(logging_redirect_tqdm([LOGGER]))
        if trainer.fit_loop.restarted_mid_epoch:  # the trainer calls no hook then
            self.on_train_epoch_start(trainer, pl_module)

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Show the number of the epoch and the scores of the previous one."""
        self._start, self._sequences = perf_counter(), 0
        self._describe(trainer, trainer.current_epoch + 1)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Advance by one mini-batch and update the sequences per second."""
        if self._epochs is None:
            return
        self._sequences += len(batch.lengths)
        self._speed = self._sequences / max(perf_counter() - self._start, 1e-9)
        self._epochs.set_postfix_str(self._postfix(), refresh=False)
        self._epochs.update()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Show the scores of the last epoch, and close the bar but leave its line on the screen."""
        if self._epochs is not None:
            self._epochs.bar_format = DONE
            self._describe(trainer, trainer.current_epoch)
        self._close()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Close all bars, so that the error message begins on a new line."""
        self._close()

    def _describe(self, trainer: pl.Trainer, epoch: int) -> None:
        if self._epochs is None:
            return
        epochs = _max_epochs(trainer)
        self._epochs.set_description_str(f"epoch {epoch}" if epochs is None else f"epoch {epoch}/{epochs}", False)
        self._scores = format_metrics(trainer.progress_bar_metrics, score_name(trainer.lightning_module))
        self._epochs.set_postfix_str(self._postfix())

    def _postfix(self) -> str:
        """Return scores and speed, as far as the width of the bar allows."""
        assert self._epochs is not None
        fields = [*self._scores, *([f"{self._speed:,.0f} sequences/s"] if self._speed else [])]
        columns = self._epochs.format_dict["ncols"]
        if not isinstance(columns, int):  # not a terminal
            return ", ".join(fields)
        free = columns - len(f"{self._epochs.desc} || 0:00:00 left") - MIN_BAR_WIDTH
        return ", ".join(field for n, field in enumerate(fields) if len("".join(fields[: n + 1])) + 2 * n + 2 <= free)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Open the bar of an evaluation or prediction."""
        subject, batches = _evaluation(trainer)
        total = sum(batches)
        self._evaluation = bar(None, subject, None if total == float("inf") else int(total), self.is_enabled)

    def advance(self, trainer: pl.Trainer, batch_idx: int) -> None:
        """Advance the bar of an evaluation or prediction."""
        if self._evaluation is not None:
            self._evaluation.update()

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Close the bar of an evaluation or prediction."""
        self._close_evaluation()

    on_test_start = on_predict_start = on_validation_start
    on_test_end = on_predict_end = on_validation_end

    def _close_evaluation(self) -> None:
        if self._evaluation is not None:
            self._evaluation.close()
            self._evaluation = None

    def _close(self) -> None:
        self._close_evaluation()
        self._open.close()
        self._epochs = None


class EpochLines(EvaluationProgress):
    """Logs a line for each epoch, such as "epoch 3 of 10: dev F1 48.45, objective 3,158, 12 s left".

    Used instead of `EpochBar` if standard error is not a terminal. Epochs and evaluations of more than a minute log a
    line a minute.

    Args:
        subject: prefix of each line, such as the name of the model; "" for the only training of a program.
    """

    def __init__(self, subject: str = "") -> None:
        self.subject = f"{subject}, " if subject else ""
        self._begun = self._last = 0.0
        self._first = 0.0  # epochs of an earlier run
        self._epochs = 0  # logged epochs
        self._validated = False

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clock, and count the epochs of a resumed training."""
        self._begun = self._last = perf_counter()
        self._epochs = trainer.current_epoch
        loop = trainer.fit_loop
        done = loop.epoch_loop.batch_progress.current.completed if loop.restarted_mid_epoch else 0
        self._first = trainer.current_epoch + done / max(trainer.num_training_batches, 1)

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Log the previous epoch, whose values are complete now."""
        self._log_epoch(trainer)
        self._validated = False

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Log the last epoch."""
        self._log_epoch(trainer)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log the progress of a long epoch."""
        part = (batch_idx + 1) / max(trainer.num_training_batches, 1)
        if part < 1 and self._is_due():
            self._log(trainer, trainer.current_epoch + 1, f", {100 * part:.0f} %", trainer.current_epoch + part, [])

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Note that the epoch has its own scores; start the clock of an evaluation without a training."""
        self._validated = not trainer.sanity_checking
        self._last = self._last or perf_counter()

    def advance(self, trainer: pl.Trainer, batch_idx: int) -> None:
        """Log the progress of a long evaluation or prediction."""
        if not trainer.sanity_checking and self._is_due():
            self._last = perf_counter()
            subject, batches = _evaluation(trainer)
            percent = 100 * (batch_idx + 1) / max(sum(batches), 1)
            logger.info("%s%s: %.0f %%", self.subject, subject, percent)

    on_test_start = on_predict_start = on_validation_start

    def _log_epoch(self, trainer: pl.Trainer) -> None:
        epoch = trainer.current_epoch
        if epoch > self._epochs:
            values = trainer.progress_bar_metrics
            kept = {name: value for name, value in values.items() if self._validated or not name.startswith("dev/")}
            tagger = trainer.lightning_module
            fields = [*format_metrics(kept, score_name(tagger)), getattr(tagger, "epoch_summary", "")]
            self._log(trainer, epoch, "", epoch, [*filter(None, fields)])
            self._epochs = epoch

    def _log(self, trainer: pl.Trainer, epoch: int, part: str, done: float, fields: list[str]) -> None:
        epochs = _max_epochs(trainer)
        self._last = perf_counter()
        passed = self._last - self._begun
        if epochs is not None and self._first < done < epochs:
            fields = [*fields, f"{duration(passed / (done - self._first) * (epochs - done))} left"]
        else:
            fields = [*fields, f"{duration(passed)} in all"]
        of = "" if epochs is None else f" of {epochs}"
        logger.info("%sepoch %d%s%s: %s", self.subject, epoch, of, part, ", ".join(fields))

    def _is_due(self) -> bool:
        return perf_counter() - self._last >= LOG_INTERVAL


def _max_epochs(trainer: pl.Trainer) -> int | None:
    return trainer.max_epochs if trainer.max_epochs is not None and trainer.max_epochs > 0 else None


def _evaluation(trainer: pl.Trainer) -> tuple[str, Sequence[float]]:
    """Return the name of the current evaluation, and its number of mini-batches for each data loader."""
    if trainer.testing:
        return "scoring test", trainer.num_test_batches
    if trainer.predicting:
        return "predicting", trainer.num_predict_batches
    return "scoring dev", trainer.num_sanity_val_batches if trainer.sanity_checking else trainer.num_val_batches


def progress_options(wanted: bool | None, callbacks: Iterable[pl.Callback], subject: str = "") -> dict[str, Any]:
    """Return the options of a trainer for its progress: with an `EpochBar`, or `EpochLines` without bars.

    Args:
        wanted: True or False: with or without bars; None: with bars if standard error is a terminal.
        callbacks: Callbacks of the trainer; a progress bar among them is used instead.
        subject: Subject of the lines of `EpochLines`.
    """
    callbacks = [*callbacks]
    if any(isinstance(callback, ProgressBar) for callback in callbacks):
        return {"callbacks": callbacks, "enable_progress_bar": wanted}
    shown = bars_are_shown(wanted)
    return {"callbacks": [*callbacks, EpochBar() if shown else EpochLines(subject)], "enable_progress_bar": shown}
