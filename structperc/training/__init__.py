"""What trains: the programs fit, validate, test, predict and rerank, their run folders and callbacks.

program.py, reranking_program.py           the programs; attended.py: a program that ends with its parent
configuration.py, trainer_options.py       options and configurations
refusals.py, parser_messages.py            what is wrong with them, in one line
runs.py, claims.py                         folders of runs, and who trains in one
interruptions.py                           by which command an interrupted training goes on
logs.py, epochs.py, cost.py, rounds.py     what is written during training
trackers.py                                what other loggers are told
last_good.py, stopping.py, opening.py      the last good weights, the end of a training, its beginning
notices.py                                 what Lightning says to programmers alone
serving.py                                 the weights that it ends with
report.py, predictions.py, run_card.py     what is written at the end
"""

from typing import TYPE_CHECKING

from structperc.lazy_imports import lazy_imports
from structperc.training.callbacks import StopWhenConverged
from structperc.training.checkpoints import use_evaluation_weights
from structperc.training.cost import parameters
from structperc.training.lightning_messages import hide_lightning_messages
from structperc.training.loggers import RunLog
from structperc.training.overlays import read_configuration
from structperc.training.report import evaluate, results_table

if TYPE_CHECKING:
    from structperc.training.boosting_rounds import boosting_rounds, dev_scores, plot_rounds

__all__ = [
    "read_configuration",
    "hide_lightning_messages",
    "StopWhenConverged",
    "RunLog",
    "use_evaluation_weights",
    "evaluate",
    "results_table",
    "parameters",
    "boosting_rounds",
    "dev_scores",
    "plot_rounds",
]

__getattr__ = lazy_imports(  # these need matplotlib
    __name__,
    {
        "structperc.training.boosting_rounds": ["boosting_rounds", "dev_scores", "plot_rounds"],
    },
)
