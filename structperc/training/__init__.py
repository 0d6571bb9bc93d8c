"""Training: the programs fit, validate, test, predict and rerank, their run folders and callbacks.

program, reranking          the programs
configuration, overlays     configuration files and options: composed, checked, built
lightning_messages          messages and errors of Lightning
callbacks, checkpoints      the end of a training; best, last and final weights
loggers, report, run_card   metrics while it runs; scores, cost and model card at its end
run_folders, predictions    folders of runs, and prediction files in them
boosting_rounds             table and figure of boosting
child_process               a program that ends with its parent process
"""

from typing import TYPE_CHECKING

from structperc.lazy_imports import lazy_imports
from structperc.training.callbacks import StopWhenConverged
from structperc.training.checkpoints import use_evaluation_weights
from structperc.training.lightning_messages import hide_lightning_messages
from structperc.training.loggers import RunLog
from structperc.training.overlays import read_configuration
from structperc.training.report import evaluate, parameters, results_table

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
