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

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
