"""The program of re-rankers, which trains first models before the re-ranker, and the table and figure of boosting."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytorch_lightning as pl
from matplotlib.figure import Figure

from structperc.errors import InputError
from structperc.reports.figures import draw_bars, open_frame, plain_log_ticks, write_figure
from structperc.reports.tables import write_csv
from structperc.reranking import Boosting
from structperc.reranking.global_reranker import GlobalReranker
from structperc.reranking.reranker import Reranker
from structperc.taggers.data_requirements import check_processes
from structperc.training.curves import SCORE, read_curve
from structperc.training.program import Program, run

COMMANDS = ("fit", "validate", "test", "predict")
TABLE, FIGURE = "rounds.csv", "rounds.png"
SHOWN = 30  # features whose weights are drawn


class RerankingProgram(Program):
    """The `Program` of a Reranker, or of the re-ranker that the configuration's model.class_path names."""

    prefix = ("rerank",)
    base, default = Reranker, Reranker
    model: Reranker

    def before_fit(self) -> None:
        """Train the first models, with the accelerator and the progress bar of the trainer."""
        check_trainer(self.trainer, self.model)
        options = self.config["trainer"]
        shared = {name: options[name] for name in ("accelerator", "enable_progress_bar")}
        self.first_seconds = self.model.train_first(self.datamodule, **shared)
        super().before_fit()

    def after_fit(self) -> None:
        """Save, score and label as for taggers; for boosting also write all rounds, as a table and a figure."""
        model = self.model
        if not (isinstance(model, GlobalReranker) and isinstance(model.ranker, Boosting)):
            return super().after_fit()
        write_rounds(self.folder, boosting_rounds(model), model.ranker.rounds)
        super().after_fit()  # its last file marks the run as complete
        print(f"rounds: {self.folder / TABLE}, {FIGURE}")
        return None

    def seconds_by_part(self) -> dict[str, float]:
        """Return the seconds of the first models, also of cached ones, and of this run."""
        return {**self.first_seconds, "re-ranker": self.seconds}


def check_trainer(trainer: pl.Trainer, model: Reranker) -> None:
    """Raise InputError for several processes, and for options about gradients if a ranker learns without them."""
    check_processes(model, trainer)
    if model.automatic_optimization:
        return
    if trainer.accumulate_grad_batches > 1:
        raise InputError(
            "trainer.accumulate_grad_batches: rerankers are not trained by gradient descent; remove this option"
        )
    if trainer.gradient_clip_val:
        advice = "remove this option, or set model.jackknife.gradient_clip_val for the first model"
        raise InputError(f"trainer.gradient_clip_val: rerankers are not trained by gradient descent; {advice}")


def rerank(arguments: list[str]) -> None:
    """Run fit, or the command in the first argument, for a re-ranker. Raises InputError for wrong options."""
    run(arguments if arguments[:1] and arguments[0] in COMMANDS else ["fit", *arguments], RerankingProgram)


# -- rounds of boosting --------------------------------------------------------------------------------------


class Round(NamedTuple):
    """One round of boosting: its number from 1, the chosen feature, the step and the loss after it."""

    number: int
    feature: str  # its string
    step: float  # change of its weight
    loss: float  # after the round
    pairs: int  # pairs of a correct and another candidate that differ in the feature


def boosting_rounds(model: GlobalReranker) -> list[Round]:
    """Return the rounds of boosting of a re-ranker. Call this before `finalize` renumbers its strings.

    Args:
        model: A re-ranker whose ranker is `Boosting`, after training.

    Example:
        >>> import pytorch_lightning as pl
        >>> from structperc import FeatureExtractor, Tagger
        >>> from structperc.chain import KBest
        >>> from structperc.criteria import MEMMLoss
        >>> from structperc.datamodules import Synthetic
        >>> from structperc.nonlocal_features import WholeEntity
        >>> from structperc.reranking import JackKnife
        >>> from structperc.scorers import SparseLinear
        >>> first = Tagger(FeatureExtractor(["w[0]"]), SparseLinear(), MEMMLoss())
        >>> plan = JackKnife(folds=2, epochs=1, cache="lists")
        >>> model = GlobalReranker(first, Boosting(rounds=5, w0=1.0), KBest(5), [WholeEntity()], jackknife=plan)
        >>> data, quiet = Synthetic(train=2, dev=0, test=0), dict(logger=False, enable_checkpointing=False)
        >>> _ = model.train_first(data, enable_progress_bar=False)  # doctest: +SKIP
        >>> trainer = pl.Trainer(max_epochs=1, enable_progress_bar=False, enable_model_summary=False, **quiet)
        >>> trainer.fit(model, datamodule=data)  # doctest: +SKIP
        >>> [one.number for one in boosting_rounds(model)]  # doctest: +SKIP
        [1, 2, 3, 4, 5]
    """
    ranker = model.ranker
    assert isinstance(ranker, Boosting)
    names = dict(model.feature_strings(ranker.chosen.unique()))
    columns = (ranker.chosen, ranker.steps, ranker.losses, ranker.touched)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Round(i, names[k], step, loss, pairs) for i, (k, step, loss, pairs) in enumerate(rows, 1)]


def write_rounds(folder: Path, made: Sequence[Round], per_epoch: int) -> None:
    """Write rounds.csv and rounds.png into the folder of a run; its logs have the scores on development data."""
    write_csv(str(folder / TABLE), Round._fields, made)
    write_figure(str(folder / FIGURE), plot_rounds(made, read_curve(folder, SCORE), per_epoch))


def plot_rounds(made: Sequence[Round], scores: Sequence[tuple[float, float]], per_epoch: int) -> Figure:
    """Return a figure of three panels: the loss over rounds, the score over rounds, and the largest weights.

    Args:
        made: The rounds, see `boosting_rounds`.
        scores: (epoch, score on development data), see `read_curve`.
        per_epoch: Maximum number of rounds of an epoch.
    """
    figure = Figure(figsize=(13, 5), layout="constrained")
    loss, dev, bars = figure.subplots(1, 3, width_ratios=(1, 1, 1.4))
    loss.plot([r.number for r in made], [r.loss for r in made], color="tab:blue")
    loss.set(title="Loss", xlabel="round", yscale="log")
    plain_log_ticks(loss.yaxis)
    ends = [min(epoch * per_epoch, len(made)) for epoch, _ in scores]
    dev.plot(ends, [100 * score for _, score in scores], color="tab:orange")
    dev.set(title="Development data", xlabel="round", ylabel="score (%)")
    draw_bars(bars, f"Largest weights of {len(totals(made))}", totals(made)[:SHOWN])
    for ax in (loss, dev):
        open_frame(ax)
    return figure


def totals(made: Sequence[Round]) -> list[tuple[str, float]]:
    """Return the weights of the features after all rounds, the largest first."""
    weights: dict[str, float] = {}
    for r in made:
        weights[r.feature] = weights.get(r.feature, 0.0) + r.step
    return sorted(weights.items(), key=lambda pair: -abs(pair[1]))
