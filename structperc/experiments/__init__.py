"""Many trainings and one table: studies of configurations over seeds, sweeps over values of options.

experiment.py           trainings, each in its own process, and the loop over them
dry_run.py              builds a training without running it, to find mistakes before a series of trainings
rows.py                 configurations to be trained, from a file or a grid of values
studies.py, study_*.py  studies: rows from a file; a table of means and of tests of significance
sweeps.py               sweeps: rows from a grid; the best of them, trained on all data
"""

from structperc.experiments.studies import study
from structperc.experiments.sweeps import sweep

__all__ = ["study", "sweep"]
