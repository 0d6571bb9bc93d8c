"""How results are shown: each kind of writing has one writer, which all rooms after this one use.

table.py                               tables as text and as Markdown
page.py                                HTML pages and their tables
figures.py, axes.py, point_labels.py   figures, what their axes have in common, names beside their points
writing.py                             tables and figures as files, complete or not at all
epoch_bar.py, logged.py                one line for all epochs; what is logged, as people read it
"""

from typing import TYPE_CHECKING

from structperc.lazy_imports import lazy_imports
from structperc.reports.tables import markdown_table, text_table

if TYPE_CHECKING:
    from structperc.reports.figures import plot_nbest, plot_weights
    from structperc.reports.output_files import check_figure, check_targets, write_csv, write_figure
    from structperc.reports.training_progress import EpochBar

__all__ = [
    "text_table",
    "markdown_table",
    "EpochBar",
    "plot_weights",
    "plot_nbest",
    "check_targets",
    "check_figure",
    "write_csv",
    "write_figure",
]

__getattr__ = lazy_imports(  # these need Lightning, or matplotlib
    __name__,
    {
        "structperc.reports.training_progress": ["EpochBar"],
        "structperc.reports.figures": ["plot_weights", "plot_nbest"],
        "structperc.reports.output_files": ["check_targets", "check_figure", "write_csv", "write_figure"],
    },
)
