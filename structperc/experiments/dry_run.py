"""A training that is built and not run, to find mistakes before a long series of trainings begins."""

import logging
from collections.abc import Sequence

import torch
from pytorch_lightning.utilities.seed import isolate_rng

from structperc.training.lightning_messages import LOGGERS, at_level, input_errors
from structperc.training.program import Program
from structperc.training.reranking import RerankingProgram
from structperc.training.run_folders import next_run


def dry_run(arguments: Sequence[str], command: str = "fit") -> Program:
    """Return the program of `structperc fit` (or rerank) with these arguments, with its model, data and trainer.

    Nothing is run or written. Raises InputError for mistakes in options and configurations.
    """
    kind = RerankingProgram if command == "rerank" else Program
    with isolate_rng(include_cuda=torch.cuda.is_initialized()), at_level(logging.WARNING, LOGGERS), input_errors():
        program = kind(["fit", *arguments])
        program.build(next_run(program.root))
        return program
