"""Numbers that are logged during training, written as people read them.

Progress of a training: a bar over all epochs with the latest measurements, or a log line for each epoch.
"""

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

SHARES = ("dev/", "test/", "train/error")  # logged as 0..1, shown in per cent


def format_metric(name: str, value: float, score: str = "score") -> str:
    """Return a logged value as text: ("dev/score", 0.8285, "F1") becomes "dev F1 82.85".

    Of names that begin with "train/" only the rest is shown, as in "objective 33,994". `score` is what "score" is.
    """
    plain = name.removeprefix("train/").replace("/", " ").replace("_", " ")
    plain = f"{plain.removesuffix('score')}{score}" if plain.endswith(" score") else plain
    if name.startswith(SHARES):
        return f"{plain} {100 * value:.2f}"
    return f"{plain} {value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{plain} {value:.4g}"


def format_metrics(values: Mapping[str, float], score: str = "score") -> list[str]:
    """Return all logged values as texts, in the order of their importance: shares of 100 % first."""
    names = sorted(values, key=lambda name: not name.startswith(SHARES))
    return [format_metric(name, float(values[name]), score) for name in names]


def score_name(tagger: Any) -> str:
    """Return what the score of a tagger is: "F1", "F0.5", ... of segments, "accuracy" of labels without segments."""
    labels = getattr(tagger, "labels", None)
    if labels is None:
        return "score"
    return "accuracy" if labels.scheme == "none" else f"F{tagger.beta:g}"


def best_score(checkpoints: ModelCheckpoint, score: str = "score") -> str:
    """Return the name and the value of the score by which the best epoch was chosen."""
    assert checkpoints.monitor is not None
    assert checkpoints.best_model_score is not None
    return format_metric(checkpoints.monitor, float(checkpoints.best_model_score), score)


def duration(seconds: float) -> str:
    """Return a time as people read it: 12 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


LOGGER = logging.getLogger("pytorch_lightning")
logger = logging.getLogger("pytorch_lightning.structperc")
EVERY = 60  # seconds after which a long epoch has another line in the log
NARROWEST = 10  # columns of a bar, beside which only as much is written as there is room for
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
        self._scores: list[str] = []

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
        self._scores = format_metrics(trainer.progress_bar_metrics, score_name(trainer.lightning_module))
        self._epochs.set_postfix_str(self._postfix())

    def _postfix(self) -> str:
        """Scores and speed, as many of them as leave the bar its width."""
        assert self._epochs is not None
        fields = [*self._scores, *([f"{self._speed:,.0f} sequences/s"] if self._speed else [])]
        columns = self._epochs.format_dict["ncols"]
        if not isinstance(columns, int):  # what is no terminal has no width
            return ", ".join(fields)
        room = columns - len(f"{self._epochs.desc} || 0:00:00 left") - NARROWEST
        return ", ".join(field for n, field in enumerate(fields) if _length(fields[: n + 1]) <= room)

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


def _length(fields: Sequence[str]) -> int:
    """Columns of fields, each after a comma and a space."""
    return sum(len(field) + 2 for field in fields)


class EpochLines(pl.Callback):
    """Logs a line for each epoch, such as "epoch 3 of 10: dev F1 48.45, objective 3,158, 12 s left".

    It has the place of `EpochBar` where no bar is shown. Epochs and evaluations of more than a minute have a line a
    minute.

    Args:
        what: what is trained, which begins each line; "" for the only training of a program.
    """

    def __init__(self, what: str = "") -> None:
        self.what = f"{what}, " if what else ""
        self._begun = self._last = 0.0
        self._first = 0.0  # epochs that were done before
        self._epochs = 0  # that have a line
        self._validated = False

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clock; a training that goes on has epochs before."""
        self._begun = self._last = perf_counter()
        self._epochs = trainer.current_epoch
        within = trainer.fit_loop.epoch_loop.batch_progress.current.completed if self._is_cut(trainer) else 0
        self._first = trainer.current_epoch + within / _batches(trainer)

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Log the epoch before, all of whose values are known now."""
        self._close_epoch(trainer)
        self._validated = False

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Log the last epoch."""
        self._close_epoch(trainer)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Log how far a long epoch is."""
        part = (batch_idx + 1) / _batches(trainer)
        if part < 1 and self._is_due():
            self._log(trainer, trainer.current_epoch + 1, f", {100 * part:.0f} %", trainer.current_epoch + part, [])

    def on_validation_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int, *_: Any
    ) -> None:
        """Log how far a long evaluation is."""
        if not trainer.sanity_checking:
            self._evaluating("scoring dev", batch_idx, trainer.num_val_batches)

    def on_test_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int, *_: Any
    ) -> None:
        """Log how far a long test is."""
        self._evaluating("scoring test", batch_idx, trainer.num_test_batches)

    def on_predict_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int, *_: Any
    ) -> None:
        """Log how far a long prediction is."""
        self._evaluating("predicting", batch_idx, trainer.num_predict_batches)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Note that the epoch has scores of its own; evaluations start the clock where nothing is trained."""
        self._validated = not trainer.sanity_checking
        self._last = self._last or perf_counter()

    def on_test_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the clock."""
        self._last = perf_counter()

    on_predict_start = on_test_start

    @staticmethod
    def _is_cut(trainer: pl.Trainer) -> bool:
        return bool(trainer.fit_loop.restarted_mid_epoch)

    def _close_epoch(self, trainer: pl.Trainer) -> None:
        epoch = trainer.current_epoch
        if epoch > self._epochs:
            values = trainer.progress_bar_metrics
            kept = {name: value for name, value in values.items() if self._validated or not name.startswith("dev/")}
            tagger = trainer.lightning_module
            fields = [*format_metrics(kept, score_name(tagger)), getattr(tagger, "epoch_summary", "")]
            self._log(trainer, epoch, "", epoch, [*filter(None, fields)])
            self._epochs = epoch

    def _log(self, trainer: pl.Trainer, epoch: int, part: str, done: float, fields: list[str]) -> None:
        epochs = trainer.max_epochs if trainer.max_epochs is not None and trainer.max_epochs > 0 else None
        self._last = perf_counter()
        if epochs is not None and self._first < done < epochs:
            seconds = (self._last - self._begun) / (done - self._first) * (epochs - done)
            fields = [*fields, f"{duration(seconds)} left"]
        else:
            fields = [*fields, f"{duration(self._last - self._begun)} in all"]
        of = "" if epochs is None else f" of {epochs}"
        logger.info("%sepoch %d%s%s: %s", self.what, epoch, of, part, ", ".join(fields))

    def _evaluating(self, what: str, batch_idx: int, batches: Sequence[float]) -> None:
        if self._is_due():
            self._last = perf_counter()
            part = (batch_idx + 1) / max(sum(batches), 1)
            logger.info("%s%s: %s", self.what, what, f"{100 * part:.0f} %")

    def _is_due(self) -> bool:
        return perf_counter() - self._last >= EVERY


def _batches(trainer: pl.Trainer) -> float:
    return max(trainer.num_training_batches, 1)


def progress_options(wanted: bool | None, callbacks: Iterable[pl.Callback], what: str = "") -> dict[str, Any]:
    """Return the options of a trainer that show how far it is: an `EpochBar`, or `EpochLines` where no bar is shown.

    Args:
        wanted: whether bars are shown; None: where standard error is a terminal.
        callbacks: of the trainer; one of them that is a progress bar has the place of ours.
        what: of `EpochLines`.
    """
    callbacks = [*callbacks]
    if any(isinstance(callback, ProgressBar) for callback in callbacks):
        return {"callbacks": callbacks, "enable_progress_bar": wanted}
    shown = bars_are_shown(wanted)
    return {"callbacks": [*callbacks, EpochBar() if shown else EpochLines(what)], "enable_progress_bar": shown}
