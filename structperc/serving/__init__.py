"""A saved tagger behind HTTP: running text -> spans of its characters, sentences -> labels.

requests.py    limits of a service, and bodies of requests
jobs.py        texts or sentences to be labelled, and the answers as JSON
scheduler.py   the order of jobs: short ones together, long ones in pieces that take turns
app.py         the Starlette application with metrics for Prometheus

It needs the extra `serve`. The command `structperc serve` runs the application by uvicorn.
"""

from typing import TYPE_CHECKING

from structperc.lazy_imports import lazy_imports

if TYPE_CHECKING:
    from structperc.serving.app import application
    from structperc.serving.requests import Limits

__all__ = ["application", "Limits"]
__getattr__ = lazy_imports(
    __name__, {"structperc.serving.app": ["application"], "structperc.serving.requests": ["Limits"]}
)
