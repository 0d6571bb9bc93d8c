"""The commands fit, validate, test, predict and rerank, which do what a configuration says."""

from functools import partial

from structperc.commands.command import Command
from structperc.commands.importing import importing
from structperc.errors import InputError


def run(command: str, arguments: list[str]) -> None:
    """Run fit, validate, test or predict for the tagger of a configuration."""
    _check(command, arguments)
    with importing():
        from structperc.training.program import train

    train([command, *arguments])


def _check(command: str, arguments: list[str]) -> None:
    if not arguments:
        first = "structperc init train.txt -o own.yaml && structperc fit -c own.yaml"
        raise InputError(f"{command}: no configuration is given; to start from a file of columns: {first}")


def run_reranking(arguments: list[str]) -> None:
    """Run fit, or another of these commands, for the re-ranker of a configuration."""
    _check("rerank", arguments)
    with importing():
        from structperc.training.reranking_program import rerank

    rerank(arguments)


FIT = Command("fit", "-c FILE", "train, print scores, save the model", partial(run, "fit"))
VALIDATE = Command("validate", "-c FILE --ckpt_path F", "scores on the development split", partial(run, "validate"))
TEST = Command("test", "-c FILE --ckpt_path F", "scores on the test split", partial(run, "test"))
PREDICT = Command("predict", "-c FILE --ckpt_path F", "write predicted labels as columns", partial(run, "predict"))
RERANK = Command("rerank", "-c FILE", "jack-knife first models, train a re-ranker", run_reranking)
