"""What a model has learned and why it decides as it does, as text, tables, figures and pages.

ranked_weights.py      the largest weights of the tables in weight_tables.py; weight_groups.py is what is found
nbest.py               what lists of candidates of any length are worth, from one search (candidate_search.py)
model_reliability.py   whether probabilities come true
explaining.py          why a document got its labels: candidates and counts (candidate_counts.py), what changed
                       (changes.py); explanation.py is what is said
decision_order.py      in which order a guided tagger decides (decision_steps.py), and why
*_text.py, *_page.py, *_figure.py    show these
reading.py             the file that a model is looked at with; table_reading.py: where that is a table
tag_plan.py            how a file that a model labels is read; tag_input.py: blocks of it, columns, running text or JSON
                       lines; tag_output.py shows the labels, text_page.py as a page
"""

from typing import TYPE_CHECKING

from structperc.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from structperc.analysis.calibration import plot_reliability, reliability
    from structperc.analysis.decision_order import DECISION_NOTES, decision_html, decision_lines, decisions
    from structperc.analysis.explanation import explain, explain_changed, summarise
    from structperc.analysis.explanation_report import explanation_html, explanation_lines
    from structperc.analysis.input_files import read_corpus
    from structperc.analysis.nbest import nbest_lines, nbest_scores
    from structperc.analysis.weight_ranking import weights

__all__ = [
    "weights",
    "nbest_scores",
    "nbest_lines",
    "reliability",
    "plot_reliability",
    "explain",
    "explain_changed",
    "summarise",
    "explanation_lines",
    "explanation_html",
    "decisions",
    "decision_lines",
    "decision_html",
    "DECISION_NOTES",
    "read_corpus",
]

__getattr__ = lazy_imports(  # most need a whole tagger, or matplotlib; what a light one reads and writes needs neither
    __name__,
    {
        "structperc.analysis.decision_order": ["decisions", "decision_html", "decision_lines", "DECISION_NOTES"],
        "structperc.analysis.explanation": ["explain", "explain_changed", "summarise"],
        "structperc.analysis.explanation_report": ["explanation_html", "explanation_lines"],
        "structperc.analysis.calibration": ["reliability", "plot_reliability"],
        "structperc.analysis.nbest": ["nbest_scores", "nbest_lines"],
        "structperc.analysis.weight_ranking": ["weights"],
        "structperc.analysis.input_files": ["read_corpus"],
    },
)
