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

from structperc.on_first_use import on_first_use

if TYPE_CHECKING:
    from structperc.inspection.decision_order import decisions
    from structperc.inspection.decision_page import decision_html
    from structperc.inspection.decision_text import decision_lines, decision_notes
    from structperc.inspection.explaining import explain, explain_changed, summarise
    from structperc.inspection.explanation_page import explanation_html
    from structperc.inspection.explanation_text import explanation_lines
    from structperc.inspection.model_reliability import reliability
    from structperc.inspection.nbest import nbest_scores
    from structperc.inspection.nbest_text import list_lines
    from structperc.inspection.ranked_weights import weights
    from structperc.inspection.reading import read_corpus
    from structperc.inspection.reliability_figure import plot_reliability

__all__ = [
    "weights",
    "nbest_scores",
    "list_lines",
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
    "decision_notes",
    "read_corpus",
]

__getattr__ = on_first_use(  # most need a whole tagger, or matplotlib; what a light one reads and writes needs neither
    __name__,
    {
        "structperc.inspection.decision_order": ["decisions"],
        "structperc.inspection.decision_page": ["decision_html"],
        "structperc.inspection.decision_text": ["decision_lines", "decision_notes"],
        "structperc.inspection.explaining": ["explain", "explain_changed", "summarise"],
        "structperc.inspection.explanation_page": ["explanation_html"],
        "structperc.inspection.explanation_text": ["explanation_lines"],
        "structperc.inspection.model_reliability": ["reliability"],
        "structperc.inspection.nbest": ["nbest_scores"],
        "structperc.inspection.nbest_text": ["list_lines"],
        "structperc.inspection.ranked_weights": ["weights"],
        "structperc.inspection.reading": ["read_corpus"],
        "structperc.inspection.reliability_figure": ["plot_reliability"],
    },
)
