"""How results are shown: figures, tables as files, the bar of an epoch, numbers as people read them."""

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
