"""What a model has learned and why it decides as it does, as text, tables, figures and pages.

weights.py              the largest weights
nbest.py                lists of candidates of any length
reliability.py          whether probabilities come true
explain.py              why a document got its labels: explanation.py is what is said, *_text.py and *_page.py show it
decisions.py            in which order a guided tagger decides, and why
reading.py              the file that a model is looked at with
"""

from structperc.inspection.decisions import decisions
from structperc.inspection.explain import explain
from structperc.inspection.nbest import nbest_scores
from structperc.inspection.reading import read_corpus
from structperc.inspection.reliability import reliability
from structperc.inspection.weights import weights

__all__ = ["weights", "nbest_scores", "reliability", "explain", "decisions", "read_corpus"]
