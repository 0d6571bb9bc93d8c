"""The program of re-rankers: fit trains the first models, then the second one; the rest is that of taggers."""

from structperc.training.program import Program, train
from structperc.training.reranker import Reranker

COMMANDS = ("fit", "validate", "test", "predict")


class RerankingProgram(Program):
    """As `Program`, with a Reranker."""

    model: Reranker

    def before_fit(self) -> None:
        """Train the first models; of the trainer's options they share the accelerator and the progress bar."""
        options = self.config.fit.trainer
        self.first_seconds = self.model.train_first(
            self.datamodule, accelerator=options.accelerator, enable_progress_bar=options.enable_progress_bar
        )
        super().before_fit()

    def spent(self) -> dict[str, float]:
        """Seconds of the first models, whenever they were trained, and of this run."""
        return {**self.first_seconds, "second model": self.seconds}


def rerank(arguments: list[str]) -> int:
    """Runs fit, or the command that the first argument names; mistakes become InputErrors."""
    named = arguments[:1] and arguments[0] in COMMANDS
    return train(arguments if named else ["fit", *arguments], RerankingProgram, Reranker)
