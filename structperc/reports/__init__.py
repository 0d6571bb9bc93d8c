"""Tables, figures, HTML pages and progress of a training.

tables.py              tables as text, Markdown and CSV
figures.py             figures by matplotlib
html_pages.py          HTML pages from the Jinja2 templates in templates/
training_progress.py   progress bar of a training, or one log line per epoch
"""

from typing import TYPE_CHECKING

from structperc.lazy_imports import lazy_imports
from structperc.reports.tables import markdown_table, text_table, write_csv

if TYPE_CHECKING:
    from structperc.reports.figures import check_figure, plot_nbest, plot_weights, write_figure
    from structperc.reports.training_progress import EpochBar

__all__ = [
    "text_table",
    "markdown_table",
    "EpochBar",
    "plot_weights",
    "plot_nbest",
    "check_figure",
    "write_csv",
    "write_figure",
]

__getattr__ = lazy_imports(  # these need Lightning, or matplotlib
    __name__,
    {
        "structperc.reports.training_progress": ["EpochBar"],
        "structperc.reports.figures": ["plot_weights", "plot_nbest", "check_figure", "write_figure"],
    },
)
