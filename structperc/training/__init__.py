"""What trains: the programs fit, validate, test, predict and rerank, their run folders and callbacks.

program.py, reranking_program.py    the programs
configuration.py, trainer_options.py, parser_messages.py, refusals.py    options, and what is wrong with them
runs.py, claims.py, interruptions.py    folders of runs
logs.py, epochs.py, last_good.py, stopping.py, opening.py, cost.py, rounds.py    what is written during training
report.py, predictions.py    what is written at its end
"""

from structperc.training.stopping import StopWhenSettled

__all__ = ["StopWhenSettled"]
