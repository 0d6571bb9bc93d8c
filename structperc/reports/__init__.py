"""How results are shown: each kind of writing has one writer, which all rooms after this one use.

table.py                               tables as text and as Markdown
page.py                                HTML pages and their tables
figures.py, axes.py, point_labels.py   figures, what their axes have in common, names beside their points
writing.py                             tables and figures as files, complete or not at all
epoch_bar.py, logged.py                one line for all epochs; what is logged, as people read it
"""

from typing import TYPE_CHECKING

from structperc.on_first_use import on_first_use
from structperc.reports.table import markdown_table, text_table

if TYPE_CHECKING:
    from structperc.reports.epoch_bar import EpochBar
    from structperc.reports.figures import plot_lists, plot_weights
    from structperc.reports.writing import check_figure, check_targets, write_csv, write_figure

__all__ = [
    "text_table",
    "markdown_table",
    "EpochBar",
    "plot_weights",
    "plot_lists",
    "check_targets",
    "check_figure",
    "write_csv",
    "write_figure",
]

__getattr__ = on_first_use(  # these need Lightning, or matplotlib
    __name__,
    {
        "structperc.reports.epoch_bar": ["EpochBar"],
        "structperc.reports.figures": ["plot_weights", "plot_lists"],
        "structperc.reports.writing": ["check_targets", "check_figure", "write_csv", "write_figure"],
    },
)
