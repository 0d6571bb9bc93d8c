"""Many trainings and one table: studies of configurations over seeds, sweeps over values of options.

experiment.py  rows, which are configurations to train, and their trainings, each in its own process
studies.py, study_*.py  studies: rows from a file; a table of means and of tests of significance, figures
sweeps.py      sweeps: rows from a grid; the best of them, trained on all data
"""

__all__ = []
