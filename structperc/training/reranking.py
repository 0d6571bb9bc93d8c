"""The program of re-rankers: fit trains the first models, then the second one; the rest is as for taggers."""

import pytorch_lightning as pl

from structperc.errors import InputError
from structperc.reranking import Boosting
from structperc.reranking.global_reranker import GlobalReranker
from structperc.reranking.reranker import Reranker
from structperc.training.boosting_rounds import FIGURE, TABLE, boosting_rounds, write_rounds
from structperc.training.program import Program, run

COMMANDS = ("fit", "validate", "test", "predict")


class RerankingProgram(Program):
    """The `Program` of a Reranker, or of the re-ranker that the configuration's model.class_path names."""

    prefix = ("rerank",)
    base, default = Reranker | GlobalReranker, Reranker
    model: Reranker | GlobalReranker

    def before_fit(self) -> None:
        """Train the first models; of the trainer's options they share the accelerator and the progress bar."""
        check_trainer(self.trainer, self.model)
        options = self.config["trainer"]
        shared = {name: options[name] for name in ("accelerator", "enable_progress_bar")}
        self.first_seconds = self.model.train_first(self.datamodule, **shared)
        super().before_fit()

    def after_fit(self) -> None:
        """Save, score and label as for taggers.

        For boosting also write its rounds, those after the best epoch included.
        """
        model = self.model
        if not (isinstance(model, GlobalReranker) and isinstance(model.ranker, Boosting)):
            return super().after_fit()
        write_rounds(self.folder, boosting_rounds(model), model.ranker.rounds)
        super().after_fit()  # which ends with what says that the run is complete
        print(f"rounds: {self.folder / TABLE}, {FIGURE}")
        return None

    def spent(self) -> dict[str, float]:
        """Return the seconds of the first models, whenever they were trained, and of this run."""
        return {**self.first_seconds, "re-ranker": self.seconds}


def check_trainer(trainer: pl.Trainer, model: Reranker | GlobalReranker) -> None:
    """Raise InputError for several processes, and for options about gradients where a ranker learns without them."""
    model.check_processes(trainer)
    if model.automatic_optimization:
        return
    if trainer.accumulate_grad_batches > 1:
        raise InputError("trainer.accumulate_grad_batches: a ranker learns without gradients; leave it out")
    if trainer.gradient_clip_val:
        advice = "leave it out, or set model.jackknife.gradient_clip_val for the first model"
        raise InputError(f"trainer.gradient_clip_val: a ranker learns without gradients; {advice}")


def rerank(arguments: list[str]) -> None:
    """Run fit, or the command that the first argument names, for a re-ranker. Mistakes become InputErrors."""
    named = arguments[:1] and arguments[0] in COMMANDS
    run(arguments if named else ["fit", *arguments], RerankingProgram)
