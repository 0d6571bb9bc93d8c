"""The program of re-rankers: fit trains the first models, then the second one; the rest is that of taggers."""

from structperc.rerankers import Boosting
from structperc.training.global_reranker import GlobalReranker
from structperc.training.program import Program, train
from structperc.training.reranker import Reranker
from structperc.training.rounds import FIGURE, TABLE, write_rounds

COMMANDS = ("fit", "validate", "test", "predict")


class RerankingProgram(Program):
    """As `Program`, with a Reranker, or what the configuration's model.class_path names."""

    base = default = Reranker
    model: Reranker

    def before_fit(self) -> None:
        """Train the first models; of the trainer's options they share the accelerator and the progress bar."""
        options = self.config.fit.trainer
        self.first_seconds = self.model.train_first(
            self.datamodule, accelerator=options.accelerator, enable_progress_bar=options.enable_progress_bar
        )
        super().before_fit()

    def after_fit(self) -> None:
        """As of taggers; what boosting did is written before its best epoch is taken."""
        if isinstance(self.model, GlobalReranker) and isinstance(self.model.ranker, Boosting):
            write_rounds(self.folder, self.model)
            print(f"rounds: {self.folder / TABLE}, {FIGURE}")
        super().after_fit()

    def spent(self) -> dict[str, float]:
        """Seconds of the first models, whenever they were trained, and of this run."""
        return {**self.first_seconds, "second model": self.seconds}


def rerank(arguments: list[str]) -> int:
    """Runs fit, or the command that the first argument names; mistakes become InputErrors."""
    named = arguments[:1] and arguments[0] in COMMANDS
    return train(arguments if named else ["fit", *arguments], RerankingProgram)
