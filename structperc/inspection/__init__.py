"""What a model has learned and why it decides as it does, as text, tables, figures and pages.

ranked_weights.py      the largest weights of the tables in weight_tables.py
nbest.py               what lists of candidates of any length are worth, from one search (candidate_search.py)
model_reliability.py   whether probabilities come true
explaining.py          why a document got its labels: candidates and counts (candidate_counts.py), what changed
                       (changes.py); explanation.py is what is said
decision_order.py      in which order a guided tagger decides (decision_steps.py), and why
*_text.py, *_page.py, *_figure.py    show these
reading.py             the file that a model is looked at with
"""

from structperc.inspection.decision_order import decisions
from structperc.inspection.explaining import explain
from structperc.inspection.model_reliability import reliability
from structperc.inspection.nbest import nbest_scores
from structperc.inspection.ranked_weights import weights
from structperc.inspection.reading import read_corpus

__all__ = ["weights", "nbest_scores", "reliability", "explain", "decisions", "read_corpus"]
