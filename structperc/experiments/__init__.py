"""Many trainings and one table: studies of configurations over seeds, sweeps over values of options.

study.py    a study: study_file.py reads it, study_check.py finds what cannot be trained before anything is,
            study_table.py, study_figure.py and study_significance.py say what came of it
sweep.py    a sweep: grid.py has its points, sweep_table.py and sweep_figure.py its outcome
trial.py    one training of either, in a process of its own; draft.py the same without training
"""

from structperc.experiments.study import study
from structperc.experiments.sweep import sweep

__all__ = ["study", "sweep"]
