"""Many trainings and one table: studies of configurations over seeds, sweeps over values of options.

experiment.py    the loop that both share: the rows (row.py) are trained one by one, all that is known is written
trial.py         one training, in a process of its own; draft.py is the same without training
studies.py       one study, or several side by side (comparison_figure.py)
study_*.py       rows from a file, and their outcome: a table of means and of tests of significance
grid.py, sweep_*.py    rows from a grid of values, and their outcome: the best of them, trained on all data
"""

from structperc.experiments.studies import study
from structperc.experiments.sweeps import sweep

__all__ = ["study", "sweep"]
