"""What fit would train, built and not trained: to find mistakes before a long series of trainings begins."""

from pathlib import Path

import torch
from pytorch_lightning.utilities.seed import isolate_rng

from structperc.training.notices import quiet
from structperc.training.program import Program, run
from structperc.training.reranking_program import RerankingProgram
from structperc.training.runs import next_run


class Draft(Program):
    """Reads options and configuration and builds the objects they name; nothing runs and nothing is written."""

    def claim(self, resumed: Path | None) -> Path:
        """A folder that is not made."""
        return next_run(self.root)

    def _run_subcommand(self, subcommand: str) -> None:
        pass


class RerankingDraft(Draft, RerankingProgram):
    """The same of a program of re-rankers."""


DRAFTS: dict[str, type[Program]] = {"fit": Draft, "rerank": RerankingDraft}


def draft(arguments: list[str], command: str = "fit") -> Program:
    """The program that `structperc fit`, or rerank, with these arguments would be; InputError as of `train`."""
    with isolate_rng(include_cuda=torch.cuda.is_initialized()), quiet():
        return run(["fit", *arguments], DRAFTS[command])
