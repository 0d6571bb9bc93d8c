"""A training that is built and not run, to find mistakes before a long series of trainings begins."""

from pathlib import Path

import torch
from pytorch_lightning.utilities.seed import isolate_rng

from structperc.training.lightning_messages import quiet
from structperc.training.program import Program, run
from structperc.training.reranking_program import RerankingProgram
from structperc.training.run_folders import next_run


class DryRun(Program):
    """Reads options and configuration and builds the objects they name; nothing runs and nothing is written."""

    def claim(self, resumed: Path | None) -> Path:
        """Return the folder that a run would have; it is not made."""
        return next_run(self.root)

    def _run_subcommand(self, subcommand: str) -> None:
        pass


class RerankingDryRun(DryRun, RerankingProgram):
    """Reads and builds the parts of a re-ranker, as Draft does those of a tagger.

    Nothing runs and nothing is written.
    """


DRY_RUNS: dict[str, type[Program]] = {"fit": DryRun, "rerank": RerankingDryRun}


def dry_run(arguments: list[str], command: str = "fit") -> Program:
    """Return the program that `structperc fit` (or rerank) with these arguments would be.

    Raises InputError as `train`.
    """
    with isolate_rng(include_cuda=torch.cuda.is_initialized()), quiet():
        return run(["fit", *arguments], DRY_RUNS[command])
