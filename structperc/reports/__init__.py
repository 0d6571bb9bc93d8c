"""How results are shown: figures, tables as files, the bar of an epoch, numbers as people read them.

writing.py                     tables and figures as files, complete or not at all
figures.py, point_labels.py    figures, and names beside their points
epoch_bar.py, logged.py        one line for all epochs; what is logged, as people read it
"""

from structperc.reports.epoch_bar import EpochBar
from structperc.reports.figures import plot_lists, plot_weights
from structperc.reports.writing import check_figure, check_targets, write_csv, write_figure

__all__ = [
    "EpochBar",
    "plot_weights",
    "plot_lists",
    "check_targets",
    "check_figure",
    "write_csv",
    "write_figure",
]
