"""A saved tagger behind HTTP: running text -> spans of its characters, sentences -> labels.

bodies.py      bodies of requests, checked, with messages that say what to send
questions.py   texts, or sentences of a document, and the answers of a tagger as JSON
scheduler.py   the order in which questions are answered: short ones together, long ones in pieces that take turns
limits.py      limits of a service, and refusals
counters.py    requests and their times, for Prometheus
app.py         the application of Starlette

It needs the extra `serve`. The command `structperc serve` runs the application by uvicorn.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
