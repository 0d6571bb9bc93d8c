"""A saved tagger behind HTTP: running text -> spans of its characters, sentences -> labels.

requests.py   limits of a service, and bodies of requests
jobs.py       texts or sentences to be labelled, and the answers as JSON
scheduler.py  the order of jobs: short ones together, long ones in pieces that take turns
app.py        the Starlette application with metrics for Prometheus

It needs the extra `serve`. The command `structperc serve` runs the application by uvicorn.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
